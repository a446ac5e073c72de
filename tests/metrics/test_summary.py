"""Counts and statistics against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tailrace import metrics
from tailrace.sim.record import GAP_BINS, gap_bin, gap_values

from .made_up import requests


def test_times_of_a_request() -> None:
    r = requests()
    np.testing.assert_array_equal(r.wait_s, [0.0, 2.0, 0.5, np.nan])
    np.testing.assert_array_equal(r.ttft_s, [1.0, 3.0, 1.0, np.nan])
    np.testing.assert_array_equal(r.e2e_s, [3.0, 3.0, np.nan, np.nan])
    np.testing.assert_array_equal(r.tpot_s, [0.5, np.nan, np.nan, np.nan])
    assert r.span_s == 4.0


def test_counts_and_statistics() -> None:
    found = metrics.summarise(requests())
    assert found["counts"]["completed"] == 2
    assert found["counts"]["unfinished"] == 1
    assert found["counts"]["rejected"] == 1
    assert found["metrics"]["wait_s"]["mean"] == pytest.approx(2.5 / 3)
    assert found["metrics"]["wait_s"]["max"] == 2.0
    assert found["metrics"]["tbt_s"]["mean"] is None
    assert "slo" not in found


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
