"""Least squares kept as a triangular factor."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
import pytest

from tailrace.errors import UserError
from tailrace.queueing import LeastSquares

NAMES = ("constant", "first", "second")


def samples(n: int, seed: int) -> tuple[list[np.ndarray[tuple[int], np.dtype[np.float64]]], list[float]]:
    rng = np.random.default_rng(seed)
    first, second = rng.uniform(1, 4096, n), rng.uniform(1, 1e5, n)
    return [first, second], (0.5 + 2e-3 * first - 3e-6 * second + rng.normal(0, 0.1, n)).tolist()


def test_many_lots_are_one_lot() -> None:
    lots = [samples(n, n) for n in (1, 2, 3, 50, 400)]
    added = reduce(add, (LeastSquares.of(features, np.array(target)) for features, target in lots))
    design = np.column_stack([np.ones(456), np.hstack([features for features, _ in lots]).T])
    pooled = np.concatenate([target for _, target in lots])
    expected, rest, _, _ = np.linalg.lstsq(design, pooled)
    assert added.count == 456
    assert added.solve(NAMES) == pytest.approx(expected, rel=1e-10)
    assert added.r_squared == pytest.approx(1 - rest[0] / (456 * pooled.var()))


def test_digits_are_kept_where_sums_of_products_lose_them() -> None:
    """Features of 1e6 that vary by 1: the normal equations would be singular to double precision."""
    near = 1e6 + np.arange(5.0)
    exact = LeastSquares.of((near, near**2 / 1e6), 3.0 + 2.0 * near)
    with pytest.raises(UserError, match=r"to tell second from constant, first"):
        exact.solve(NAMES)
    assert LeastSquares.of((near,), 3.0 + 2.0 * near).solve(NAMES[:2])[1] == pytest.approx(2.0, rel=1e-8)


def test_r_squared_of_what_does_not_vary() -> None:
    for value in (0.0, 0.3):
        assert LeastSquares.of((np.array([1.0, 2.0, 5.0]),), np.full(3, value)).r_squared == 1.0
