"""What a run writes down: outcomes by request, counters, gaps, and a timeline.

Gaps between tokens are counted in a histogram, since a million requests make hundreds of
millions of them. A bin spans 1/128 of an octave's start (below 0.8 % of the value): the
top bits of the float itself, so no logarithm is taken in the loop.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._jit import kernel, routine
from ..table import F8, I8, Columns, allocate

__all__ = ["GAP_BINS", "Counters", "Outcome", "Recorder", "Timeline", "build", "gap_values"]

MANTISSA_BITS: Final = 7
LOWEST_EXPONENT: Final = -30
HIGHEST_EXPONENT: Final = 17
GAP_BINS: Final = (HIGHEST_EXPONENT - LOWEST_EXPONENT) * (1 << MANTISSA_BITS) + 1
"""Bin 0 holds gaps of zero (tokens of one decode block) and those under a nanosecond."""

PACES: Final = 1 << 16
"""Step-time factors drawn; a longer run uses them again."""

TIMELINE: Final = 2048
"""Samples kept; when they are full every second one goes and the stride doubles."""


class Outcome(Columns):
    """One row a request."""

    finish_s: F8
    """End of its last step; NaN if it did not finish."""
    gap_max_s: F8
    recomputed_tokens: I8
    """Tokens computed again after preemptions."""
    preempted_s: F8
    """Time lost to preemptions: from the start of a step it was put out of to that of the step it resumed
    in, or until it left."""
    preempted_at_s: F8
    """Start of the step it was put out of last; without meaning where it never was."""
    reason: I8
    """1 + `hooks.FINISHED`, `ABORTED` or `REJECTED`; 0 while it lives."""


class Counters(Columns):
    """One row: totals of the run."""

    steps: I8
    request_steps: I8
    busy_s: F8
    step_tokens: I8
    prefill_tokens: I8
    decode_tokens: I8
    recomputed_tokens: I8
    cached_tokens: I8
    """Found in the prefix cache at admissions."""
    preemptions: I8
    displaced: I8
    """Preempted for a waiting request's sake."""
    in_vain: I8
    """Displaced for one that did not start in that step (prefix cache)."""
    pressure: I8
    escapes: I8
    completed: I8
    aborted: I8
    rejected: I8
    over_limit_steps: I8
    """Steps with live KV above its capacity (``kv_limit = reported``)."""
    most_blocks: I8
    most_waiting: I8
    waiting_at_end_of_arrivals: I8
    end_of_arrivals_s: F8
    samples: I8
    """Entries of the timeline in use."""
    stride: I8
    """Steps a sample."""
    since: I8
    """Steps since the last sample."""


class Timeline(Columns):
    """Samples of the engine over time."""

    clock_s: F8
    waiting: I8
    running: I8
    used_blocks: I8


class Recorder(NamedTuple):
    """Everything a run writes besides the engine's own memory."""

    out: Any
    counters: Any
    gaps: NDArray[np.int64]
    """(groups, GAP_BINS)"""
    timeline: Any
    pace: NDArray[np.float64]
    """What the steps' times are multiplied by, in turn and then again; a power of two of them."""
    on_time_tokens: NDArray[np.int64]
    """(rows,) output tokens after the first that came before they were due, -1 where they are never due;
    empty where none are, so that a run without objectives loads nothing for a token."""


class Records(NamedTuple):
    """The structured arrays behind a `Recorder`'s views."""

    out: np.ndarray[Any, Any]
    counters: np.ndarray[Any, Any]
    timeline: np.ndarray[Any, Any]


def build(
    rows: int, groups: int, due: NDArray[np.bool_], jitter: float = 0.0, seed: int = 0
) -> tuple[Recorder, Records]:
    """An empty recorder for ``rows`` requests in ``groups`` groups.

    ``due``: (rows,) whether a request's later tokens are due at any time. ``jitter``: coefficient
    of variation of a step's time about the latency model's.
    """
    out, out_view = allocate(Outcome, rows)
    counters, counters_view = allocate(Counters, 1)
    timeline, timeline_view = allocate(Timeline, TIMELINE)
    out["finish_s"] = np.nan
    counters["stride"] = 1
    gaps = np.zeros((groups, GAP_BINS), dtype=np.int64)
    on_time = np.where(due, 0, -1) if due.any() else np.zeros(0, dtype=np.int64)
    recorder = Recorder(out_view, counters_view, gaps, timeline_view, _paces(jitter, seed), on_time)
    return recorder, Records(out, counters, timeline)


def _paces(jitter: float, seed: int) -> NDArray[np.float64]:
    """Lognormal factors of mean 1; a single 1 without jitter."""
    if jitter == 0:
        return np.ones(1)
    variance = math.log1p(jitter * jitter)
    draws = np.random.Generator(np.random.PCG64(seed)).standard_normal(PACES)
    factors: NDArray[np.float64] = np.exp(math.sqrt(variance) * draws - variance / 2)
    return factors


@kernel
def gap_bin(seconds: float) -> int:
    """The bin of a gap in seconds."""
    bits = np.float64(seconds).view(np.int64) >> (52 - MANTISSA_BITS)
    index: Any = bits - ((LOWEST_EXPONENT + 1023) << MANTISSA_BITS) + 1
    if index < 0:
        return 0
    return index if index < GAP_BINS else GAP_BINS - 1


def gap_values() -> NDArray[np.float64]:
    """(GAP_BINS,) middle of each bin in seconds; 0 for the first."""
    first = (LOWEST_EXPONENT + 1023) << MANTISSA_BITS
    edges = (np.arange(first, first + GAP_BINS, dtype=np.int64) << (52 - MANTISSA_BITS)).view(np.float64)
    values = np.zeros(GAP_BINS)
    values[1:] = (edges[:-1] + edges[1:]) / 2
    return values


@routine
def _thin(r: Any) -> None:
    """Drop every second sample and take half as many from now on."""
    line = r.timeline
    for i in range(TIMELINE // 2):
        line.clock_s[i] = line.clock_s[2 * i]
        line.waiting[i] = line.waiting[2 * i]
        line.running[i] = line.running[2 * i]
        line.used_blocks[i] = line.used_blocks[2 * i]
    r.counters.samples[0] = TIMELINE // 2
    r.counters.stride[0] *= 2


@kernel
def sample(e: Any, r: Any, now: float) -> None:
    """Note one step's end on the timeline, if it is its turn."""
    c = r.counters
    c.since[0] += 1
    if c.since[0] < c.stride[0]:
        return
    c.since[0] = 0
    if c.samples[0] == TIMELINE:
        _thin(r)
    i, line = c.samples[0], r.timeline
    line.clock_s[i] = now
    line.waiting[i], line.running[i] = e.core.waiting[0], e.core.running[0]
    line.used_blocks[i] = e.core.total_blocks[0] - e.core.free_blocks[0]
    c.samples[0] = i + 1
