"""How near our numbers are to a paper's: the mean absolute log ratio, and its interval over seeds.

Near saturation a run's waits follow the load that its seed happened to draw, so the means of a
hundred seeds still scatter by several per cent, all together. That part can be taken out: the
expected gap and lengths are known, so each mean is moved to them along the regression of the
seeds' waits on what the seeds drew (control variates; Glasserman, Monte Carlo Methods in
Financial Engineering, 2003, §4.1). The plain mean is the paper's, and always reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Fit", "Score", "adjusted", "fit"]

RESAMPLES: Final = 1000
LEAST_SEEDS: Final = 10
"""With fewer the regression is of noise."""

F8 = NDArray[np.float64]


@dataclass(frozen=True)
class Score:
    """Mean of |log(ours / printed)| over the printed values."""

    mean_abs_log_ratio: float
    ci: tuple[float, float] | None
    """95 % by bootstrap over seeds; None for one seed."""


@dataclass(frozen=True)
class Fit:
    """The score of the plain means, and of those adjusted for the drawn load."""

    values: int
    plain: Score
    adjusted: Score | None
    """None without controls, or with too few seeds."""


def adjusted(rows: F8, drawn: F8) -> F8:
    """(values,) means of (values, seeds) at ``drawn`` = 0, ordinary least squares over the seeds.

    ``drawn``: (seeds, controls), each control's relative distance from its expectation.
    """
    design = np.column_stack([np.ones(len(drawn)), drawn])
    means: F8 = np.linalg.lstsq(design, rows.T, rcond=None)[0][0]
    return means


def fit(samples: Sequence[F8], printed: Sequence[float], drawn: F8 | None = None) -> Fit:
    """Of (seeds,) samples a value, paired by seed; each value's mean is held against the printed one."""
    rows, target = np.array(samples), np.log(np.array(printed))
    seeds = rows.shape[1]
    picks = np.random.Generator(np.random.PCG64(0)).integers(0, seeds, (RESAMPLES, seeds))

    def score(means: F8, resampled: list[F8]) -> Score:
        one = float(np.abs(np.log(means) - target).mean())
        if seeds < 2:
            return Score(one, None)
        with np.errstate(invalid="ignore"):  # a regression of few seeds may fall below zero
            many = [float(np.abs(np.log(each) - target).mean()) for each in resampled]
        low, high = np.nanquantile(many, (0.025, 0.975))
        return Score(one, (float(low), float(high)))

    plain = score(np.nanmean(rows, axis=1), [np.nanmean(rows[:, pick], axis=1) for pick in picks])
    if drawn is None or seeds < LEAST_SEEDS or np.isnan(rows).any():
        return Fit(len(printed), plain, None)
    moved = adjusted(rows, drawn)
    if (moved <= 0).any():
        return Fit(len(printed), plain, None)
    return Fit(len(printed), plain, score(moved, [adjusted(rows[:, pick], drawn[pick]) for pick in picks]))
