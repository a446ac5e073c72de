"""What ``tailrace calibrate`` does, and what it prints for people."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from .. import files
from ..errors import UserError
from ..latency import REGIMES, Errors
from ..studies import calibrate, profile
from .console import console, print_json

__all__ = ["Fitting", "fit"]

SUFFIXES: Final = (".toml", ".json")


@dataclass(frozen=True)
class Fitting:
    """How ``calibrate fit`` fits, and where the model goes."""

    holdout: float
    seed: int
    kv_tokens: int
    output: str


def fit(path: str, asked: Fitting, as_json: bool) -> None:
    """Print the coefficients and their errors, and write the model where asked to."""
    if asked.output:
        if Path(asked.output).suffix.lower() not in SUFFIXES:
            raise UserError(f"{asked.output}: the model is written as {' or '.join(SUFFIXES)}; name such a file")
        files.check_place(asked.output)
    samples = profile.read(path)
    found = calibrate.fit(samples, asked.holdout, asked.seed)
    if asked.output:
        files.write_text(asked.output, _settings(found, path, asked))
    document = {"profile": path, "steps": len(samples), "holdout": asked.holdout, "seed": asked.seed, **found.show()}
    if as_json:
        print_json({**document, **({"output": asked.output} if asked.output else {})})
        return
    _print(found, document)
    if asked.output:
        print(f"written to {asked.output}, for --latency {asked.output}")


def _print(found: calibrate.Fit, document: dict[str, Any]) -> None:
    title = f"{document['profile']}: relative errors of {document['steps']:,} steps"
    heads = [f"{part}: {name}" for part in ("fitted", "held out") for name in ("steps", "MAPE", "worst", "bias")]
    table = Table("steps that are", *heads, title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for regime in REGIMES:
        if regime in found.fitted or regime in found.held_out:
            cells = [*_cells(found.fitted.get(regime)), *_cells(found.held_out.get(regime))]
            table.add_row(regime, *cells)
    console().print(table)
    print("short, middle, long: thirds of the steps by their time; bias above 0: more time predicted than measured")
    print(f"--latency {found.text}")


def _cells(errors: Errors | None) -> list[str]:
    if errors is None:
        return ["0", "–", "–", "–"]
    return [f"{errors.steps:,}", *(f"{100 * value:.2f} %" for value in (errors.mape, errors.worst)), _signed(errors)]


def _signed(errors: Errors) -> str:
    return f"{100 * errors.bias:+.2f} %"


def _settings(found: calibrate.Fit, path: str, asked: Fitting) -> str:
    """The model as a file of settings that `latency.build` takes."""
    steps = found.fitted["all"].steps
    error = 100 * found.held_out["all"].mape
    summary = f"fitted to {steps} steps of {Path(path).name}; held-out MAPE {error:.2f} %"
    memory = {"kv_tokens": asked.kv_tokens} if asked.kv_tokens else {}
    values = {"latency": "profiled", "summary": summary, **memory, **found.show()["coefficients"]}
    if Path(asked.output).suffix.lower() == ".json":
        return json.dumps(values, indent=2) + "\n"
    # A JSON string or number of these is one of TOML too.
    return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items())
