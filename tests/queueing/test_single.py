"""One server by order of service: closed forms, values by hand, and what must hold for any times."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import lambertw

from tailrace.errors import UserError
from tailrace.queueing import Moments, ServiceTimes, allen_cunneen, single

pytestmark = pytest.mark.plain

Formula = Callable[[float, ServiceTimes], float | None]
MEANS: tuple[Formula, ...] = (single.fcfs_mean_s, single.las_mean_s, single.srpt_mean_s)
MIDDLES = np.arange(0.001, 40.0, 0.002)
EXPONENTIAL = ServiceTimes.of(MIDDLES, np.exp(-MIDDLES))
"""An exponential time of mean 1, in steps of 0.002 as far as 40."""
CONSTANT = ServiceTimes.of([2.0])
LOADS = st.floats(0.05, 0.95)


@st.composite
def times(draw: st.DrawFn) -> ServiceTimes:
    some = draw(st.lists(st.tuples(st.floats(0.01, 10.0), st.floats(0.01, 1.0)), min_size=1, max_size=6))
    return ServiceTimes.of([seconds for seconds, _ in some], [weight for _, weight in some])


def value(found: float | None) -> float:
    assert found is not None
    return found


@pytest.mark.parametrize("rho", [0.3, 0.7, 0.9])
def test_exponential_times_have_the_same_mean_whatever_is_not_foreseen(rho: float) -> None:
    assert single.fcfs_mean_s(rho, EXPONENTIAL) == pytest.approx(1 / (1 - rho), rel=1e-5)
    assert single.las_mean_s(rho, EXPONENTIAL) == pytest.approx(1 / (1 - rho), rel=1e-5)


@pytest.mark.parametrize("rho", [0.5, 0.8])
def test_shortest_remaining_meets_the_integral_for_exponential_times(rho: float) -> None:
    def load(x: float) -> float:
        return rho * (1 - math.exp(-x) * (1 + x))

    def of_size(x: float) -> float:
        second = float(quad(lambda t: t * t * math.exp(-t), 0, x)[0]) + x * x * math.exp(-x)
        residence = float(quad(lambda t: 1 / (1 - load(t)), 0, x)[0])
        return rho * second / (2 * (1 - load(x)) ** 2) + residence

    expected = float(quad(lambda x: math.exp(-x) * of_size(x), 0, 40)[0])
    assert single.srpt_mean_s(rho, EXPONENTIAL) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("rho", [0.4, 0.7])
def test_exponential_times_decay_by_what_the_server_has_left(rho: float) -> None:
    assert single.decay_rate(rho, EXPONENTIAL) == pytest.approx(1 - rho, rel=1e-5)
    assert single.fcfs_tail_constant(rho, EXPONENTIAL) == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.45])
def test_equal_times(rate: float) -> None:
    rho = 2.0 * rate
    wait = rate * 4.0 / (2 * (1 - rho))
    assert single.fcfs_mean_s(rate, CONSTANT) == pytest.approx(2.0 + wait)
    assert single.srpt_mean_s(rate, CONSTANT) == pytest.approx(2.0 + wait)
    assert single.las_mean_s(rate, CONSTANT) == pytest.approx((2.0 + wait) / (1 - rho))
    expected = -rho - lambertw(-rho * math.exp(-rho), -1).real
    assert single.decay_rate(rate, CONSTANT) == pytest.approx(expected / 2.0)
    assert single.boost_tail_constant(rate, CONSTANT) == pytest.approx(single.fcfs_tail_constant(rate, CONSTANT))


def test_two_sizes_by_hand() -> None:
    """λ = 1/4, times 1 and 3 alike: ρ = 1/2, of the short alone 1/8."""
    two = ServiceTimes.of([3.0, 1.0, 1.0, 3.0])
    assert single.fcfs_mean_s(0.25, two) == pytest.approx(2 + 0.25 * 5 / (2 * 0.5))
    short = 0.25 * 1 / (2 * 0.75**2) + 1 / 0.75
    long = 0.25 * 5 / (2 * 0.5**2) + 3 / 0.5
    assert single.las_mean_s(0.25, two) == pytest.approx((short + long) / 2)
    short = 0.25 * (0.5 + 0.5) / (2 * 1 * 0.875) + 1
    long = 0.25 * 5 / (2 * 0.875 * 0.5) + 1 + 2 / 0.875
    assert single.srpt_mean_s(0.25, two) == pytest.approx((short + long) / 2)


@given(times(), LOADS)
def test_the_mean_is_what_the_moments_say_and_srpt_is_the_least(s: ServiceTimes, rho: float) -> None:
    rate = rho / s.mean()
    fcfs, las, srpt = (value(formula(rate, s)) for formula in MEANS)
    wait = value(allen_cunneen(rate, Moments(s.mean(), s.mean(s.seconds**2)), 1))
    assert fcfs == pytest.approx(wait + s.mean())
    assert s.mean() <= srpt * (1 + 1e-9)
    assert srpt <= min(fcfs, las) * (1 + 1e-9)


@given(times(), LOADS)
def test_the_decay_rate_solves_its_equation(s: ServiceTimes, rho: float) -> None:
    rate = rho / s.mean()
    gamma = value(single.decay_rate(rate, s))
    assert gamma > 0
    assert rate * s.mean(np.expm1(gamma * s.seconds)) == pytest.approx(gamma)


@given(times(), LOADS, st.floats(0.05, 20.0))
def test_no_boost_has_a_lower_constant_than_that_at_the_decay_rate(s: ServiceTimes, rho: float, factor: float) -> None:
    rate = rho / s.mean()
    gamma = value(single.decay_rate(rate, s))
    least, fcfs = value(single.boost_tail_constant(rate, s)), value(single.fcfs_tail_constant(rate, s))
    assert least <= value(single.boost_tail_constant(rate, s, factor * gamma)) * (1 + 1e-9)
    assert least <= fcfs * (1 + 1e-9)
    assert single.boost_tail_constant(rate, s, 1e6 * gamma / s.seconds[0]) == pytest.approx(fcfs)


def test_values_are_gathered_and_weights_are_ratios() -> None:
    found = ServiceTimes.of([3.0, 1.0, 3.0, 9.0], [2, 4, 2, 0])
    assert (found.seconds.tolist(), found.shares.tolist()) == ([1.0, 3.0], [0.5, 0.5])


@pytest.mark.parametrize("formula", [*MEANS, single.decay_rate, single.fcfs_tail_constant, single.boost_tail_constant])
def test_an_overloaded_server_has_no_value(formula: Formula) -> None:
    assert formula(0.5, CONSTANT) is None
    assert formula(0.4, CONSTANT) is not None


def test_an_idle_server_takes_the_time_itself() -> None:
    assert [formula(0.0, CONSTANT) for formula in MEANS] == [2.0, 2.0, 2.0]
    with pytest.raises(UserError, match="rate=0"):
        single.decay_rate(0.0, CONSTANT)


@pytest.mark.parametrize(
    ("seconds", "weights", "message"),
    [([0.0, 1.0], None, "above 0"), ([], None, "at least one"), ([1.0], [0.0], "weights: at least one")],
)
def test_what_is_no_distribution_is_refused(seconds: list[float], weights: list[float] | None, message: str) -> None:
    with pytest.raises(UserError, match=message):
        ServiceTimes.of(seconds, weights)
