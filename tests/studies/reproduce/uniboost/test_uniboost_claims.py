"""UniBoost's claims on made-up worlds: in the article's they hold, in a flat one those of a difference do not."""

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
from tailrace.studies.reproduce.uniboost import claims, published
from tailrace.studies.reproduce.uniboost.claims import CLAIMS, View, gain
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
        self.samples = {}


def _view(world: World, toys: Mapping[tuple[str, str, str], float]) -> View:
    found = cells(SCOPE, Assumed(settings(SCOPE)))
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
    view = View(found, samples)
    view.toys = toys
    return view


TOYS = MappingProxyType({**published.TOYS, **{("burst", p, "mean_steps"): 6.2 for p in ("las", "boost_0.01")}})


def test_every_claim_holds_in_the_articles_own_world() -> None:
    judged = CLAIMS.judge(_view(as_in_the_article, TOYS), EXPERIMENTS)
    assert len(judged) == len(CLAIMS) > 30
    assert [(c["claim"], c["why"]) for c in judged if c["holds"] is not True] == []


ALIKE = ("throughput within 1 %", "at most 35 % worse", "γ ends within 5 %")
"""What a world without differences bears out too."""


def test_no_claim_of_a_difference_holds_in_a_flat_world() -> None:
    judged = CLAIMS.judge(_view(flat, dict.fromkeys(TOYS, 5.0)), EXPERIMENTS)
    held = [c["claim"] for c in judged if c["holds"] is True]
    assert [text for text in held if not any(part in text for part in ALIKE)] == []


def test_what_was_not_run_is_not_tested() -> None:
    judged = CLAIMS.judge(_view(as_in_the_article, TOYS), ("toys",))
    assert {c["holds"] for c in judged if c["experiment"] == "toys"} == {True}
    assert {(c["holds"], c["why"][:10]) for c in judged if c["experiment"] != "toys"} == {(None, "not tested")}
    bare = View([], {})
    bare.toys = TOYS
    judged = CLAIMS.judge(bare, EXPERIMENTS)
    assert {c["holds"] for c in judged if c["experiment"] != "toys"} == {None}


@pytest.mark.parametrize(("metric", "expected"), [("e2e_p99_s", 20.0), ("requests_per_s", -20.0)])
def test_gains_are_per_cent_better(metric: str, expected: float) -> None:
    ours, base = np.array([8.0, 16.0, 8.0]), np.array([10.0, 20.0, 10.0])
    found = gain(ours, base, metric)
    assert found.value == pytest.approx(expected)
    assert found.low <= found.value <= found.high


def test_knees_are_where_the_tail_has_doubled() -> None:
    view = _view(as_in_the_article, TOYS)
    for policy, start in KNEES.items():
        assert claims.knee(view, policy).mean() == pytest.approx(start + math.log(2) / 10, abs=0.04), policy


def test_printed_numbers_stand_beside_ours() -> None:
    at: dict[str, Any] = {"mix": "mix-2", "rule": "srpt_swap"}
    assert published.value("against", "uniboost_high", "e2e_p99_gain", at) == 35.1
    assert published.value("against", "uniboost_high", "e2e_p99_gain", {**at, "mix": "mix-1"}) is None
    assert published.value("starvation", "srpt_decode_first", "long_preempted_p99_s", {}) == 18.6
    assert published.value("starvation", "uniboost_low", "short_e2e_p99_s", {}) == 3.62
    assert published.value("toys", "fcfs", "mean_steps", {"schedule": "convoy"}) == 9.0
    assert published.value("main", "fcfs", "ttft_mean_s", {"mix": "mix-2"}) is None
