"""What a workload is like: span, burstiness, lengths and their tails, who sends it, what was dropped."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Final

import numpy as np

from ..table import F8, I8
from .tails import tail
from .workload import Workload

__all__ = ["WINDOWS_S", "inspect"]

WINDOWS_S: Final = (1.0, 10.0, 60.0)
TIES: Final = 0.02
"""With so many requests at the same moment as the one before, the clock may be coarse."""
MOST_NAMES: Final = 20
"""Classes, or tenants, that are listed; the rest are counted."""


def inspect(workload: Workload) -> dict[str, Any]:
    """Everything there is to say, as one JSON-able object; NaN where it cannot be told.

    ``{"workload", "requests", "span_s", "rate_rps", "arrivals", "prompt_tokens", "output_tokens",
    "rank_correlation", "output_tail", "prompt_tail", "classes", "tenants", "sessions", "prefix",
    "description"}``; the last four but the last are null where the workload has none.
    """
    w = workload
    prompt, output = tail(w.prompt_tokens), tail(w.output_tokens)
    return {
        "workload": w.name,
        "requests": len(w),
        "span_s": w.span_s,
        "rate_rps": w.rate_rps,
        "arrivals": _arrivals(w.arrival_s),
        "prompt_tokens": _lengths(w.prompt_tokens),
        "output_tokens": _lengths(w.output_tokens),
        "rank_correlation": _rank_correlation(w.prompt_tokens, w.output_tokens),
        "output_tail": dataclasses.asdict(output),
        "prompt_tail": dataclasses.asdict(prompt),
        "classes": _groups(w, w.class_id, w.class_names, w.class_weights) if w.class_names != ("default",) else None,
        "tenants": _groups(w, w.tenant, w.tenant_names) if w.tenant_names != ("default",) else None,
        "sessions": _sessions(w),
        "prefix": _prefix(w),
        "description": dict(w.description),
    }


def _arrivals(arrival_s: F8) -> dict[str, Any]:
    """Gaps and counts in windows.

    ``scv`` is the gaps' squared coefficient of variation, 1 for Poisson arrivals; ``simultaneous`` the share of
    requests that come with the one before; ``clock_s`` the step of a coarse clock, below which nothing is known.
    """
    gaps = np.diff(arrival_s)
    mean = float(gaps.mean()) if len(gaps) else math.nan
    enough = len(gaps) > 1 and mean > 0
    return {
        "gap_s": {"mean": mean, **_quantiles(gaps)},
        "scv": float(gaps.var() / mean**2) if enough else math.nan,
        "simultaneous": float(np.mean(gaps == 0)) if len(gaps) else math.nan,
        "clock_s": _clock(gaps),
        "windows": [_window(arrival_s - arrival_s[0], width) for width in WINDOWS_S],
    }


def _clock(gaps: F8) -> float:
    """The step of the clock that stamped the arrivals, where it shows: many at once, all others whole steps apart."""
    steps = gaps[gaps > 0]
    if not len(steps) or len(steps) > (1 - TIES) * len(gaps):
        return math.nan
    step = float(steps.min())
    multiples = steps / step
    return step if np.abs(multiples - np.rint(multiples)).max() < 1e-3 else math.nan


def _window(since_s: F8, width_s: float) -> dict[str, Any]:
    """Requests in full windows of ``width_s``: peak over mean, and variance over mean (1 for Poisson arrivals)."""
    windows = int(since_s[-1] // width_s)
    if windows < 2:
        return {
            "window_s": width_s,
            "windows": windows,
            "peak_rps": math.nan,
            "peak_to_mean": math.nan,
            "dispersion": math.nan,
        }
    # Empty windows are not listed: a long quiet trace has very many.
    places = (since_s // width_s).astype(np.int64)
    _, counts = np.unique(places[places < windows], return_counts=True)
    mean = float(counts.sum()) / windows
    variance = float(np.sum(counts.astype(np.float64) ** 2)) / windows - mean**2
    return {
        "window_s": width_s,
        "windows": windows,
        "peak_rps": float(counts.max()) / width_s,
        "peak_to_mean": float(counts.max()) / mean,
        "dispersion": max(variance, 0.0) / mean,
    }


def _lengths(tokens: I8) -> dict[str, Any]:
    return {"mean": float(tokens.mean()), "min": int(tokens.min()), **_quantiles(tokens), "max": int(tokens.max())}


def _quantiles(values: Any) -> dict[str, float]:
    places = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    return {name: float(np.quantile(values, q)) if len(values) else math.nan for name, q in places.items()}


def _rank_correlation(prompt: I8, output: I8) -> float:
    """Spearman's; NaN where one of them is constant."""
    if np.ptp(prompt) == 0 or np.ptp(output) == 0:
        return math.nan
    return float(np.corrcoef(_ranks(prompt), _ranks(output))[0, 1])


def _ranks(values: I8) -> F8:
    """Ranks, equal values with their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: F8 = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return ranks


def _groups(w: Workload, index: I8, names: tuple[str, ...], weights: tuple[float, ...] | None = None) -> dict[str, Any]:
    """The largest groups, and how many there are."""
    counts = np.bincount(index, minlength=len(names))
    largest = np.argsort(-counts, kind="stable")[:MOST_NAMES]
    return {
        "count": len(names),
        "largest": [_group(w, index == i, names[i], weights[i] if weights else None) for i in largest.tolist()],
    }


def _group(w: Workload, among: Any, name: str, weight: float | None) -> dict[str, Any]:
    requests = int(np.count_nonzero(among))
    found: dict[str, Any] = {"name": name, "requests": requests, "share": requests / len(w)}
    if weight is not None:
        found["weight"] = weight
    for field in ("prompt_tokens", "output_tokens"):
        values = getattr(w, field)[among]
        found[field] = {"mean": float(values.mean()) if requests else math.nan, **_quantiles(values)}
    for field in ("ttft_slo_s", "tpot_slo_s"):
        values = getattr(w, field)[among]
        finite = values[np.isfinite(values)]
        found[field] = float(np.median(finite)) if len(finite) else math.nan
    return found


def _sessions(w: Workload) -> dict[str, Any] | None:
    """Conversations of several requests, where the trace tells them; below 0 is none."""
    session = w.session
    if not (session >= 0).any():
        return None
    _, turns = np.unique(session[session >= 0], return_counts=True)
    inside = int(np.count_nonzero(session >= 0))
    return {"count": len(turns), "requests": inside, "turns": {"mean": float(turns.mean()), **_quantiles(turns)}}


def _prefix(w: Workload) -> dict[str, Any] | None:
    """How much of the prompts an endless cache would hold: blocks that a request before had."""
    if w.prefix is None:
        return None
    ids, counts = w.prefix.ids, np.diff(w.prefix.offsets)
    _, first = np.unique(ids, return_index=True)
    # A request names no block twice, so each later place of a name is a repetition of another request's.
    repeated = (len(ids) - len(first)) * w.prefix.block_tokens
    return {
        "block_tokens": w.prefix.block_tokens,
        "requests": int(np.count_nonzero(counts)),
        "blocks": len(ids),
        "distinct_blocks": len(first),
        "shared_tokens": repeated,
        "shared_share": repeated / int(w.prompt_tokens.sum()),
    }
