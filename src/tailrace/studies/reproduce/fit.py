"""How near our numbers are to a paper's: the mean absolute log ratio, and its interval over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Fit", "fit"]

RESAMPLES: Final = 2000


@dataclass(frozen=True)
class Fit:
    """Mean of |log(ours / printed)| over the printed values."""

    values: int
    mean_abs_log_ratio: float
    ci: tuple[float, float] | None
    """95 % by bootstrap over seeds; None for one seed."""


def fit(samples: Sequence[NDArray[np.float64]], printed: Sequence[float]) -> Fit:
    """Of (seeds,) samples a value, paired by seed; each value's mean is held against the printed one."""
    rows, target = np.array(samples), np.log(np.array(printed))
    score = float(np.abs(np.log(np.nanmean(rows, axis=1)) - target).mean())
    seeds = rows.shape[1]
    if seeds < 2:
        return Fit(len(printed), score, None)
    rng = np.random.Generator(np.random.PCG64(0))
    drawn = rng.integers(0, seeds, (RESAMPLES, seeds))
    means = np.array([np.nanmean(row[drawn], axis=1) for row in rows])
    scores = np.abs(np.log(means) - target[:, None]).mean(axis=0)
    low, high = np.quantile(scores, (0.025, 0.975))
    return Fit(len(printed), score, (float(low), float(high)))
