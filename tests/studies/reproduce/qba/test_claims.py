"""Claims on made-up worlds: in the paper's they hold, in a flat one they do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from tailrace.studies.reproduce.cells import Cell
from tailrace.studies.reproduce.measure import MEASURES
from tailrace.studies.reproduce.points import Samples
from tailrace.studies.reproduce.qba import trace_claims
from tailrace.studies.reproduce.qba.claims import CLAIMS, View, judge
from tailrace.studies.reproduce.qba.plan import EXPERIMENTS, POLICIES, Scope, cells
from tailrace.studies.reproduce.qba.profiles import PROFILES

SEEDS = 30
World = Callable[[Cell, str], float]
ORDER: Mapping[str, Mapping[str, float]] = {
    "mean": {"psf": 0.83, "qba": 1.42, "fcfs": 2.02, "aa": 2.5},
    "p99": {"fcfs": 5, "aa": 6, "qba": 8, "psf": 25},
}


def as_in_the_paper(cell: Cell, metric: str) -> float:
    """Numbers with every shape that the paper describes."""
    at, policy = cell.at, cell.policy
    if cell.experiment == "fig2":
        if metric == "wait_p99_s" and at["rate_rps"] == 26:
            return {"fcfs": 1.0, "aa": 1.05, "qba": 1.1, "psf": 3.0}[policy]
        return float(at["rate_rps"] - 25) * ORDER["mean" if metric == "wait_mean_s" else "p99"][policy]
    if cell.experiment == "fig3":
        return _over_parameters(at, policy, metric)
    if cell.experiment in ("fig4", "fig5"):
        return _over_errors(cell.experiment, next(iter(at.values())), policy, metric)
    table = {
        "wait_mean_s": {"fcfs": 0.179, "psf": 0.123, "aa": 0.178, "qba": 0.146},
        "wait_p99_s": {"fcfs": 0.771, "psf": 1.376, "aa": 0.90, "qba": 0.951},
        "short_wait_p99_s": {"fcfs": 0.771, "psf": 0.285, "aa": 0.970, "qba": 0.565},
        "long_wait_p99_s": {"fcfs": 0.766, "psf": 2.097, "aa": 0.491, "qba": 1.446},
        "tokens_per_s": dict.fromkeys(POLICIES, 24_700.0),
        "utilisation": dict.fromkeys(POLICIES, 0.9),
    }
    return table.get(metric, {}).get(policy, 0.0)


def _over_parameters(at: Mapping[str, Any], policy: str, metric: str) -> float:
    if "k" in at:
        k = int(at["k"])
        return 2.2 - 0.005 * k**2 if metric == "wait_mean_s" else 5.5 + 0.2 * abs(k - 4)
    if "aging_quantile" in at:
        q = at["aging_quantile"]
        return {"qba": 12.0 if q == 1 else 8.0, "aa": 20.0 if q == 1 else 9.0 - 3 * q}[policy]
    return ORDER["mean" if metric == "wait_mean_s" else "p99"][policy]


def _over_errors(figure: str, rate: float, policy: str, metric: str) -> float:
    kind = metric.split("_")[0]
    if figure == "fig4":
        mean = {"psf": 0.83 + 2 * rate, "qba": 1.42 - 2.9 * rate if rate <= 0.1 else 0.83 + 2 * rate + 0.1}
        tail = {"short": 1.24 + 115 * min(rate, 0.05), "long": 11.1}
        if policy == "qba":
            tail = {"short": 3.44 + 41.5 * min(rate, 0.1), "long": 7.64 + 18 * min(rate, 0.1)}
    else:
        mean = {"psf": 0.83 + 0.2 * rate, "qba": 1.42 + 1.25 * rate}
        tail = {"short": 1.24 + rate, "long": 11.1 + 15.5 * rate}
        if policy == "qba":
            tail = {"short": 3.44 + 4.5 * rate, "long": 7.64 - 6 * rate}
    mean |= {"fcfs": 2.02, "aa": 2.06}
    return float(mean[policy] if kind == "wait" else (tail[kind] if policy in ("psf", "qba") else 3.0))


def flat(cell: Cell, metric: str) -> float:
    """Nothing makes any difference."""
    return 1.0


FORMULA = {(policy, rate): w * rate for rate in (26, 32, 40) for policy, w in zip(POLICIES, (4, 1, 3, 2), strict=True)}


def _view(world: World, seeds: int = SEEDS, noise: float = 0.01) -> View:
    scope = Scope(EXPERIMENTS, seeds, False, "trace.csv", 0.565)
    found = [cell for cell in cells(PROFILES["paper"], scope) if cell.experiment != "choices"]
    # Fig. 4 and 5 share their first points with the others: one world must not contradict itself there.
    rng = np.random.Generator(np.random.PCG64(2))
    samples: Samples = {}
    for i, cell in enumerate(found):
        # A point of its own for each cell, so that made-up figures need not agree with one another.
        point = PROFILES["paper"].point(cell.policy, 10.0 + i)
        rows = np.full((seeds, len(MEASURES)), np.nan)
        for metric in cell.metrics:
            rows[:, MEASURES.index(metric)] = world(cell, metric) * (1 + noise * rng.standard_normal(seeds))
        if cell.experiment == "table2":
            rows[:, MEASURES.index("over_limit_steps")] = 0
        samples[point] = rows
        found[i] = Cell(cell.experiment, cell.policy, cell.at, point, cell.metrics)
    formula: dict[tuple[str, int], float | None] = dict.fromkeys(FORMULA, 1.0)
    if world is as_in_the_paper:
        formula.update(FORMULA)
    return View(found, samples, {"stated": formula, "budget": formula})


def test_every_claim_holds_in_the_papers_own_world() -> None:
    judged = judge(_view(as_in_the_paper), EXPERIMENTS)
    assert len(judged) == len(CLAIMS)
    assert [(c["claim"], c["why"]) for c in judged if c["holds"] is not True] == []


def test_no_claim_of_a_difference_holds_in_a_flat_world() -> None:
    judged = judge(_view(flat), EXPERIMENTS)
    # What the paper calls unchanged is true where nothing changes.
    unchanged = {c["claim"] for c in judged if c["holds"]}
    assert {claim.partition(",")[0] for claim in unchanged} == {
        "QBA's P99 wait is flat (within 15 % of γ = 0.8) for γ from 0.5 to 0.95",
        "PSF's mean wait changes little with ε_LS: at 0.4 within 20 % of that without errors",
        "AA's true-long P99 is stable at high ε_LS: from 0.2 to 0.4 it changes by less than 25 %",
        "At low load FCFS's and QBA's P99 are very close (within 30 % at λ = 26)",
        "Mean wait over k is nearly flat for very small k (k = 4 within 10 % of k = 2)",
        "All policies have the same throughput (within 2 %)",
        "No step has more live KV than there is",
    }


@pytest.mark.parametrize("claim", [claim.text for claim in CLAIMS if claim.experiment != "table2"])
def test_reversing_the_policies_or_the_axis_breaks_it(claim: str) -> None:
    """With means and tails turned upside down no claim about the synthetic load stays true."""

    def upside_down(cell: Cell, metric: str) -> float:
        return 1.0 / (as_in_the_paper(cell, metric) or 1.0) ** 3

    view = _view(upside_down)
    view.formula = {reading: {k: 1 / v for k, v in FORMULA.items()} for reading in ("stated", "budget")}
    (found,) = [c for c in judge(view, EXPERIMENTS) if c["claim"] == claim]
    still = (
        *("QBA's P99 wait is flat", "AA's true-long P99 is stable", "PSF's and QBA's mean waits converge"),
        *("Mean wait over k is nearly flat", "AA is more sensitive"),
    )
    assert found["holds"] is not True or claim.startswith(still), found


def test_too_few_seeds_are_not_known_rather_than_false() -> None:
    judged = judge(_view(as_in_the_paper, seeds=2, noise=0.6), ("fig2", "fig3", "fig4", "fig5"))
    assert {c["holds"] for c in judged if c["experiment"] == "table2"} == {None}
    assert sum(c["holds"] is None for c in judged) > len(judged) / 2


def test_what_was_not_run_is_not_tested() -> None:
    view = _view(as_in_the_paper)
    judged = judge(view, ("fig3",))
    assert {c["holds"] for c in judged if c["experiment"] != "fig3"} == {None}
    assert all(c["why"].startswith("not tested") for c in judged if c["experiment"] != "fig3")
    empty = judge(View([], {}, {}), EXPERIMENTS)
    assert {c["holds"] for c in empty} == {None}


def test_both_protocols_are_judged() -> None:
    texts = [claim.text for claim in CLAIMS if claim.experiment == "table2"]
    for name in trace_claims.PROTOCOLS.values():
        assert sum(name in text for text in texts) == len(texts) / 2
