"""Curves of promoted fractions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.errors import UserError
from tailrace.queueing import Curve


def test_between_at_and_outside_the_points() -> None:
    curve = Curve.of([(1.1, 0.9), (0.5, 0.1), (0.9, 0.5)])
    assert [curve.at(rho) for rho in (0.5, 0.9, 1.1)] == [0.1, 0.5, 0.9]
    assert curve.at(0.7) == pytest.approx(0.3)
    assert (curve.at(0.0), curve.at(7.0)) == (0.1, 0.9)
    assert Curve((0.8,), (0.4,)).at(0.1) == 0.4


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 2), st.floats(0, 1)), min_size=1, unique_by=lambda p: p[0]), st.floats(0, 3))
def test_never_beyond_what_was_measured(points: list[tuple[float, float]], rho: float) -> None:
    fractions = [phi for _, phi in points]
    assert min(fractions) <= Curve.of(points).at(rho) <= max(fractions)


@pytest.mark.parametrize(
    ("points", "text"),
    [
        ([], "0 utilisations"),
        ([(0.5, 0.1), (0.5, 0.2)], "utilisation=0.5: must be above"),
        ([(0.5, 1.1)], "fraction=1.1"),
        ([(-0.5, 0.1)], "utilisation=-0.5"),
        ([(math.nan, 0.1)], "utilisation=nan"),
    ],
)
def test_no_curves(points: list[tuple[float, float]], text: str) -> None:
    with pytest.raises(UserError, match=f"^{text}"):
        Curve.of(points)


def test_unequal_halves() -> None:
    with pytest.raises(UserError, match=r"^2 utilisations and 1 fractions make no curve"):
        Curve((0.1, 0.2), (0.5,))
