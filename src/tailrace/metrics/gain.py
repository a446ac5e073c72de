"""Token gain: which share of what the output tokens are worth came in time (TDG_Ratio).

Source: ProServe, arXiv 2512.12928, section 2 and "Metrics"; docs/metrics.md says what is the paper's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .requests import F8, Requests

__all__ = ["gain", "token_weights"]

Mask = NDArray[np.bool_]


def token_weights(r: Requests) -> float:
    """What a first token is worth by default, in later ones: mean prompt over mean output tokens of all requests."""
    return float(r.prompt_tokens.mean()) / float(r.output_tokens.mean())


def gain(
    r: Requests, keep: Mask | None = None, first_token_weight: float | None = None
) -> dict[str, float | None] | None:
    """The ``gain`` object of the requests in ``keep``; None where none of them has a TTFT objective.

    Token i is due TTFT_SLO + (i - 1) TPOT_SLO after the arrival, and worth the class's weight
    times ``first_token_weight`` (i = 1; by default `token_weights`) or 1. Ratios are of what all
    tokens that are due are worth, delivered or not; a later one is due where both objectives are set.
    """
    mask = np.isfinite(r.ttft_slo_s) if keep is None else keep & np.isfinite(r.ttft_slo_s)
    if not mask.any():
        return None
    worth = token_weights(r) if first_token_weight is None else first_token_weight
    later = mask & (r.on_time_tokens >= 0)
    due, came = float(r.weight[mask].sum()), float(r.weight[mask & r.first_on_time].sum())
    later_due = _dot(r.weight[later], r.output_tokens[later] - 1)
    later_came = _dot(r.weight[later], r.on_time_tokens[later])
    return {
        "tdg_ratio": (worth * came + later_came) / (worth * due + later_due),
        "first_token_ratio": came / due,
        "later_token_ratio": later_came / later_due if later_due > 0 else None,
        "first_token_weight": worth,
    }


def _dot(weight: F8, tokens: NDArray[np.int64]) -> float:
    return float(weight @ tokens)
