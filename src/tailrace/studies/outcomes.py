"""Outcomes of the comparison with vLLM: each kept as soon as it is known, and their table."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .. import _jit, files, workloads
from ..registry import POLICIES
from . import parity, pool
from .parity import Outcome

__all__ = ["Task", "folder", "key_of", "load", "markdown", "planned", "run", "save"]

APART: Final = ("cli", "exports", "metrics", "queueing", "report", "studies", "workloads")
"""Parts of the package that no step depends on, but for `USED`; the arrivals are in the key themselves."""
USED: Final = ("studies/parity.py", "workloads/predictions.py", "workloads/prefix.py")


@dataclass(frozen=True)
class Task:
    """One comparison."""

    vllm: str
    policy: str
    case: str
    steps: int
    workload: str = ""
    """Empty: `parity.WORKLOAD` with a request a step."""

    @property
    def arrivals(self) -> str:
        return self.workload or parity.WORKLOAD.format(requests=self.steps)


def planned(versions: Iterable[str], steps: int) -> list[Task]:
    """All that `make parity` compares on ``versions``."""
    return [Task(vllm, policy, case, steps) for vllm in versions for policy, case in parity.plan(vllm)]


def folder() -> Path:
    """Where outcomes are kept, a file each."""
    return _jit.cache_root() / "parity"


def key_of(task: Task) -> str:
    """Hash of a comparison's inputs and of the sources, but not of the compiler or Python.

    So one environment finds what the others, with other versions of vLLM, have found.
    """
    policy = POLICIES.get(parity.registered(task.policy)[0])
    digest = hashlib.sha256(json.dumps(dataclasses.astuple(task)).encode() + _code())
    digest.update(_digest(task.arrivals).encode())
    for file in _jit.sources_of(policy.Params):
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()[:32]


@functools.cache
def _digest(arrivals: str) -> str:
    return workloads.load(arrivals).digest()


@functools.cache
def _code() -> bytes:
    here = Path(__file__).parents[1]
    sources = [f for f in sorted(here.rglob("*.py")) if f.relative_to(here).parts[0] not in APART]
    digest = hashlib.sha256()
    for file in [*sources, *map(here.joinpath, USED)]:
        digest.update(str(file.relative_to(here)).encode() + b"\0" + file.read_bytes())
    return digest.digest()


def save(key: str, outcome: Outcome) -> None:
    """Keep ``outcome``; a half-written file never appears. A full or closed disk is no error."""
    text = json.dumps(dataclasses.asdict(outcome))
    files.keep(folder() / f"{key}.json", lambda file: file.write(text.encode()))


def load(key: str) -> Outcome | None:
    """The outcome under ``key``, or None (also when the file is damaged)."""
    try:
        found = json.loads((folder() / f"{key}.json").read_text())
        return Outcome(**{f.name: found[f.name] for f in dataclasses.fields(Outcome)})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _compare(task: Task) -> Outcome:
    # Since 0.31 vLLM sets its own log level only when it serves.
    logging.getLogger("vllm").setLevel(os.environ.get("VLLM_LOGGING_LEVEL", "ERROR").upper())
    return parity.compare(task.arrivals, task.policy, task.case, task.steps)


def run(tasks: Sequence[Task], resume: bool, workers: int, done: Callable[[Outcome, bool], None]) -> list[Outcome]:
    """Compare on ``workers`` processes, keeping each outcome at once; with ``resume``, the kept are not run.

    ``done`` is called with each outcome and whether it was kept already.
    """
    keys = {task: key_of(task) for task in tasks}  # now: sources may be edited meanwhile
    known = {task: found for task in tasks if resume and (found := load(keys[task])) is not None}
    for outcome in known.values():
        done(outcome, True)
    missing = [task for task in tasks if task not in known]

    def keep(index: int, outcome: Outcome) -> None:
        save(keys[missing[index]], outcome)
        done(outcome, False)

    known.update(zip(missing, pool.each(_compare, missing, workers, keep), strict=True))
    return [known[task] for task in tasks]


HEAD: Final = """# Our engine against vLLM's own scheduler

`tailrace parity` drives vLLM's scheduler and ours over the same arrivals and compares every step's
tokens, their order, admissions, preemptions and the running list. `vllm_fcfs` and `vllm_priority`
are vLLM's own scheduler as it comes; the other policies run inside it, through the plugin.

{total} Made, and made again, by `make parity`.

| vLLM | policy | case | steps | preemptions | steps that differ |
|---|---|---|--:|--:|--:|
"""


def markdown(tasks: Sequence[Task]) -> str:
    """The table of what is kept of ``tasks``; what is not says so."""
    rows = [(task, load(key_of(task))) for task in tasks]
    found = [outcome for _, outcome in rows if outcome is not None]
    steps, lost, wrong = (sum(getattr(o, f) for o in found) for f in ("steps", "preemptions", "mismatched_steps"))
    total = f"{len(found)} of {len(rows)} comparisons: {steps:,} steps, {lost:,} preemptions; {wrong:,} steps differ."
    return HEAD.format(total=total) + "".join(map(_row, rows))


def _row(row: tuple[Task, Outcome | None]) -> str:
    task, found = row
    cells = ("not run", "", "")
    if found is not None:
        cells = (f"{found.steps:,}", f"{found.preemptions:,}", f"{found.mismatched_steps:,}")
    return "| " + " | ".join((task.vllm, task.policy, task.case, *cells)) + " |\n"
