"""Tokens in time, counted from the times of all tokens."""

from __future__ import annotations

import itertools

import numpy as np

from tailrace.sim.watch import Watched, token_times


def in_time(seen: Watched) -> tuple[list[int], list[int]]:
    """By request, first and later tokens that came before they were due; -1 later ones where they are never due."""
    r = seen.result.requests
    times, starts = token_times(seen)
    first, later = [], []
    for row, (a, b) in enumerate(itertools.pairwise(starts)):
        due = [r.arrival_s[row] + r.ttft_slo_s[row]]
        due += [due[0] + i * r.tpot_slo_s[row] for i in range(1, b - a)]
        early = [t < d for t, d in zip(times[a:b], due, strict=False)]
        first.append(sum(early[:1]))
        later.append(sum(early[1:]) if np.isfinite(r.ttft_slo_s[row] + r.tpot_slo_s[row]) else -1)
    return first, later
