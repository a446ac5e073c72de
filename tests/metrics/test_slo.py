"""Who met the objectives: the unfinished never do."""

from __future__ import annotations

import numpy as np
import pytest

from tailrace import metrics

from .made_up import requests

INF = np.inf


def test_nothing_is_said_without_objectives() -> None:
    assert metrics.attainment(requests()) is None


def test_unfinished_and_rejected_requests_miss_every_objective() -> None:
    found = metrics.attainment(requests(ttft_slo_s=np.full(4, 1e9)))
    assert found == {"attainment": 0.5, "goodput_rps": 2 / 4.0, "ttft_attainment": 0.5, "tpot_attainment": None}


def test_each_objective_counts_by_itself_and_all_together() -> None:
    # TTFT 1 and 3 s, TPOT 0.5 s and none (one token).
    r = requests(ttft_slo_s=np.array([1.1, 2.9, INF, INF]), tpot_slo_s=np.array([0.4, 0.001, INF, INF]))
    np.testing.assert_array_equal(np.array(metrics.met(r)), [[True, False, False, False], [False, True, False, False]])
    found = metrics.attainment(r)
    assert found == {"attainment": 0.0, "goodput_rps": 0.0, "ttft_attainment": 0.5, "tpot_attainment": 0.5}


def test_an_objective_just_reached_is_missed() -> None:
    # TTFT 1 s, TPOT 0.5 s, both exactly.
    above = np.array([np.nextafter(1.0, 2), np.nextafter(0.5, 1)])
    for ttft, tpot, want in ((1.0, above[1], 0.0), (above[0], 0.5, 0.0), (above[0], above[1], 1.0)):
        r = requests(ttft_slo_s=np.array([ttft, INF, INF, INF]), tpot_slo_s=np.array([tpot, INF, INF, INF]))
        found = metrics.attainment(r)
        assert found is not None
        assert found["attainment"] == want
        assert found["goodput_rps"] == want / 4.0


def test_requests_without_objectives_are_not_counted() -> None:
    r = requests(ttft_slo_s=np.array([1.1, INF, INF, INF]))
    found = metrics.attainment(r)
    assert found is not None
    assert found["attainment"] == 1.0
    assert found["goodput_rps"] == pytest.approx(0.25)
    assert metrics.attainment(r, np.array([False, True, True, True])) is None
    assert "slo" in metrics.summarise(r)
