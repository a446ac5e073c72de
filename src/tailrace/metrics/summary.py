"""Counts and metrics of all requests of a run, or of a group of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .fairness import fairness
from .gain import gain
from .requests import ABORTED, FINISHED, REJECTED, Requests
from .slo import attainment
from .statistics import statistics, weighted_statistics

__all__ = ["summarise"]


def summarise(
    r: Requests, keep: NDArray[np.bool_] | None = None, first_token_weight: float | None = None
) -> dict[str, Any]:
    """``{"counts", "metrics", "fairness"}`` of the requests in ``keep`` (all by default).

    ``"slo"`` is there where one of them has an objective, ``"gain"`` (of which
    ``first_token_weight`` is an option) where one for TTFT. ``keep`` must hold whole groups,
    as selections by class do, for the gaps to be right.
    """
    mask = np.ones(len(r.arrival_s), dtype=bool) if keep is None else keep
    groups = np.unique(r.group[mask])
    highest = float(r.gap_max_s[mask].max(initial=0.0))
    slo, tokens = attainment(r, mask), gain(r, mask, first_token_weight)
    return {
        "counts": _counts(r, mask),
        "metrics": {
            "wait_s": statistics(r.wait_s[mask]),
            "ttft_s": statistics(r.ttft_s[mask]),
            "tpot_s": statistics(r.tpot_s[mask]),
            "tbt_s": weighted_statistics(r.gaps[groups].sum(axis=0), r.gap_values_s, highest),
            "e2e_s": statistics(r.e2e_s[mask]),
            "preempted_s": statistics(r.preempted_s[mask & (r.reason == FINISHED)]),
        },
        **({} if slo is None else {"slo": slo}),
        **({} if tokens is None else {"gain": tokens}),
        "fairness": fairness(r, mask),
    }


def _counts(r: Requests, mask: NDArray[np.bool_]) -> dict[str, int]:
    reason = r.reason[mask]
    return {
        "submitted": int(mask.sum()),
        "completed": int((reason == FINISHED).sum()),
        "unfinished": int((reason == 0).sum()),
        "rejected": int((reason == REJECTED).sum()),
        "aborted": int((reason == ABORTED).sum()),
        "failed": 0,
        "shed": 0,
        "preemptions": int(r.preemptions[mask].sum()),
        "recomputed_tokens": int(r.recomputed_tokens[mask].sum()),
    }
