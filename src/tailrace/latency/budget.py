"""The token budget whose steps meet a TPOT SLO."""

from __future__ import annotations

import math
from typing import Any, Final

from ..errors import UserError
from .shape import StepShape, step_seconds

__all__ = ["MOST_TOKENS", "budget_step", "token_budget"]

MOST_TOKENS: Final = 1 << 20
"""No budget is larger: more than an engine can use."""


def token_budget(
    cost: Any, tpot_slo_s: float, decodes: int = 0, decode_kv_tokens: float = 0.0, prefill_kv_tokens: int = 0
) -> int:
    """The most tokens of a step that ends within the SLO, with ``decodes`` decodes in it.

    ``tpot_slo_s``: seconds, met by a step strictly shorter. ``decodes``: of one token each, on
    ``decode_kv_tokens`` of KV (their mean). The rest of the step is one prefill chunk on
    ``prefill_kv_tokens`` computed before. The decodes' tokens count, as they do in an
    engine's ``token_budget``; so the result is at least ``decodes`` (then no prefill fits) or
    0, if the decodes alone, or one token alone, take too long. At most `MOST_TOKENS`.

    Source: Sarathi-Serve profiles the largest budget whose steps meet the TBT SLO. Without the
    decodes that a server runs at its load the answer is too large: their KV is read as well.
    Raises UserError for values that cannot be.
    """
    if not 0 < tpot_slo_s < math.inf:
        raise UserError(f"tpot_slo_s={tpot_slo_s} must be positive and finite, in seconds")
    for name, value in (
        ("decodes", decodes),
        ("decode_kv_tokens", decode_kv_tokens),
        ("prefill_kv_tokens", prefill_kv_tokens),
    ):
        if not 0 <= value < math.inf:
            raise UserError(f"{name}={value} must be at least 0 and finite")

    def fits(chunk: int) -> bool:
        return step_seconds(budget_step(chunk, decodes, decode_kv_tokens, prefill_kv_tokens), cost) < tpot_slo_s

    low, high = 0, max(0, MOST_TOKENS - decodes)
    if (decodes and not fits(0)) or not (decodes or fits(1)):
        return 0
    while low < high:  # a step's time never falls with its chunk
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return decodes + low


def budget_step(chunk: int, decodes: int, decode_kv_tokens: float, prefill_kv_tokens: int) -> StepShape:
    """A step of ``decodes`` decodes on ``decode_kv_tokens`` each, in the mean, and one chunk."""
    cached = prefill_kv_tokens if chunk else 0
    return StepShape(
        tokens=chunk + decodes,
        seqs=decodes + (1 if chunk else 0),
        prefill_seqs=1 if chunk else 0,
        prefill_tokens=chunk,
        prefill_sq=chunk * chunk,
        prefill_cross=chunk * cached,
        prefill_kv=cached,
        decode_seqs=decodes,
        decode_tokens=decodes,
        decode_kv=round(decodes * decode_kv_tokens),
    )
