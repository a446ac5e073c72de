"""The runs of a study: points, each over many seeds, in parallel, kept as soon as they are made."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ... import _jit, files, latency, params, workloads
from ...config import EngineConfig
from ...hooks import Policy
from ...sim.run import Instance, settle
from ...workloads.workload import Workload
from .. import pool, runs, store
from . import measure, slos, tails
from .measure import F8
from .traffic import Traffic

__all__ = ["Point", "Samples", "column", "folder", "sample"]

BLOCK: Final = 10
"""Seeds of a point that are run, and kept, together."""
MOST_POINTS: Final = 8
"""Of those that see the same requests: a sweep of all settings would keep one core busy when the others are done."""
MOST_BYTES: Final = 64 << 20
"""Numbers kept; the ones unused for longest go first."""


@dataclass(frozen=True)
class Point:
    """One setting, to be run over many seeds."""

    traffic: Traffic
    policy: str
    engine: str
    latency: str
    predictions: str = "oracle"
    skipped: float = 0.0
    """Share of the first requests left out of the waits."""
    measure: str = "waits"
    """What a run is reduced to: ``waits`` (`measure.py`), ``tails`` (`tails.py`) or ``slos`` (`slos.py`)."""


Samples = dict[Point, F8]
"""Point → (seeds, numbers of its measure)."""

_REDUCED: Final[Mapping[str, tuple[tuple[str, ...], Callable[[Instance, float], F8], str]]] = {
    "waits": (measure.MEASURES, measure.measure, "measure.py"),
    "tails": (tails.MEASURES, tails.measure, "tails.py"),
    "slos": (slos.MEASURES, slos.measure, "slos.py"),
}
"""Measure → names of its numbers, what reduces a run to them, and the file that does."""


def column(samples: Samples, point: Point, name: str) -> F8:
    """(seeds,) values of one of the point's numbers. Raises KeyError for what was not run."""
    return samples[point][:, _REDUCED[point.measure][0].index(name)]


@dataclass(frozen=True)
class _Task:
    """Points over the same requests, and the seeds to run them with."""

    points: tuple[Point, ...]
    seeds: tuple[int, ...]


def folder() -> Path:
    """Where the numbers are kept."""
    return _jit.cache_root() / "reproduce"


def sample(
    points: Iterable[Point],
    seeds: int,
    workers: int = 0,
    cache: bool = True,
    done: Callable[[int], None] = lambda runs: None,
) -> Samples:
    """Run every point with seeds 0 to ``seeds`` - 1 on ``workers`` processes (0 = one a core).

    ``done`` is called with the number of runs that have come to be known. Interrupted, what is
    finished is kept, and the next call goes on from there. Raises UserError for a mistake in a
    point before any process starts.
    """
    wanted = list(dict.fromkeys(points))
    for point in wanted:
        _parts(point)
    blocks = [tuple(range(first, min(first + BLOCK, seeds))) for first in range(0, seeds, BLOCK)]
    keys = {(point, block): _key(point, block) for point in wanted for block in blocks}
    found = {pair: kept for pair, key in keys.items() if cache and (kept := _load(key, point)) is not None}
    done(sum(len(block) for _, block in found))
    tasks = _tasks([pair for pair in keys if pair not in found])

    def keep(index: int, made: list[F8]) -> None:
        task = tasks[index]
        for point, rows in zip(task.points, made, strict=True):
            if cache:
                files.keep(folder() / f"{keys[point, task.seeds]}.npy", functools.partial(np.save, arr=rows))
        done(len(task.points) * len(task.seeds))

    _compile({point.policy.partition(":")[0]: point for task in tasks for point in task.points}.values(), workers)
    for task, made in zip(tasks, pool.each(_run, tasks, workers, keep), strict=True):
        found.update({(point, task.seeds): rows for point, rows in zip(task.points, made, strict=True)})
    store.prune(MOST_BYTES, folder(), "*.npy")
    return {point: np.concatenate([found[point, block] for block in blocks]) for point in wanted}


def _tasks(missing: Sequence[tuple[Point, tuple[int, ...]]]) -> list[_Task]:
    """Points that see the same requests go together, so those are made once."""
    together: dict[tuple[Any, ...], list[Point]] = {}
    for point, block in missing:
        together.setdefault((block, point.traffic, point.predictions), []).append(point)
    return [
        _Task(tuple(points[first : first + MOST_POINTS]), group[0])
        for group, points in together.items()
        for first in range(0, len(points), MOST_POINTS)
    ]


def _compile(points: Iterable[Point], workers: int) -> None:
    """Compile the policies side by side: in the tasks they would wait for one another."""
    chosen = list(points)
    if len(chosen) > 1:
        pool.each(_run, [_Task((point,), (0,)) for point in chosen], workers)


def _run(task: _Task) -> list[F8]:
    """(seeds, measures) of each point."""
    out = [np.empty((len(task.seeds), len(_REDUCED[point.measure][0]))) for point in task.points]
    for i, seed in enumerate(task.seeds):
        for point, rows in zip(task.points, out, strict=True):
            rows[i] = _REDUCED[point.measure][1](run(point, seed), point.skipped)
    return out


def run(point: Point, seed: int) -> Instance:
    """The point's run with one seed, finished."""
    cls, values, config, cost = _parts(point)
    if config.step_jitter:
        config = dataclasses.replace(config, jitter_seed=seed)
    made = Instance(_requests(point.traffic, point.predictions, seed), cls, values, config, cost)
    made.run()
    return made


@functools.lru_cache(maxsize=4)
def _requests(traffic: Traffic, predictions: str, seed: int) -> Workload:
    # The errors' seed is the workload's where it has one; a window has not.
    w = traffic.load(seed)
    return workloads.apply(w, predictions)


@functools.lru_cache(maxsize=4096)
def _parts(point: Point) -> tuple[type[Policy], Any, EngineConfig, latency.Latency]:
    policy, config = runs.parse_policy(point.policy), runs.parse_engine(point.engine)
    cost = runs.parse_latency(point.latency, config)
    settle(policy.cls, policy.params, config, cost)
    return policy.cls, policy.params, config, cost


def _key(point: Point, seeds: tuple[int, ...]) -> str:
    """Hash of all that the numbers depend on."""
    cls, values, config, cost = _parts(point)
    inputs = {
        "traffic": point.traffic.key(),
        "predictions": point.predictions,
        "policy": [cls.name, f"{cls.__module__}.{cls.__qualname__}", params.show(values)],
        "engine": config.show(),
        "latency": cost.show(),
        "skipped": point.skipped,
        "seeds": seeds,
        "code": _code(point.measure),
    }
    return store.key_of(inputs, _jit.sources_of(type(values)))


@functools.cache
def _code(measure: str) -> str:
    """Hash of what makes the requests and reduces the runs; `store.key_of` knows the rest."""
    here = Path(__file__).parent
    files = [*sorted((here.parents[1] / "workloads").rglob("*.py")), here / _REDUCED[measure][2], here / "traffic.py"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _load(key: str, point: Point) -> F8 | None:
    """The numbers under ``key``, or None (also when the file is damaged)."""
    path = folder() / f"{key}.npy"
    try:
        rows: F8 = np.load(path, allow_pickle=False)
        os.utime(path)
    except (OSError, ValueError, EOFError):
        return None
    return rows if rows.ndim == 2 and rows.shape[1] == len(_REDUCED[point.measure][0]) else None
