"""Could the engine keep up, did anybody wait, and did anybody starve.

All three compare a run with first come, first served on the same engine, found from the
run itself: in order of arrival, request i would have started when the engine had started as
much work (prompt and output tokens) as had arrived up to i. docs/metrics.md has the
measurements behind the limits.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from .requests import F8, Requests

__all__ = ["QUIET_S", "STATES", "load_state", "queueing", "starvation"]

QUIET_S: Final = 1e-3
"""Waits below this are no queueing."""
STATES: Final = ("STABLE", "BACKLOGGED", "OVERLOADED")
BACKLOG_SHARE: Final = 0.02
"""A backlog that takes more than this share of the arrivals' span is no steady state's."""
OVERLOAD_SHARE: Final = 0.1
"""Work left at the end of arrivals that takes this share of their span to start: overload without a test."""
STRETCHES: Final = 20
LEVEL: Final = 0.01
STARVED: Final = 2.0
"""Times the longest wait of first come, first served."""
STARVED_S: Final = 1.0


class _Backlog(NamedTuple):
    """Of the requests that started, in order of arrival."""

    arrival_s: F8
    started_s: F8
    work: F8
    fcfs_wait_s: F8


def queueing(r: Requests) -> bool:
    """Whether any request waited a millisecond; if none did, no policy can matter."""
    return bool((r.wait_s > QUIET_S).any())


def load_state(r: Requests) -> str:
    """STABLE, BACKLOGGED or OVERLOADED.

    STABLE: in order of arrival nobody would have waited over 2 % of the arrivals' span.
    OVERLOADED: somebody would, and when arrivals ended the waiting work took over 10 % of
    their span to start, or over 2 % with waiting work that grew all along (one-sided t
    test over 20 equal stretches, p < 0.01). Else BACKLOGGED. Where nobody waited: STABLE.
    """
    if not queueing(r):
        return "STABLE"
    b = _backlog(r)
    end = float(r.arrival_s[-1])
    span = end - float(r.arrival_s[0])
    if not float(b.fcfs_wait_s.max()) > BACKLOG_SHARE * span:
        return "STABLE"
    left = float(b.started_s.max()) - end
    if left > OVERLOAD_SHARE * span or (left > BACKLOG_SHARE * span and _growth(b, span) < LEVEL):
        return "OVERLOADED"
    return "BACKLOGGED"


def starvation(r: Requests) -> dict[str, Any]:
    """Who waited over a second, and twice as long as anybody would first come, first served.

    ``{"requests", "share", "longest_wait_s", "fcfs_longest_wait_s"}``; the share is of those
    that started.
    """
    b = _backlog(r)
    if not len(b.work):
        return {"requests": 0, "share": None, "longest_wait_s": None, "fcfs_longest_wait_s": None}
    waits, most = b.started_s - b.arrival_s, float(b.fcfs_wait_s.max())
    starved = int((waits > max(STARVED * most, STARVED_S)).sum())
    return {
        "requests": starved,
        "share": starved / len(waits),
        "longest_wait_s": float(waits.max()),
        "fcfs_longest_wait_s": most,
    }


def _backlog(r: Requests) -> _Backlog:
    began = ~np.isnan(r.started_s)
    arrival, started = r.arrival_s[began], r.started_s[began]
    work = (r.prompt_tokens + r.output_tokens)[began].astype(np.float64)
    order = np.argsort(started, kind="stable")
    done, due = np.cumsum(work[order]), np.cumsum(work)
    place = np.minimum(np.searchsorted(done, due, side="left"), max(len(done) - 1, 0))
    return _Backlog(arrival, started, work, started[order][place] - arrival)


def _growth(b: _Backlog, span_s: float) -> float:
    """p of a waiting work that grew no more than it shrank, over equal stretches of the arrivals."""
    from scipy.special import stdtr

    first, order = float(b.arrival_s[0]), np.argsort(b.started_s, kind="stable")
    edges = first + span_s * np.arange(STRETCHES + 1) / STRETCHES
    arrived = np.concatenate([[0.0], np.cumsum(b.work)])[np.searchsorted(b.arrival_s, edges, side="right")]
    begun = np.concatenate([[0.0], np.cumsum(b.work[order])])
    begun = begun[np.searchsorted(b.started_s[order], edges, side="right")]
    steps = np.diff(arrived - begun)
    spread = float(steps.std(ddof=1))
    if spread == 0:
        return 0.0 if steps[0] > 0 else 1.0
    return float(stdtr(STRETCHES - 1, -float(steps.mean()) * math.sqrt(STRETCHES) / spread))
