"""How a number stands in a study's document."""

from __future__ import annotations

import numpy as np
import pytest

from tailrace.studies.reproduce.rows import Rows
from tailrace.studies.reproduce.verdicts import Ratio

pytestmark = pytest.mark.plain

ROWS = Rows("mine", lambda experiment, policy, metric, at: 7.0 if (experiment, at) == ("fig1", {"load": 1}) else None)


def test_seeds_give_a_mean_an_interval_and_their_own_values() -> None:
    row = ROWS.seeds("fig1", "fcfs", "wait_s", {"load": 1}, np.array([1.0, 3.0, np.nan]))
    assert (row["measured"], row["seeds"], row["paper"], row["profile"]) == (2.0, 2, 7.0, "mine")
    assert row["by_seed"] == [1.0, 3.0, None]
    assert row["ci"][0] < 1.0 < 3.0 < row["ci"][1]


def test_nobody_reached_it() -> None:
    row = ROWS.seeds("fig1", "fcfs", "wait_s", {"load": 2}, np.full(3, np.nan))
    assert (row["measured"], row["ci"], row["seeds"], row["paper"]) == (None, None, 0, None)


def test_a_ratio_has_its_own_interval_or_none() -> None:
    assert ROWS.ratio("fig1", "fcfs", "gain", {}, Ratio(2.0, 1.0, 3.0), 5)["ci"] == [1.0, 3.0]
    assert ROWS.ratio("fig1", "fcfs", "gain", {}, Ratio(2.0, -np.inf, np.inf), 1)["ci"] is None
    assert ROWS.ratio("fig1", "fcfs", "gain", {}, Ratio(np.nan, np.nan, np.nan), 5)["measured"] is None
