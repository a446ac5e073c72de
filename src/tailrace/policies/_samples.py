"""A window of the latest samples, kept in order of time and in order of size."""

from __future__ import annotations

from typing import Any

from .._jit import kernel
from ..table import F8, I8, Columns

__all__ = ["Cursor", "Recent", "insert", "observe", "quantile"]


class Recent(Columns):
    """As many rows as the window holds; seconds."""

    ring_s: F8
    """In order of time."""
    ranked_s: F8
    """Ascending."""


class Cursor(Columns):
    """Scalars of a window: one row."""

    held: I8
    """Samples in it."""
    place: I8
    """Next row of the ring."""


@kernel
def quantile(ranked: Any, count: int, share: float) -> float:
    """Empirical quantile of ``count`` ascending samples, with linear interpolation."""
    place = share * (count - 1)
    low = int(place)
    high = min(low + 1, count - 1)
    return ranked[low] + (place - low) * (ranked[high] - ranked[low])


@kernel
def _place(ranked: Any, count: int, value: float) -> int:
    """First index whose value is not below ``value``."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if ranked[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def insert(ranked: Any, count: int, value: float) -> None:
    """Put ``value`` in its place among ``count`` ascending ones."""
    at = _place(ranked, count, value)
    for i in range(count, at, -1):
        ranked[i] = ranked[i - 1]
    ranked[at] = value


@kernel
def observe(samples: Any, cursor: Any, value: float) -> int:
    """Add a sample, in place of the oldest if the window is full; returns how many it holds."""
    ring, ranked = samples.ring_s, samples.ranked_s
    count, place = cursor.held[0], cursor.place[0]
    if count == ring.shape[0]:
        count -= 1
        for i in range(_place(ranked, count + 1, ring[place]), count):
            ranked[i] = ranked[i + 1]
    insert(ranked, count, value)
    ring[place] = value
    cursor.held[0] = count + 1
    cursor.place[0] = (place + 1) % ring.shape[0]
    return count + 1
