"""Erlang B and C against exact fractions, published tables and their limits."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, pdtr

from tailrace.errors import UserError
from tailrace.queueing import erlang_b, erlang_c


def by_factorials(n: int, a: Fraction) -> tuple[Fraction, Fraction]:
    """B and C by their textbook sums, in exact arithmetic."""
    terms = [a**k / math.factorial(k) for k in range(n + 1)]
    last = terms[n] * n / (n - a)
    return terms[n] / sum(terms), last / (sum(terms[:n]) + last)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 60])
def test_the_textbook_sums(n: int) -> None:
    for share in (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10), Fraction(999, 1000)):
        b, c = by_factorials(n, share * n)
        assert erlang_b(n, float(share * n)) == pytest.approx(float(b), rel=1e-12)
        assert erlang_c(n, float(share * n)) == pytest.approx(float(c), rel=1e-10)


@pytest.mark.parametrize(("n", "offered"), [(1, 0.0101), (10, 4.461), (20, 12.03), (100, 84.06)])
def test_the_published_table_of_one_percent_loss(n: int, offered: float) -> None:
    assert erlang_b(n, offered) == pytest.approx(0.01, rel=3e-3)


def test_gross_and_harris_clinic() -> None:
    """M/M/3 at a = 2: C = 4/9 (p0 = 1/9, Lq = 8/9), Fundamentals of Queueing Theory §2.3."""
    assert erlang_c(3, 2.0) == pytest.approx(4 / 9, rel=1e-14)


def test_one_server_waits_as_often_as_it_is_busy() -> None:
    for rho in (0.0, 1e-9, 0.3, 0.999):
        assert erlang_c(1, rho) == pytest.approx(rho, rel=1e-12)


@pytest.mark.parametrize("n", [1000, 20_000])
def test_many_servers_do_not_overflow(n: int) -> None:
    """Against Poisson's probabilities, B = p(n)/P(X <= n), and Halfin and Whitt's limit of C."""
    beta = 1.0
    a = n - beta * math.sqrt(n)
    assert erlang_b(n, a) == pytest.approx(math.exp(n * math.log(a) - a - gammaln(n + 1)) / pdtr(n, a), rel=1e-6)
    density, below = math.exp(-(beta**2) / 2) / math.sqrt(2 * math.pi), (1 + math.erf(beta / math.sqrt(2))) / 2
    assert erlang_c(n, a) == pytest.approx(1 / (1 + beta * below / density), rel=1.2 / math.sqrt(n))


def test_at_and_past_saturation_everybody_waits() -> None:
    assert erlang_c(4, 4.0) == erlang_c(4, 9.0) == 1.0
    assert 0.999999 < erlang_c(4, 4.0 - 1e-7) < 1.0


@settings(deadline=None)
@given(st.integers(1, 80), st.floats(0, 200))
def test_probabilities_in_order(n: int, a: float) -> None:
    b, c, rounding = erlang_b(n, a), erlang_c(n, a), 1 + 1e-12
    assert 0 <= b <= c * rounding <= rounding
    assert erlang_b(n + 1, a) <= b * rounding
    assert erlang_c(n + 1, a) <= c * rounding


@pytest.mark.parametrize(("n", "a"), [(0, 1.0), (2.5, 1.0), (True, 1.0), (2, -0.1), (2, math.inf), (2, math.nan)])
def test_what_cannot_be_is_refused(n: int, a: float) -> None:
    for formula in (erlang_b, erlang_c):
        with pytest.raises(UserError, match=r"^(servers|offered)="):
            formula(n, a)
