"""Moments of samples and mixtures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.errors import UserError
from tailrace.queueing import Moments

TIMES = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30)


def test_named_distributions() -> None:
    assert Moments(2.0, 8.0).scv == 1.0  # exponential: E[S²] = 2·E[S]²
    assert Moments(3.0, 9.0).scv == 0.0
    assert Moments(0.5, 1 / 3).variance == pytest.approx(1 / 12)  # uniform on [0, 1]


@settings(deadline=None)
@given(TIMES)
def test_of_a_sample(times: list[float]) -> None:
    m = Moments.of(times)
    assert m.mean == pytest.approx(np.mean(times))
    assert m.variance == pytest.approx(np.var(times), rel=1e-6, abs=1e-9 * m.second)


@settings(deadline=None)
@given(TIMES, TIMES)
def test_a_mixture_is_the_pooled_sample(a: list[float], b: list[float]) -> None:
    mixed = Moments.mix([(len(a), Moments.of(a)), (len(b), Moments.of(b))])
    pooled = Moments.of(a + b)
    assert mixed.mean == pytest.approx(pooled.mean)
    assert mixed.second == pytest.approx(pooled.second)


def test_equal_times_have_no_variance_for_all_the_rounding() -> None:
    assert 0 <= Moments.of([0.1] * 1001).scv < 1e-12
    assert Moments.mix([(0.1, Moments(0.1, 0.1**2)), (0.2, Moments(0.1, 0.1**2))]).scv < 1e-12


@pytest.mark.parametrize(("mean", "second"), [(0.0, 1.0), (-1.0, 1.0), (1.0, 0.9), (1.0, math.inf), (math.nan, 1.0)])
def test_impossible_moments(mean: float, second: float) -> None:
    with pytest.raises(UserError, match=r"^(mean|second)="):
        Moments(mean, second)


def test_impossible_samples_and_weights() -> None:
    for sample in ([], [[1.0]], [1.0, math.nan], [1.0, -1.0]):
        with pytest.raises(UserError, match=r"^seconds: "):
            Moments.of(sample)
    one = Moments(1.0, 1.0)
    for weights in ([], [(0.0, one)], [(-1.0, one), (2.0, one)]):
        with pytest.raises(UserError, match=r"^weight"):
            Moments.mix(weights)
