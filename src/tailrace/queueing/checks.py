"""What the formulas accept, and one clear line for what they do not."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import UserError

__all__ = ["F8", "columns", "number", "share", "whole"]

F8 = NDArray[np.float64]


def number(name: str, value: Any, *, low: float = 0.0, above: bool = False) -> float:
    """``value`` as a finite float of at least ``low`` (``above``: larger than it); UserError otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise UserError(f"{name}={value!r} must be a number")
    if not math.isfinite(value) or value < low or (above and value == low):
        bound = "" if low == -math.inf else f" and {'above' if above else 'at least'} {low:g}"
        raise UserError(f"{name}={value!r} must be finite{bound}")
    return float(value)


def share(name: str, value: Any) -> float:
    """``value`` as a float in [0, 1]; UserError otherwise."""
    if number(name, value) > 1:
        raise UserError(f"{name}={value!r} must be a share in [0, 1]")
    return float(value)


def whole(name: str, value: Any, *, low: int = 1) -> int:
    """``value`` as an int of at least ``low``; UserError otherwise."""
    try:
        found = low - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        found = low - 1
    if found < low:
        raise UserError(f"{name}={value!r} must be a whole number of at least {low}")
    return found


def columns(**given: ArrayLike) -> tuple[F8, ...]:
    """One float array (n,) each, all of one length n >= 1, finite and not negative; UserError otherwise."""
    arrays = tuple(_floats(name, values) for name, values in given.items())
    for name, values in zip(given, arrays, strict=True):
        if values.ndim != 1 or not len(values):
            raise UserError(f"{name}: must be one row of at least one number, not of shape {values.shape}")
        if len(values) != len(arrays[0]):
            raise UserError(f"{name}: {len(values)} values for {len(arrays[0])} of {next(iter(given))}")
        wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
        if len(wrong):
            text = f"{name}: {values[wrong[0]]} at position {wrong[0]} must be finite and at least 0"
            raise UserError(f"{text}; leave out requests that did not finish")
    return arrays


def _floats(name: str, values: ArrayLike) -> F8:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError(f"{name}: must be a list of numbers") from None
