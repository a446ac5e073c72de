"""What ``tailrace calibrate`` does, and what it prints for people."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from .. import files
from ..errors import UserError
from ..latency import REGIMES, Errors
from ..report.values import duration
from ..studies import budgets, calibrate, estimator, profile
from ..studies.runs import Job
from .console import console, print_json

__all__ = ["Asked", "Fitting", "Mixture", "Trial", "budget", "error", "fit"]

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


@dataclass(frozen=True)
class Asked:
    """The run that steps are taken from."""

    workload: str
    engine: str
    latency: str
    seed: int | None = None
    limit: int = 0
    rate_scale: float = 1.0
    format: str = ""
    policy: str = "sarathi"

    def job(self) -> Job:
        """As one run."""
        return Job(
            self.workload,
            self.policy,
            self.engine,
            self.latency,
            seed=self.seed,
            limit=self.limit or None,
            rate_scale=self.rate_scale,
            format=self.format or None,
        )


@dataclass(frozen=True)
class Mixture:
    """What a step must stay under, and what it holds if the user says so."""

    tpot_slo_s: float
    decodes: int | None
    kv_tokens: float | None
    prefill_kv_tokens: int | None


def budget(asked: Asked, mixture: Mixture, as_json: bool) -> None:
    """Print the budget of a prefill alone beside those with decodes."""
    if bool(asked.workload) == (mixture.decodes is not None):
        raise UserError("give --workload, or --decodes with --kv (not both): what runs beside the prefill")
    if (mixture.decodes is None) != (mixture.kv_tokens is None):
        raise UserError("--decodes and --kv belong together: how many, and tokens of KV of each")
    if mixture.decodes is None or mixture.kv_tokens is None:
        study = budgets.of_workload(asked.job(), mixture.tpot_slo_s, mixture.prefill_kv_tokens)
    else:
        mix = budgets.Mix(mixture.decodes, mixture.kv_tokens, mixture.prefill_kv_tokens or 0)
        study = budgets.given(asked.latency, mixture.tpot_slo_s, mix)
    if as_json:
        print_json(study.show())
        return
    _print_budgets(study)


def _print_budgets(study: budgets.Study) -> None:
    table = Table("profiled with", "decodes", "KV of each", "KV of the chunk", "token budget", "full step, mean mix")
    table.title = f"{study.latency}: steps under {duration(study.tpot_slo_s)}"
    if study.workload is not None:
        for head in ("steps over the SLO", "P99 step", "longest", "P99 TPOT", "P99 TTFT"):
            table.add_column(head)
    for column in table.columns[1:]:
        column.justify = "right"
    for each in study.budgets:
        mix, check = each.mix, each.check
        row = [each.profiled_with, f"{mix.decodes:,}", f"{mix.kv_tokens:,.0f}", f"{mix.prefill_kv_tokens:,}"]
        row += [f"{each.tokens:,}" if each.tokens else "none", duration(each.typical_step_s) if each.tokens else "–"]
        if check is not None:
            times = (check.step_p99_s, check.longest_s, check.tpot_p99_s, check.ttft_p99_s)
            row += [f"{100 * check.over_share:.2f} %", *map(duration, times)]
        table.add_row(*row)
    console().print(table)
    if study.workload is None:
        return
    rate = f"{study.workload['requests']:,} requests, {study.workload['rate_rps']:.3g}/s, engine {study.engine}"
    print(f"runs of {study.workload['name']}: {rate}; over the SLO: of the steps with decodes")
    print("heavy: 95 % of the steps with a prefill and decodes allow a larger budget")


@dataclass(frozen=True)
class Trial:
    """How ``calibrate error`` tries a fit."""

    jitters: str
    elsewhere: str
    holdout: float
    seed: int

    def numbers(self) -> list[float]:
        """The jitters. Raises UserError."""
        try:
            return [float(text) for text in self.jitters.split(",")]
        except ValueError:
            raise UserError(f"--jitter {self.jitters!r}: must be numbers, comma separated, as 0,0.05,0.15") from None


def error(asked: Asked, trial: Trial, as_json: bool) -> None:
    """Print the errors by regime under each jitter, and what they come from."""
    job = asked.job()
    other = dataclasses.replace(job, workload=trial.elsewhere) if trial.elsewhere else None
    found = estimator.estimate(job, trial.numbers(), trial.holdout, trial.seed, other)
    if as_json:
        about = {"study": "error", "job": dataclasses.asdict(job), "elsewhere": trial.elsewhere or None}
        print_json({**about, "holdout": trial.holdout, "seed": trial.seed, "errors": [each.show() for each in found]})
        return
    for each in found:
        _print_estimate(each, f"{asked.workload}: held-out steps, jitter {100 * each.jitter:g} %")


def _print_estimate(found: estimator.Estimate, title: str) -> None:
    parts: dict[str, Mapping[str, Errors]] = {
        "estimate": found.fit.held_out,
        "without jitter": found.undisturbed,
        "floor": found.floor,
        **({"elsewhere": found.elsewhere} if found.elsewhere else {}),
    }
    table = Table("steps that are", "steps", *(f"{part}: MAPE, worst, bias" for part in parts), title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for regime in REGIMES:
        if regime in found.fit.held_out:
            cells = [", ".join(_cells(errors.get(regime))[1:]) for errors in parts.values()]
            table.add_row(regime, f"{found.fit.held_out[regime].steps:,}", *cells)
    console().print(table)
    print("floor: the model that timed the steps, without jitter, against the times with it")
