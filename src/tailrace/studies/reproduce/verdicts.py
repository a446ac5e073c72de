"""Whether a claim holds, from runs paired by seed: true, false, or not known with these seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ...metrics.seeds import interval
from .measure import F8

__all__ = ["Ratio", "all_hold", "below", "between", "difference", "median_below", "median_interval", "ratio", "seconds"]


class Ratio(NamedTuple):
    """A ratio (or difference) of means with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def below(lower: F8, higher: F8) -> bool | None:
    """Whether the mean of ``lower`` is below that of ``higher``: 95 % interval of the paired differences."""
    gap = interval([float(d) for d in higher - lower if not math.isnan(d)])
    if gap is None:
        return None
    return True if gap[0] > 0 else False if gap[1] < 0 else None


def median_interval(values: F8) -> list[float] | None:
    """95 % interval of the median, by order statistics; None for values too few."""
    from scipy.stats import quantile_test

    if not len(values):
        return None
    found = quantile_test(values, p=0.5).confidence_interval(0.95)
    low, high = float(found.low), float(found.high)
    return [low, high] if math.isfinite(low) and math.isfinite(high) else None


def median_below(lower: F8, higher: F8) -> bool | None:
    """Whether ``lower`` is below ``higher`` in the middle pair: interval of the median paired difference."""
    gaps = higher - lower
    gap = median_interval(gaps[~np.isnan(gaps)])
    if gap is None:
        return None
    return True if gap[0] > 0 else False if gap[1] < 0 else None


def ratio(above: F8, under: F8) -> Ratio:
    """Ratio of the means of paired values, interval by the delta method."""
    known = ~(np.isnan(above) | np.isnan(under))
    a, b = above[known], under[known]
    if not len(a) or b.mean() == 0:
        return Ratio(math.nan, math.nan, math.nan)
    value = float(a.mean() / b.mean())
    scatter = interval([float(d) for d in (a - value * b) / b.mean()])
    half = (scatter[1] - scatter[0]) / 2 if scatter else math.inf
    return Ratio(value, value - half, value + half)


def difference(ours: F8, theirs: F8) -> Ratio:
    """Mean of ours − theirs over paired values, with its 95 % interval (Student's t)."""
    gaps = [float(d) for d in ours - theirs if not math.isnan(d)]
    if not gaps:
        return Ratio(math.nan, math.nan, math.nan)
    value, ends = sum(gaps) / len(gaps), interval(gaps) or [-math.inf, math.inf]
    return Ratio(value, *ends)


def between(found: Ratio, low: float = -math.inf, high: float = math.inf) -> bool | None:
    """Whether the ratio lies in [low, high]: its whole interval does, none of it does, or neither."""
    if low <= found.low and found.high <= high:
        return True
    if found.high < low or found.low > high:
        return False
    return None


def all_hold(parts: Iterable[bool | None]) -> bool | None:
    """False if any part is, else not known if any part is not."""
    known = list(parts)
    if any(part is False for part in known):
        return False
    return None if any(part is None for part in known) else True


def seconds(values: F8) -> str:
    """The mean as text."""
    return f"{float(np.nanmean(values)):.3g} s"
