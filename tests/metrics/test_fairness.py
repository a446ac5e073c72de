"""Jain's index against its known ends, and who counts."""

from __future__ import annotations

import numpy as np
import pytest

from tailrace import metrics

from .made_up import requests


def test_jains_index_is_1_for_equal_shares_and_1_over_n_for_one_taker() -> None:
    assert metrics.jain(np.full(7, 0.3)) == pytest.approx(1.0)
    assert metrics.jain(np.array([5.0, 0, 0, 0])) == pytest.approx(0.25)
    assert metrics.jain(np.array([1.0, 2.0, 3.0])) == pytest.approx(36 / 42)
    assert metrics.jain(np.zeros(3)) is None
    assert metrics.jain(np.zeros(0)) is None


def test_the_unfinished_got_nothing_and_the_rejected_do_not_count() -> None:
    # E2E 3 and 3 s alone in 1.5 and 3: slowdowns 2 and 1, shares 1/2, 1 and 0.
    found = metrics.fairness(requests(alone_s=np.array([1.5, 3.0, 1.0, 1.0])))
    assert found["jain_requests"] == pytest.approx(1.5**2 / (3 * 1.25))
    assert found["slowdown"]["max"] == 2.0
    assert "jain_tenants" not in found


def test_tenants_are_compared_by_their_mean_share() -> None:
    r = requests(alone_s=np.array([1.5, 3.0, 1.0, 1.0]), tenant=np.array([0, 1, 1, 2]))
    assert metrics.fairness(r)["jain_tenants"] == pytest.approx(1.0)  # 1/2 and (1 + 0)/2; tenant 2 was rejected
