"""The distance from printed numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tailrace.studies.reproduce.fit import adjusted, fit


def test_it_is_the_mean_absolute_log_ratio_of_the_means() -> None:
    found = fit([np.array([1.0, 3.0]), np.array([8.0, 8.0])], [1.0, 16.0])
    assert found.values == 2
    assert found.plain.mean_abs_log_ratio == pytest.approx(math.log(2))
    assert found.plain.ci is not None
    assert found.adjusted is None
    assert fit([np.array([2.0])], [2.0]).plain.ci is None


def test_the_interval_is_the_same_every_time_and_narrows_with_seeds() -> None:
    rng = np.random.Generator(np.random.PCG64(1))
    few, many = (rng.lognormal(0.5, 0.4, n) for n in (10, 1000))
    assert fit([few], [1.0]) == fit([few], [1.0])
    wide, narrow = fit([few], [1.0]).plain.ci, fit([many], [1.0]).plain.ci
    assert wide is not None
    assert narrow is not None
    assert wide[1] - wide[0] > 3 * (narrow[1] - narrow[0])
    assert narrow[0] < 0.5 + 0.4**2 / 2 < narrow[1]


def test_adjusting_takes_out_what_the_load_explains() -> None:
    """Waits that follow the drawn load: the adjusted mean scatters far less about the truth."""
    rng = np.random.Generator(np.random.PCG64(3))
    plain, moved = [], []
    for _ in range(200):
        drawn = rng.normal(0.0, 0.02, (40, 2))
        waits = 2.0 + drawn @ np.array([30.0, -15.0]) + rng.normal(0.0, 0.1, 40)
        plain.append(waits.mean())
        moved.append(adjusted(waits[None, :], drawn)[0])
    assert np.mean(moved) == pytest.approx(2.0, abs=0.01)
    assert np.std(moved) < np.std(plain) / 4
    drawn = rng.normal(0.01, 0.02, (40, 2))
    waits = 2.0 + drawn @ np.array([30.0, -15.0])
    found = fit([waits], [2.0], drawn)
    assert found.adjusted is not None
    assert found.adjusted.mean_abs_log_ratio == pytest.approx(0.0, abs=1e-12)
    assert found.plain.mean_abs_log_ratio > 0.01


def test_too_few_seeds_are_not_adjusted() -> None:
    assert fit([np.ones(9)], [1.0], np.zeros((9, 1))).adjusted is None
