"""What clients and operators measure, from one run's requests and token gaps.

wait  queueing delay: start of the first chunk − arrival.
ttft  time to first token − arrival.
tpot  (E2E − TTFT)/(n − 1), one mean a request; undefined for one output token.
tbt   gap between consecutive output tokens, one sample a gap over all requests.
e2e   end of the last step − arrival.

Times are seconds. Requests that never started, or never finished, have no value for what
they did not reach; ``counts`` says how many those are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["STATISTICS", "Requests", "combine", "load_state", "summarise", "weighted_statistics"]

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

STATISTICS: Final = ("mean", "p50", "p90", "p95", "p99", "p999", "max")
_QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}

FINISHED, ABORTED, REJECTED = 1, 2, 3
"""``Requests.reason``; 0 = still in the system when the run ended."""


@dataclass(frozen=True)
class Requests:
    """One run's requests, arrays of n in order of arrival; NaN where it was not reached."""

    arrival_s: F8
    started_s: F8
    first_token_s: F8
    finish_s: F8
    prompt_tokens: I8
    output_tokens: I8
    generated_tokens: I8
    preemptions: I8
    recomputed_tokens: I8
    gap_max_s: F8
    class_id: I8
    tenant: I8
    true_class: I8
    predicted_class: I8
    reason: I8
    group: I8
    """Row of ``gaps`` it counts in."""
    gaps: I8
    """(groups, bins) gaps between tokens."""
    gap_values_s: F8
    """(bins,) seconds a bin stands for."""

    @property
    def wait_s(self) -> F8:
        return self.started_s - self.arrival_s

    @property
    def ttft_s(self) -> F8:
        return self.first_token_s - self.arrival_s

    @property
    def e2e_s(self) -> F8:
        return self.finish_s - self.arrival_s

    @property
    def tpot_s(self) -> F8:
        gaps = np.where(self.output_tokens > 1, self.output_tokens - 1, np.nan)
        return (self.finish_s - self.first_token_s) / gaps


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
    total = int(counts.sum())
    if total == 0:
        return dict.fromkeys(STATISTICS)
    cumulative = np.cumsum(counts)
    places = [values[int(np.searchsorted(cumulative, q * total, side="left"))] for q in _QUANTILES.values()]
    points = {name: min(float(value), highest) for name, value in zip(_QUANTILES, places, strict=True)}
    return {"mean": float(counts @ values) / total, **points, "max": highest}


def summarise(r: Requests, keep: NDArray[np.bool_] | None = None) -> dict[str, Any]:
    """``{"counts", "metrics"}`` of the requests in ``keep`` (all by default).

    ``keep`` must hold whole groups, as selections by class do, for the gaps to be right.
    """
    mask = np.ones(len(r.arrival_s), dtype=bool) if keep is None else keep
    reason = r.reason[mask]
    groups = np.unique(r.group[mask])
    highest = float(r.gap_max_s[mask].max(initial=0.0))
    return {
        "counts": {
            "submitted": int(mask.sum()),
            "completed": int((reason == FINISHED).sum()),
            "unfinished": int((reason == 0).sum()),
            "rejected": int((reason == REJECTED).sum()),
            "aborted": int((reason == ABORTED).sum()),
            "failed": 0,
            "shed": 0,
            "preemptions": int(r.preemptions[mask].sum()),
            "recomputed_tokens": int(r.recomputed_tokens[mask].sum()),
        },
        "metrics": {
            "wait_s": statistics(r.wait_s[mask]),
            "ttft_s": statistics(r.ttft_s[mask]),
            "tpot_s": statistics(r.tpot_s[mask]),
            "tbt_s": weighted_statistics(r.gaps[groups].sum(axis=0), r.gap_values_s, highest),
            "e2e_s": statistics(r.e2e_s[mask]),
        },
    }


def load_state(r: Requests, waiting_at_end_of_arrivals: int) -> str:
    """STABLE, BACKLOGGED or OVERLOADED.

    Two signs: the queue at the end of arrivals exceeds 10 % of all requests, and the
    second half's mean wait is over twice the first half's (and over one millisecond).
    Both: OVERLOADED; either: BACKLOGGED. Where nobody waited a millisecond: STABLE.
    """
    n = len(r.arrival_s)
    if not (r.wait_s > 1e-3).any():
        return "STABLE"
    long_queue = waiting_at_end_of_arrivals > 0.1 * n
    waits = r.wait_s
    first, second = waits[: n // 2], waits[n // 2 :]
    growing = False
    if np.isfinite(first).any() and np.isfinite(second).any():
        later = float(np.nanmean(second))
        growing = later > 2 * float(np.nanmean(first)) and later > 1e-3
    return "OVERLOADED" if long_queue and growing else "BACKLOGGED" if long_queue or growing else "STABLE"


def combine(results: list[Any]) -> Any:
    """One result of several seeds: numbers become means, statistics get ``ci`` beside them.

    ``ci`` is ``{statistic: [low, high]}``, 95 %, Student's t over seeds. Texts must agree,
    except load_state, where the worst stands.
    """
    if len(results) == 1:
        return results[0]
    first = results[0]
    if isinstance(first, dict):
        merged = {key: combine([r[key] for r in results if key in r]) for key in first}
        if set(STATISTICS) <= set(first):
            merged["ci"] = {name: _interval([r[name] for r in results]) for name in STATISTICS}
        return merged
    if isinstance(first, str):
        order = ["STABLE", "BACKLOGGED", "OVERLOADED"]
        return max(results, key=order.index) if first in order else first
    if all(r == first for r in results):
        return first
    if isinstance(first, (int, float)) and not isinstance(first, bool):
        values = [r for r in results if r is not None]
        return sum(values) / len(values) if values else None
    return first


def _interval(values: list[float | None]) -> list[float] | None:
    known = np.array([v for v in values if v is not None])
    if len(known) < 2:
        return None
    from scipy.special import stdtrit

    half = float(stdtrit(len(known) - 1, 0.975)) * float(known.std(ddof=1)) / math.sqrt(len(known))
    return [float(known.mean()) - half, float(known.mean()) + half]
