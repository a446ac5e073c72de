"""Made-up worlds of ProServe's study: what every cell would show in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tailrace.studies.reproduce.cells import Cell
from tailrace.studies.reproduce.points import Samples
from tailrace.studies.reproduce.proserve import estimator, overhead, study
from tailrace.studies.reproduce.proserve.claims import View
from tailrace.studies.reproduce.proserve.plan import EXPERIMENTS, Scope, cells
from tailrace.studies.reproduce.proserve.settings import Setting, of, point
from tailrace.studies.reproduce.slos import MEASURES

SEEDS = 6
SCOPE = Scope(EXPERIMENTS, SEEDS, False)
KV = 65_536
World = Callable[[Cell, str], float]
ATTAINED = {
    "tailrace": 0.9,
    "paper": 0.8,
    "xllm": 0.86,
    "srpt": 0.85,
    "sjf": 0.8,
    "sarathi_priority": 0.5,
    "priority": 0.55,
    "prefill_first": 0.3,
    "vtc": 0.31,
    "vllm_fcfs": 0.2,
    "sarathi": 0.12,
    "fairbatching": 0.11,
    "edf": 0.06,
}
ABLATED = {
    "paper": 0.8,
    "paper, only deadline": 0.1,
    "paper, only density": 0.78,
    "only deadline": 0.8,
    "only density": 0.88,
    "no latency budget": 0.7,
    "hopeless ranked": 0.8,
}
COEFF = {"0.01": 0.4, "0.1": 0.85}


def as_in_the_notes(cell: Cell, metric: str) -> float:
    """Numbers with every shape that the study looks for."""
    if cell.experiment in SHAPES:
        return SHAPES[cell.experiment](cell, metric)
    if metric == "wait_longest_s":
        return {"off": 200.0, "15 % of the steps": 14.0}.get(cell.policy, 15.0)
    if cell.experiment == "fig3" and metric in ("high_attainment", "low_attainment"):
        return _by_class(cell.policy, metric)
    base = ATTAINED.get(cell.policy, 0.9)
    if metric == "tdg_ratio":
        return 0.97 if cell.policy == "srpt" else base
    return base


def _by_class(policy: str, metric: str) -> float:
    high, low = {"priority": (0.97, 0.2), "sarathi_priority": (0.9, 0.2), "sarathi": (0.12, 0.12)}.get(
        policy, (0.96, 0.85)
    )
    return high if metric == "high_attainment" else low


def _fixed(cell: Cell, metric: str) -> float:
    steep = {"edf": 1.9, "sarathi": 1.6, "srpt": 0.4}[cell.policy]
    over = max(float(cell.at["load"]) - 0.6, 0.0)
    return max((1.0 if cell.policy == "edf" else 0.95) - steep * over, 0.01)


def _budgets(cell: Cell, metric: str) -> float:
    place = {128: 0, 192: 1, 256: 2, 384: 3, 512: 4, 768: 5, 1024: 6, 2048: 7, 4096: 8}[cell.at["token_budget"]]
    if cell.policy == "tailrace":
        return 0.97
    if cell.policy == "srpt" or (cell.policy == "sarathi" and cell.at["load"] < 1):
        return 0.9 - 0.05 * abs(place - 4)
    return 0.2 + 0.1 * min(place, 5)


def _regimes(cell: Cell, metric: str) -> float:
    dense = min(float(cell.at["load"]) / 1.6, 0.95)
    return {"all_fit_steps_share": 0.95 - dense, "density_steps_share": dense}.get(metric, 0.02)


def _ablation(cell: Cell, metric: str) -> float:
    if cell.policy == "deadlines of the token gain":
        return 0.97 if metric == "tdg_ratio" else 0.25
    return ABLATED.get(cell.policy, 0.9)


def _starvation(cell: Cell, metric: str) -> float:
    if metric == "wait_longest_s":
        return 200.0 if cell.policy == "off" else 14.0
    return 0.4 if cell.policy == "to the head" else 0.9


def _memory(cell: Cell, metric: str) -> float:
    if metric == "completed_share":
        return 1.0
    return 0.7 if cell.policy in ("recompute", "prefill_first", "sarathi", "srpt") else 0.8


SHAPES: dict[str, World] = {
    "fig45": _fixed,
    "fig8": _budgets,
    "regimes": _regimes,
    "ablation": _ablation,
    "starvation": _starvation,
    "memory": _memory,
    "sensitivity": lambda cell, metric: COEFF.get(cell.at["value"], 0.9) if "coeff" in cell.at["varied"] else 0.9,
    "weights": lambda cell, metric: 0.9 + 0.01 * cell.at["weight"] if metric == "high_attainment" else 0.8,
    "vtc": lambda cell, metric: float(cell.at["weight"]),
}


def flat(cell: Cell, metric: str) -> float:
    """Nothing makes any difference."""
    return 0.9


def made_up(world: World, scope: Scope = SCOPE) -> tuple[list[Cell], Samples]:
    """The cells of a study, each with a point of its own, and their numbers in ``world``."""
    found = cells(scope, KV if "memory" in scope.only else 0)
    rng = np.random.Generator(np.random.PCG64(3))
    samples: Samples = {}
    for i, cell in enumerate(found):
        # A point of its own for each cell, so that made-up figures need not agree with one another.
        own = point(Setting(), "edf", of(Setting(), 1.0 + i, SEEDS))
        rows = np.full((SEEDS, len(MEASURES)), np.nan)
        for metric in cell.metrics:
            noise = 0.0 if metric == "completed_share" else 1e-4 * rng.standard_normal(SEEDS)
            rows[:, MEASURES.index(metric)] = world(cell, metric) * (1 + noise)
        samples[own] = rows
        found[i] = Cell(cell.experiment, cell.policy, cell.at, own, cell.metrics)
    return found, samples


def view_of(world: World) -> View:
    """What claims are decided on."""
    view = View(*made_up(world))
    view.overhead_us, view.estimator = {"tailrace": 50.0}, {("qwen2-7b", 0.05): 4.0, ("qwen2-7b", 0.15): 12.0}
    return view


def document(world: World, scope: Scope, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The study's document, without a run."""
    patch.setattr(overhead, "step_us", lambda policy: 42.0)
    patch.setattr(estimator, "errors", lambda scope: iter([("qwen2-7b", 0.05, 4.0)]))
    found, samples = made_up(world, scope)
    planned = study.Planned(study.Study(scope), KV, found)
    return {"command": "tailrace reproduce proserve", **study.assemble(planned, samples)}
