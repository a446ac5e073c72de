"""Means over seeds, their intervals, and differences paired by seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tailrace import metrics


def one(x: float) -> dict[str, Any]:
    return {"load_state": "STABLE" if x < 3 else "OVERLOADED", "m": dict.fromkeys(metrics.STATISTICS, x), "n": 2}


def run(x: float) -> dict[str, Any]:
    waits = dict.fromkeys(metrics.STATISTICS, x)
    return {"metrics": {"wait_s": waits}, "slo": {"attainment": 0.5}, "gain": {"tdg_ratio": x}, "queueing": x > 2}


def test_seeds_combine_into_means_with_intervals() -> None:
    merged = metrics.combine([one(1.0), one(2.0), one(3.0)])
    assert merged["load_state"] == "OVERLOADED"
    assert merged["m"]["mean"] == 2.0
    low, high = merged["m"]["ci"]["mean"]
    assert (high - low) / 2 == pytest.approx(4.302653 * 1.0 / np.sqrt(3), rel=1e-6)
    assert merged["m"]["by_seed"]["mean"] == [1.0, 2.0, 3.0]
    assert merged["n"] == 2
    assert metrics.combine([one(1.0)]) == one(1.0)


def test_what_some_seeds_lack_is_the_mean_of_the_others() -> None:
    merged = metrics.combine([{"a": None, "slo": {"attainment": 0.5}}, {"a": 2.0, "b": {"c": 1.0}}, {"a": 4.0}])
    assert merged["a"] == 3.0
    assert merged["b"] == {"c": 1.0}
    assert merged["slo"] == {"attainment": 0.5}


def test_lists_are_the_first_seeds() -> None:
    two = [{"paths": {"g": {"time_s": [1.0, x], "value": [x, x]}}} for x in (5.0, 7.0)]
    assert metrics.combine(two) == two[0]
    assert metrics.combine([{}, *two]) == two[0]


def test_a_truth_of_any_seed_stands() -> None:
    assert metrics.combine([{"queueing": False}, {"queueing": True}])["queueing"] is True
    assert metrics.combine([{"queueing": False}, {"queueing": False}])["queueing"] is False


def test_pairs_tell_apart_what_intervals_do_not() -> None:
    base, better = [run(x) for x in (1.0, 10.0, 40.0)], [run(x) for x in (0.8, 9.7, 39.8)]
    found = metrics.paired(better, base)
    pair = found["metrics"]["wait_s"]["p99"]
    assert pair["difference"] == pytest.approx(-0.7 / 3)
    assert pair["ci"][1] < 0
    assert found["slo"]["attainment"] == {"difference": 0.0, "ci": [0.0, 0.0]}
    assert found["gain"]["tdg_ratio"]["difference"] == pytest.approx(-0.7 / 3)
    assert "queueing" not in found
    a, b = (metrics.combine(runs)["metrics"]["wait_s"]["ci"]["p99"] for runs in (base, better))
    assert a[0] < b[1]


def test_a_value_that_one_run_lacks_is_not_paired() -> None:
    base, other = [run(1.0), run(2.0)], [run(3.0), run(5.0)]
    other[0]["metrics"]["wait_s"]["p99"] = None
    assert metrics.paired(other, base)["metrics"]["wait_s"]["mean"]["difference"] == 2.5
    assert "p99" not in metrics.paired(other, base)["metrics"]["wait_s"]
    assert metrics.paired(base, other)["metrics"]["wait_s"]["p99"] == {"difference": -3.0, "ci": None}
