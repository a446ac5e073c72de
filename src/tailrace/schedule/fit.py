"""How much of a piece of work fits the step: tokens, caps, and the policy's seconds."""

from __future__ import annotations

from typing import Any

from .. import hooks
from .._jit import kernel, where
from ..table import DECODE

__all__ = ["fit", "spend_seconds"]


@kernel
def fit(e: Any, row: int, want: int, known: int) -> int:
    """Tokens of ``want`` that fit the step: budget, caps and seconds; 0 if none do."""
    p, rules = e.plan, e.core
    decoding = e.table.phase[row] == DECODE
    if decoding:
        if rules.decode_cap[0] > 0 and p.decodes[0] >= rules.decode_cap[0]:
            return 0
    elif 0 < p.chunk_cap[0] < want:
        want = p.chunk_cap[0]
    tokens = want if want < p.budget[0] else p.budget[0]
    tokens = _within_seconds(e, row, tokens, decoding)
    if not decoding and tokens < known and tokens <= rules.min_last_chunk[0]:
        return 0
    return tokens


def _all_of_it(e: Any, row: int, tokens: int, decoding: bool) -> int:
    return tokens


@where("step_limits", otherwise=_all_of_it)
def _within_seconds(e: Any, row: int, tokens: int, decoding: bool) -> int:
    """The most of ``tokens`` whose predicted time fits the seconds left."""
    if not e.plan.timed[0]:
        return tokens
    left, kv = e.plan.seconds[0], e.table.computed_tokens[row]
    if decoding:
        return tokens if hooks.decode_s(tokens, kv, e.cost) <= left else 0
    if hooks.chunk_s(tokens, kv, e.cost) <= left:
        return tokens
    low, high = 0, tokens
    while high - low > 1:
        middle = (low + high) // 2
        if hooks.chunk_s(middle, kv, e.cost) <= left:
            low = middle
        else:
            high = middle
    return low


def _nothing(e: Any, row: int, tokens: int, times: int) -> None:
    return


@where("step_limits", otherwise=_nothing)
def spend_seconds(e: Any, row: int, tokens: int, times: int) -> None:
    """Take the predicted time of planned work off the seconds left (``times`` 1), or give it back (-1)."""
    if e.plan.timed[0]:
        kv = e.table.computed_tokens[row]
        decoding = e.table.phase[row] == DECODE
        e.plan.seconds[0] -= times * (
            hooks.decode_s(tokens, kv, e.cost) if decoding else hooks.chunk_s(tokens, kv, e.cost)
        )
