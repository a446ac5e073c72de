from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from tailrace.errors import UserError
from tailrace.table import F8
from tailrace.workloads import arrivals

MANY = 200_000


def gaps(times: F8) -> F8:
    return np.diff(times, prepend=0.0)


def counts(times: F8, window_s: float) -> F8:
    return np.bincount((times // window_s).astype(np.int64))[:-1].astype(np.float64)


@pytest.mark.parametrize("cv", [0.3, 1.0, 3.0, 6.0])
def test_gamma_gaps_have_their_mean_and_cv(cv: float) -> None:
    found = gaps(arrivals.gamma(2, MANY, 8.0, cv))
    assert found.mean() == pytest.approx(1 / 8, rel=5 * cv / MANY**0.5)
    assert found.std() / found.mean() == pytest.approx(cv, rel=0.03)
    for quantile in (0.6, 0.8, 0.95, 0.999):  # shorter gaps are lost in the rounding of the sums
        exact = stats.gamma.ppf(quantile, 1 / cv**2, scale=cv**2 / 8)
        assert np.mean(found <= exact) == pytest.approx(quantile, abs=0.005)
    assert abs(np.corrcoef(found[1:], found[:-1])[0, 1]) < 0.01


def test_gamma_of_cv_0_is_a_metronome() -> None:
    assert arrivals.gamma(0, 4, 2.0, 0.0).tolist() == [0.5, 1.0, 1.5, 2.0]


def test_on_off_has_the_rates_and_durations_asked_for() -> None:
    times = arrivals.on_off(3, MANY, 100.0, 0.0, 2.0, 6.0)
    assert MANY / times[-1] == pytest.approx(25, rel=0.1)  # of 1,000 cycles
    silent = gaps(times)[gaps(times) > 0.2]  # at 100/s such a gap has probability e^-20
    assert silent.mean() == pytest.approx(0.2 + 6.0, rel=0.1)  # exponential: what is left has the mean again
    bursts = np.diff(np.flatnonzero(gaps(times) > 0.2))
    assert bursts.mean() == pytest.approx(2.0 * 100, rel=0.1)


def test_on_off_of_equal_rates_is_poisson() -> None:
    assert stats.kstest(gaps(arrivals.on_off(1, MANY, 5.0, 5.0, 1.0, 3.0)), "expon", args=(0, 0.2)).pvalue > 1e-3


def test_on_off_dispersion_is_that_of_the_process() -> None:
    # MMPP: Var N(t)/E N(t) → 1 + 2 p q (r₁ − r₀)² / ((α + β) r̄), α and β the rates of leaving, for long t.
    on, off, on_s, off_s = 20.0, 2.0, 1.0, 3.0
    p, q, leaving = on_s / (on_s + off_s), off_s / (on_s + off_s), 1 / on_s + 1 / off_s
    mean = p * on + q * off
    exact = 1 + 2 * p * q * (on - off) ** 2 / (leaving * mean)
    found = counts(arrivals.on_off(4, 400_000, on, off, on_s, off_s), 60.0)
    assert found.var() / found.mean() == pytest.approx(exact, rel=0.1)


def test_spikes_are_quiet_but_for_over_50_requests_a_second() -> None:
    times = arrivals.spikes(5, MANY, 2.0, 50.0, 2.5, 2.0, 60.0)
    found = counts(times, 1.0)
    assert np.median(found) == 2
    assert found.max() > 100
    assert 0.01 < np.mean(found > 40) < 0.05  # spikes take 2 s in 62
    mean = (60 * 2 + 2 * 50 * 2.5 / 1.5) / 62
    assert MANY / times[-1] == pytest.approx(mean, rel=0.1)


RATED: dict[str, Callable[[int, float], F8]] = {
    "poisson": lambda n, f: arrivals.poisson(7, n, 3.0 * f),
    "gamma": lambda n, f: arrivals.gamma(7, n, 3.0 * f, 2.0),
    "on_off": lambda n, f: arrivals.on_off(7, n, 9.0 * f, 0.5 * f, 4.0 / f, 8.0 / f),
    "spikes": lambda n, f: arrivals.spikes(7, n, 1.0 * f, 50.0 * f, 2.5, 2.0 / f, 9.0 / f),
}


@pytest.mark.parametrize("name", RATED)
def test_another_rate_stretches_the_same_arrivals(name: str) -> None:
    np.testing.assert_allclose(RATED[name](2000, 1.0), 4 * RATED[name](2000, 4.0), rtol=1e-9)


@pytest.mark.parametrize("name", RATED)
def test_fewer_are_the_first_of_more(name: str) -> None:
    many = RATED[name](5000, 1.0)
    for n in (1, 70, 1000):
        np.testing.assert_allclose(RATED[name](n, 1.0), many[:n], rtol=1e-12)
    assert all(a <= b for a, b in itertools.pairwise(many))


def test_absurd_phases_are_refused() -> None:
    with pytest.raises(UserError, match=r"1000 arrivals would take .* changes of the rate; ask for fewer"):
        arrivals.on_off(0, 1000, 1.0, 1.0, 1e-6, 1e-6)
