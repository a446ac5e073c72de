"""Mean, percentiles and maximum, of values or of a histogram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from .requests import F8, I8

__all__ = ["STATISTICS", "statistics", "weighted_quantiles", "weighted_statistics"]

STATISTICS: Final = ("mean", "p50", "p90", "p95", "p99", "p999", "max")
_QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


def statistics(values: F8) -> dict[str, float | None]:
    """Mean, percentiles (linear interpolation) and maximum of what is not NaN."""
    values = values[~np.isnan(values)]
    if not len(values):
        return dict.fromkeys(STATISTICS)
    points = np.quantile(values, list(_QUANTILES.values()))
    return {
        "mean": float(values.mean()),
        **dict(zip(_QUANTILES, map(float, points), strict=True)),
        "max": float(values.max()),
    }


def weighted_statistics(counts: I8, values: F8, highest: float) -> dict[str, float | None]:
    """The same from a histogram; ``highest`` is the exact maximum. Bins are 0.8 % wide."""
    names = (*_QUANTILES, "max")
    if not counts.sum():
        return dict.fromkeys(STATISTICS)
    mean, *points = weighted_quantiles(counts, values, highest, tuple(_QUANTILES.values()))
    return {"mean": mean, **dict(zip(names, [*points, highest], strict=True))}


def weighted_quantiles(counts: I8, values: F8, highest: float, levels: Sequence[float]) -> list[float]:
    """Mean and quantiles at ``levels`` of a histogram whose exact maximum is ``highest``; NaN if it is empty."""
    total = int(counts.sum())
    if total == 0:
        return [float("nan")] * (1 + len(levels))
    cumulative = np.cumsum(counts)
    places = [values[int(np.searchsorted(cumulative, q * total, side="left"))] for q in levels]
    return [float(counts @ values) / total, *(min(float(value), highest) for value in places)]
