"""Predicted classes under label errors, against labels drawn request by request."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.errors import UserError
from tailrace.queueing import Moments, predicted_moments, predicted_rates

SHARE = st.floats(0, 1)


def test_by_hand() -> None:
    """λ = 32, π_L = 0.15: of 27.2 short 10 % go over, of 4.8 long 40 %."""
    assert predicted_rates(32, 0.15, 0.10, 0.0) == pytest.approx((24.48, 7.52))
    assert predicted_rates(32, 0.15, 0.0, 0.40) == pytest.approx((29.12, 2.88))
    assert predicted_rates(32, 0.15, 0.0, 0.0) == pytest.approx((27.2, 4.8))


@settings(deadline=None)
@given(st.floats(0, 1e3), SHARE, SHARE, SHARE)
def test_nobody_is_lost(rate: float, share_long: float, eps_sl: float, eps_ls: float) -> None:
    short, long = predicted_rates(rate, share_long, eps_sl, eps_ls)
    assert short >= 0
    assert long >= 0
    assert short + long == pytest.approx(rate)


def test_labels_drawn_one_by_one() -> None:
    rng = np.random.default_rng(3)
    n, share_long, eps_sl, eps_ls = 400_000, 0.15, 0.2, 0.3
    truly_long = rng.random(n) < share_long
    seconds = np.where(truly_long, rng.gamma(4.0, 0.5, n), rng.exponential(0.3, n))
    long = truly_long ^ (rng.random(n) < np.where(truly_long, eps_ls, eps_sl))
    true = [Moments.of(seconds[of_class]) for of_class in (~truly_long, truly_long)]
    rates, moments = (
        predicted_rates(1.0, share_long, eps_sl, eps_ls),
        predicted_moments(share_long, eps_sl, eps_ls, *true),
    )
    assert rates.long == pytest.approx(long.mean(), rel=0.01)
    for found, of_class in zip(moments, (~long, long), strict=True):
        assert found.mean == pytest.approx(seconds[of_class].mean(), rel=0.01)
        assert found.second == pytest.approx((seconds[of_class] ** 2).mean(), rel=0.02)


@settings(deadline=None)
@given(st.floats(0.01, 0.99), st.floats(0, 0.9), st.floats(0, 0.9))
def test_errors_move_requests_and_change_none(share_long: float, eps_sl: float, eps_ls: float) -> None:
    short, long = Moments(1.0, 2.0), Moments(5.0, 30.0)
    rates = predicted_rates(1.0, share_long, eps_sl, eps_ls)
    all_ = Moments.mix(zip(rates, predicted_moments(share_long, eps_sl, eps_ls, short, long), strict=True))
    truth = Moments.mix([(1 - share_long, short), (share_long, long)])
    assert (all_.mean, all_.second) == pytest.approx((truth.mean, truth.second))


def test_what_cannot_be_is_refused() -> None:
    one = Moments(1.0, 1.0)
    with pytest.raises(UserError, match=r"^nobody is predicted long with share_long=0.1, eps_sl=0, eps_ls=1"):
        predicted_moments(0.1, 0, 1, one, one)
    with pytest.raises(UserError, match=r"^nobody is predicted short"):
        predicted_moments(1.0, 0, 0, one, one)
    with pytest.raises(UserError, match=r"^eps_sl=1.5"):
        predicted_rates(1.0, 0.1, 1.5, 0.0)
    with pytest.raises(UserError, match=r"^rate=-1"):
        predicted_rates(-1.0, 0.1, 0.5, 0.0)
