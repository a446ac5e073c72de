"""The few numbers of a run are those that its result would say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tailrace.sim.run import Result
from tailrace.studies.reproduce import points
from tailrace.studies.reproduce.measure import MEASURES, measure
from tailrace.studies.reproduce.points import Point
from tailrace.studies.reproduce.traffic import Generated

POINT = Point(Generated("qba:rate_rps=40,requests=400"), "qba", "qba", "", "label:eps_sl=0.1,eps_ls=0.2")


def _measured(point: Point, seed: int) -> tuple[dict[str, float], Result]:
    made = points.run(point, seed)
    return dict(zip(MEASURES, measure(made, point.skipped), strict=True)), made.result()


def test_they_are_those_of_the_results_summary() -> None:
    found, result = _measured(POINT, 3)
    summary = result.summary()
    by = summary["by_true_class"]
    waits = {
        "wait_mean_s": summary["metrics"]["wait_s"]["mean"],
        "wait_p99_s": summary["metrics"]["wait_s"]["p99"],
        "short_wait_p99_s": by["short"]["metrics"]["wait_s"]["p99"],
        "long_wait_p99_s": by["long"]["metrics"]["wait_s"]["p99"],
        "ttft_p99_s": summary["metrics"]["ttft_s"]["p99"],
        "e2e_mean_s": summary["metrics"]["e2e_s"]["mean"],
    }
    engine = {
        "tokens_per_s": summary["throughput"]["total_tokens_per_s"],
        "utilisation": summary["engine"]["budget_utilisation"],
        "over_limit_steps": summary["engine"]["over_limit_steps"],
        "preemptions": summary["counts"]["preemptions"],
        "completed": summary["counts"]["completed"],
        "rejected": summary["counts"]["rejected"],
        "started": 400,
        **summary["tallies"],
    }
    for name, value in {**waits, **engine}.items():
        assert found[name] == pytest.approx(value, rel=1e-12), name
    assert found["promoted"] > 0


def test_what_nobody_reached_is_not_a_number() -> None:
    everybody_short = Point(Generated("deterministic:gap_s=1,requests=5"), "fcfs", "qba", "")
    found, _ = _measured(everybody_short, 0)
    assert math.isnan(found["long_wait_p99_s"])
    assert math.isnan(found["promoted"])
    assert found["arrival_scv"] == pytest.approx(0.0, abs=1e-20)


def test_the_first_requests_can_be_left_out_of_the_waits() -> None:
    whole, _ = _measured(POINT, 3)
    late, result = _measured(Point(**{**POINT.__dict__, "skipped": 0.25}), 3)
    assert late["wait_mean_s"] == pytest.approx(float(result.requests.wait_s[100:].mean()))
    assert late["wait_mean_s"] != whole["wait_mean_s"]
    assert late["tokens_per_s"] == whole["tokens_per_s"]
    assert np.isfinite(late["long_wait_p99_s"])
