"""Metrics against values worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tailrace import metrics
from tailrace.metrics import Requests
from tailrace.sim.record import GAP_BINS, gap_bin, gap_values


def _requests(**changes: Any) -> Requests:
    n = 4
    nan = np.nan
    columns: dict[str, Any] = {
        "arrival_s": np.array([0.0, 1.0, 2.0, 3.0]),
        "started_s": np.array([0.0, 3.0, 2.5, nan]),
        "first_token_s": np.array([1.0, 4.0, 3.0, nan]),
        "finish_s": np.array([3.0, 4.0, nan, nan]),
        "output_tokens": np.array([5, 1, 10, 3]),
        "reason": np.array([1, 1, 0, 3]),
        "group": np.zeros(n, dtype=np.int64),
        "gaps": np.zeros((1, GAP_BINS), dtype=np.int64),
        "gap_values_s": gap_values(),
    }
    zeros = ("prompt_tokens", "generated_tokens", "preemptions", "recomputed_tokens", "gap_max_s")
    zeros += ("class_id", "tenant", "true_class", "predicted_class")  # type: ignore[assignment]
    columns |= {name: np.zeros(n, dtype=np.int64) for name in zeros}
    return Requests(**{**columns, **changes})


def test_times_of_a_request() -> None:
    r = _requests()
    np.testing.assert_array_equal(r.wait_s, [0.0, 2.0, 0.5, np.nan])
    np.testing.assert_array_equal(r.ttft_s, [1.0, 3.0, 1.0, np.nan])
    np.testing.assert_array_equal(r.e2e_s, [3.0, 3.0, np.nan, np.nan])
    np.testing.assert_array_equal(r.tpot_s, [0.5, np.nan, np.nan, np.nan])


def test_counts_and_statistics() -> None:
    found = metrics.summarise(_requests())
    assert found["counts"]["completed"] == 2
    assert found["counts"]["unfinished"] == 1
    assert found["counts"]["rejected"] == 1
    assert found["metrics"]["wait_s"]["mean"] == pytest.approx(2.5 / 3)
    assert found["metrics"]["wait_s"]["max"] == 2.0
    assert found["metrics"]["tbt_s"]["mean"] is None


def test_gaps_are_known_within_a_bin() -> None:
    values = gap_values()
    rng = np.random.default_rng(0)
    gaps = np.exp(rng.uniform(np.log(1e-6), np.log(100), 2000))
    bins = np.array([gap_bin(float(g)) for g in gaps])
    assert np.abs(values[bins] / gaps - 1).max() < 0.008
    assert gap_bin(0.0) == 0
    assert gap_bin(1e-12) == 0
    assert gap_bin(1e12) == GAP_BINS - 1
    counts = np.bincount(bins, minlength=GAP_BINS)
    found = metrics.weighted_statistics(counts, values, float(gaps.max()))
    for name, q in (("p50", 0.5), ("p99", 0.99)):
        assert found[name] == pytest.approx(np.quantile(gaps, q, method="inverted_cdf"), rel=0.008)
    assert found["mean"] == pytest.approx(gaps.mean(), rel=0.008)
    assert found["max"] == gaps.max()


@pytest.mark.parametrize(
    ("waits", "queue", "state"),
    [
        ([1, 1, 1, 1], 0, "STABLE"),
        ([1, 1, 3, 3], 0, "BACKLOGGED"),
        ([1, 1, 1, 1], 1, "BACKLOGGED"),
        ([1, 1, 3, 3], 1, "OVERLOADED"),
        ([0, 0, 0, 1e-9], 0, "STABLE"),
    ],
)
def test_load_state(waits: list[float], queue: int, state: str) -> None:
    arrival = np.arange(4.0)
    assert metrics.load_state(_requests(arrival_s=arrival, started_s=arrival + waits), queue) == state


def test_seeds_combine_into_means_with_intervals() -> None:
    def one(x: float) -> dict[str, Any]:
        return {"load_state": "STABLE" if x < 3 else "OVERLOADED", "m": dict.fromkeys(metrics.STATISTICS, x), "n": 2}

    merged = metrics.combine([one(1.0), one(2.0), one(3.0)])
    assert merged["load_state"] == "OVERLOADED"
    assert merged["m"]["mean"] == 2.0
    low, high = merged["m"]["ci"]["mean"]
    assert (high - low) / 2 == pytest.approx(4.302653 * 1.0 / np.sqrt(3), rel=1e-6)
    assert merged["n"] == 2
    assert metrics.combine([one(1.0)]) == one(1.0)
