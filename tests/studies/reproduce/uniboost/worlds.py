"""Made-up worlds of UniBoost's study: what every cell would show in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from tailrace.studies.reproduce.cells import Cell
from tailrace.studies.reproduce.points import Samples
from tailrace.studies.reproduce.tails import MEASURES
from tailrace.studies.reproduce.uniboost import published, study, toys
from tailrace.studies.reproduce.uniboost.claims import View
from tailrace.studies.reproduce.uniboost.plan import EXPERIMENTS, Scope, cells, settings
from tailrace.studies.reproduce.uniboost.settings import Capacities, Setting, point

SEEDS = 12
SCOPE = Scope(EXPERIMENTS, SEEDS, False)
World = Callable[[Cell, str], float]
KNEES = {
    "mlfq": 0.55,
    "dist_boost": 0.6,
    "uniboost_base": 0.7,
    "memguard": 0.8,
    "uniboost_low": 0.85,
    "uniboost_high": 0.9,
}
TAILS = {"uniboost_low": 400.0, "uniboost_high": 280.0, "dist_boost": 400.0, "sjf": 600.0, "las": 600.0, "mlfq": 700.0}


def as_in_the_article(cell: Cell, metric: str) -> float:
    """Numbers with every shape that the article describes."""
    policy, at = cell.policy, cell.at
    if cell.experiment == "ablation" and metric == "e2e_p99_s":
        over = float(max(at["rho"] - KNEES[policy], 0.0))
        return float(10 * math.exp(10 * over))
    if cell.experiment == "starvation":
        return _starved(policy, metric)
    if cell.experiment == "memory":
        return {"swapped_gb": 100.0 if policy.startswith("uniboost_base") else 10.0, "revisions_over_bound": 0.0}.get(
            metric, 1.0
        )
    if cell.experiment == "percentiles" and metric.startswith("tbt"):
        return 2.0 if policy == "dist_boost" else 1.0
    if cell.experiment == "noise" and metric == "e2e_mean_s":
        return 100 * (1 + 0.3 * float(at["cv"]))
    if at.get("mix") == "heavy" and metric == "e2e_p99_s":
        return 600.0 if policy.startswith("uniboost") else 500.0
    return _main(policy, metric)


def _main(policy: str, metric: str) -> float:
    if metric.startswith("ttft"):
        return {"uniboost_low": 5.0, "uniboost_high": 40.0, "dist_boost": 130.0}.get(policy, 100.0)
    if metric in ("e2e_p99_s", "e2e_p999_s"):
        return TAILS.get(policy, 500.0)
    if metric == "e2e_mean_s":
        return 119.0 if policy.startswith("uniboost") else 100.0
    return 1.0


def _starved(policy: str, metric: str) -> float:
    if metric == "long_slope_s":
        return 0.0003
    if metric == "short_e2e_p99_s":
        return 3.62 if policy.startswith("uniboost") else 3.8
    return {"uniboost_low": 9.1, "sjf": 13.3, "srpt_swap": 18.6, "sarathi": 6.6}.get(policy, 1.0)


def flat(cell: Cell, metric: str) -> float:
    """Nothing makes any difference."""
    return 1.0


class Assumed(Capacities):
    """Loads without a run."""

    def __init__(self, wanted: list[Setting]) -> None:
        self.rps = dict.fromkeys(wanted, 1.0)
        self.samples = {setting: np.ones(SEEDS) for setting in wanted}


def made_up(world: World, scope: Scope = SCOPE) -> tuple[list[Cell], Samples]:
    """The cells of a study, each with a point of its own, and their numbers in ``world``."""
    found = cells(scope, Assumed(settings(scope)))
    rng = np.random.Generator(np.random.PCG64(2))
    samples: Samples = {}
    for i, cell in enumerate(found):
        # A point of its own for each cell, so that made-up figures need not agree with one another.
        own = point(Setting(), "sarathi", 1.0 + i, 100)
        rows = np.full((SEEDS, len(MEASURES)), np.nan)
        for metric in cell.metrics:
            rows[:, MEASURES.index(metric)] = world(cell, metric) * (1 + 1e-3 * rng.standard_normal(SEEDS))
        samples[own] = rows
        found[i] = Cell(cell.experiment, cell.policy, cell.at, own, cell.metrics)
    return found, samples


def view_of(world: World, toys: Mapping[tuple[str, str, str], float]) -> View:
    """What claims are decided on."""
    view = View(*made_up(world))
    view.toys = toys
    return view


def document(world: World, scope: Scope, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The study's document, without a run."""
    path = {"policy": "uniboost", "traffic": "spikes", "seed": 0, "bin_s": 10.0}
    path |= {"time_s": [1.0, 9.0], "gamma_per_s": [0.01, 0.02], "most_arrivals_in_a_second": [3, 60]}
    patch.setattr(toys, "numbers", lambda workers: ((*key, steps) for key, steps in TOYS.items()))
    patch.setattr(study, "path", lambda point: path)
    found, samples = made_up(world, scope)
    planned = study.Planned(study.Study(scope), Assumed(settings(scope)), found)
    return {"command": "tailrace reproduce uniboost", **study.assemble(planned, samples)}


TOYS = MappingProxyType({**published.TOYS, **{("burst", p, "mean_steps"): 6.2 for p in ("las", "boost_0.01")}})
