"""The distance from printed numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tailrace.studies.reproduce.fit import fit


def test_it_is_the_mean_absolute_log_ratio_of_the_means() -> None:
    found = fit([np.array([1.0, 3.0]), np.array([8.0, 8.0])], [1.0, 16.0])
    assert found.values == 2
    assert found.mean_abs_log_ratio == pytest.approx(math.log(2))
    assert found.ci is not None
    assert fit([np.array([2.0])], [2.0]).ci is None


def test_the_interval_is_the_same_every_time_and_narrows_with_seeds() -> None:
    rng = np.random.Generator(np.random.PCG64(1))
    few, many = (rng.lognormal(0.5, 0.4, n) for n in (10, 1000))
    assert fit([few], [1.0]) == fit([few], [1.0])
    wide, narrow = fit([few], [1.0]).ci, fit([many], [1.0]).ci
    assert wide is not None
    assert narrow is not None
    assert wide[1] - wide[0] > 3 * (narrow[1] - narrow[0])
    assert narrow[0] < 0.5 + 0.4**2 / 2 < narrow[1]
