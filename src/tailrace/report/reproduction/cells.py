"""A study's numbers as cells: measured with its interval, the paper's, their ratio."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..values import MISSING, number, plain
from .study import Value

__all__ = ["beside", "cell", "mean_abs_log_ratio", "of_paper", "ratio"]


def cell(value: Value | None) -> str:
    """``1.39 [1.36, 1.42]``: three digits, and the interval to the same decimals."""
    if value is None or value.measured is None:
        return MISSING
    text = number(value.measured)
    if value.ci is None:
        return text
    decimals = len(text.partition(".")[2]) if text[0] != "<" else 4
    low, high = (f"{end:,.{decimals}f}" for end in value.ci)
    return f"{text} [{low}, {high}]".replace("-", "−")


def of_paper(value: Value | None) -> str:
    """What the paper prints, with all its digits."""
    return MISSING if value is None else plain(value.paper)


def ratio(value: Value | None) -> str:
    """Measured over printed."""
    return MISSING if value is None else number(value.ratio)


def beside(value: Value | None) -> list[str]:
    """Three cells: measured, the paper's, the ratio."""
    return [cell(value), of_paper(value), ratio(value)]


def mean_abs_log_ratio(values: Sequence[Value]) -> float | None:
    """Mean of ``|log(measured / printed)|`` over those that have both and are above 0."""
    logs = [abs(math.log(v.ratio)) for v in values if v.ratio is not None and v.ratio > 0]
    return sum(logs) / len(logs) if logs else None
