"""Several runs of one thing: means, 95 % intervals, and differences paired by seed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from .state import STATES
from .statistics import STATISTICS

__all__ = ["combine", "interval", "paired"]


SERIES: Final = frozenset({"counts", "throughput", "slo", "gain", "fairness", "tallies"})
"""Mappings whose numbers get ``ci`` and ``by_seed``, as statistics do."""


def combine(results: Sequence[Any], name: str = "") -> Any:
    """One result of several seeds: numbers become means, with ``ci`` and ``by_seed`` beside them.

    ``ci`` is ``{number: [low, high]}``, 95 %, Student's t over seeds; ``by_seed`` is
    ``{number: [a value a seed]}`` (not by tenant, of which there may be thousands). A key
    that some seeds lack is the mean of those that have it; a truth of any seed stands; texts
    must agree, except load_state, where the worst stands.
    """
    if len(results) == 1:
        return results[0]
    known = [r for r in results if r is not None]
    first = known[0] if known else None
    if isinstance(first, Mapping):
        return _merge(known, name)
    if isinstance(first, str):
        return max(known, key=STATES.index) if first in STATES else first
    if isinstance(first, bool):
        return any(known)
    if all(r == first for r in results):
        return first
    return sum(known) / len(known) if isinstance(first, (int, float)) else first


def _merge(known: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    keys = dict.fromkeys(key for r in known for key in r)
    inside = name if name == "by_tenant" else ""
    merged = {key: combine([r[key] for r in known if key in r], inside or key) for key in keys}
    if name in SERIES or set(STATISTICS) <= keys.keys():
        series = {key: [r.get(key) for r in known] for key in keys if not isinstance(merged[key], Mapping)}
        merged["ci"] = {key: interval(values) for key, values in series.items()}
        if not inside:
            merged["by_seed"] = series
    return merged


PAIRED: Final = (
    *("counts", "metrics", "slo", "gain", "fairness", "recompute_tax", "throughput"),
    *("by_class", "by_true_class"),
)


def paired(results: Sequence[Mapping[str, Any]], baseline: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Differences from ``baseline``, whose runs had the same seeds in the same order.

    The shape of a result, with numbers only: each is ``{"difference", "ci"}``, the mean over
    seeds of result − baseline and its 95 % interval (Student's t over the differences;
    None for one seed). What a seed has in one of the two only does not count.
    """
    rows = [dict(_numbers(r)) for r in results]
    others = [dict(_numbers(r)) for r in baseline]
    out: dict[str, Any] = {}
    for path in rows[0]:
        found = [(a[path], b[path]) for a, b in zip(rows, others, strict=True) if path in a and path in b]
        if not found:
            continue
        differences = [a - b for a, b in found]
        place = out
        for key in path[:-1]:
            place = place.setdefault(key, {})
        place[path[-1]] = {"difference": sum(differences) / len(differences), "ci": interval(differences)}
    return out


def interval(values: Sequence[float | None]) -> list[float] | None:
    """95 % confidence interval of the mean, Student's t; None for fewer than two values."""
    known = np.array([v for v in values if v is not None])
    if len(known) < 2:
        return None
    from scipy.special import stdtrit

    half = float(stdtrit(len(known) - 1, 0.975)) * float(known.std(ddof=1)) / math.sqrt(len(known))
    return [float(known.mean()) - half, float(known.mean()) + half]


def _numbers(result: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], float]]:
    """Paths and values of what is compared."""
    yield from _walk({key: result[key] for key in PAIRED if key in result}, ())


def _walk(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], float]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _walk(item, (*path, key))
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        yield path, float(value)
