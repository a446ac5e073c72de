"""Rows found by what they are about."""

from __future__ import annotations

import math

import pytest

from tailrace.report.reproduction.study import Study, Value

from .documents import document, row


def test_places_that_were_added_up_are_found_by_their_plain_number() -> None:
    study = Study(document())
    value = study.value("fig4", "psf", "short_wait_p99_s", {"eps_sl": 0.1 + 0.05 - 0.1})
    assert value is not None
    assert value.paper == 7.03
    assert value.ratio == pytest.approx((1.2 * 1.05 + 5.5) / 7.03)


def test_a_curve_ascends_and_leaves_out_the_run_at_the_defaults() -> None:
    made = document()
    made["rows"].reverse()
    study = Study(made)
    assert list(study.curve("fig3", "qba", "wait_p99_s", "k")) == [2, 4, 6, 8, 10, 12, 14]
    assert study.value("fig3", "qba", "wait_p99_s", {}) == Value(6.1, (6.1 * 0.95, 6.1 * 1.05), None, 100)
    assert study.curve("fig3", "fcfs", "wait_p99_s", "k") == {}


def test_profiles_are_apart_and_the_first_is_the_default() -> None:
    study = Study(document(("paper", "other")))
    first, second = (study.value("fig3", "psf", "wait_mean_s", {}, p) for p in (None, "other"))
    assert first is not None
    assert second is not None
    assert first.measured == 0.8
    assert second.measured == pytest.approx(0.88)
    assert study.has("table2")
    assert not study.has("table2", "absent")


def test_what_is_not_finite_is_not_known() -> None:
    rows = [row("paper", "fig2", "psf", "wait_mean_s", {"rate_rps": 30.0}, None, paper=1.0)]
    rows.append({**row("paper", "fig2", "qba", "wait_mean_s", {"rate_rps": 30.0}, math.nan), "ci": [1.0, math.inf]})
    study = Study(document(rows=rows))
    assert study.value("fig2", "psf", "wait_mean_s", {"rate_rps": 30}) == Value(None, None, 1.0, 100)
    assert study.value("fig2", "qba", "wait_mean_s", {"rate_rps": 30}) == Value(None, None, None, 100)


def test_without_values_by_seed_intervals_decide() -> None:
    assert Value(1.0, (0.9, 1.1)).tied(Value(1.15, (1.1, 1.2)))
    assert not Value(1.0, (0.9, 1.1)).tied(Value(1.15, (1.11, 1.2)))
    assert not Value(1.0).tied(Value(1.0, (0.9, 1.1)))


def test_values_by_seed_are_paired() -> None:
    a = Value(2.0, (1.0, 3.0), by_seed=(1.0, 2.0, 3.0, 2.0))
    b = Value(2.1, (1.1, 3.1), by_seed=(1.1, 2.1, 3.09, 2.11))
    assert not a.tied(b)  # though the intervals overlap
    assert a.tied(Value(2.0, (1.9, 2.1), by_seed=(1.2, 1.8, 3.1, 1.9)))
    assert not a.tied(Value(2.1, (1.1, 3.1), by_seed=(None, 2.1, 3.1, 2.11)))
