"""Numbers as cells."""

from __future__ import annotations

import math

import pytest

from tailrace.report.reproduction.cells import beside, cell, mean_abs_log_ratio
from tailrace.report.reproduction.study import Value


def test_an_interval_has_the_decimals_of_its_number() -> None:
    assert cell(Value(1.3912, (0.99812, 1.4249))) == "1.39 [1.00, 1.42]"
    assert cell(Value(24512.4, (24000.0, 25000.6))) == "24,512 [24,000, 25,001]"
    assert cell(Value(0.5)) == "0.500"
    assert cell(Value(None)) == cell(None) == "–"


def test_the_papers_number_is_shown_as_printed_and_the_ratio_is_ours_over_it() -> None:
    assert beside(Value(18.3, None, 17.29)) == ["18.3", "17.29", "1.06"]
    assert beside(Value(None, None, 17.29)) == ["–", "17.29", "–"]
    assert beside(Value(1.0)) == ["1.00", "–", "–"]


def test_the_score_counts_a_half_as_much_as_a_double() -> None:
    values = [Value(2.0, None, 1.0), Value(1.0, None, 2.0), Value(3.0), Value(None, None, 1.0)]
    assert mean_abs_log_ratio(values) == pytest.approx(math.log(2))
    assert mean_abs_log_ratio([Value(3.0)]) is None
