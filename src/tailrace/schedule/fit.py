"""How much of a piece of work fits the step: tokens, caps, and the policy's seconds."""

from __future__ import annotations

from typing import Any

from .. import hooks
from .._jit import kernel, where
from ..rules import AS_TOKENS
from ..table import WAITING
from .engine import SECONDS, SPENT
from .host import decoding, reach
from .kv import admission
from .offload import kept_tokens

__all__ = ["first_blocks", "first_tokens", "fit", "lower_budget", "room", "spend_seconds", "wanted"]


@kernel
def wanted(e: Any, row: int) -> int:
    """Tokens that the row, running or swapped out, could compute in this step."""
    table = e.table
    if decoding(e, row):
        left = e.rows.output_tokens[row] - table.generated_tokens[row] - e.rows.pending_tokens[row]
        return left if left < e.core.decode_block_tokens[0] else e.core.decode_block_tokens[0]
    return e.rows.target_tokens[row] - table.computed_tokens[row]


@kernel
def fit(e: Any, row: int, want: int, known: int) -> int:
    """Tokens of ``want`` that fit the step: budget, caps and seconds; 0 if none do."""
    decodes = decoding(e, row)
    tokens = _within_seconds(e, row, _within_tokens(e, want, decodes), decodes)
    if not decodes and tokens < known and tokens <= e.core.min_last_chunk[0]:
        return 0
    return tokens


@kernel
def _within_tokens(e: Any, want: int, decodes: bool) -> int:
    """Tokens of ``want`` that budget and caps leave."""
    p, rules = e.plan, e.core
    if decodes:
        if rules.decode_cap[0] > 0 and p.decodes[0] >= rules.decode_cap[0]:
            return 0
    elif 0 < p.chunk_cap[0] < want:
        want = p.chunk_cap[0]
    return want if want < p.budget[0] else p.budget[0]


@kernel
def _kv_tokens(e: Any, row: int) -> int:
    """Tokens whose KV the row has when this step computes for it."""
    computed = e.table.computed_tokens[row]
    return computed if e.table.phase[row] != WAITING else kept_tokens(e.blocks, row, computed)


def _all_of_it(e: Any, row: int, tokens: int, decodes: bool) -> int:
    return tokens


@where("step_limits", otherwise=_all_of_it)
def _within_seconds(e: Any, row: int, tokens: int, decodes: bool) -> int:
    """The most of ``tokens`` whose predicted time fits the seconds left."""
    if e.plan.timed[0] != SECONDS:
        return tokens
    left, kv = e.plan.seconds[0], _kv_tokens(e, row)
    if decodes:
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
    if e.plan.timed[0] == SECONDS:
        kv = _kv_tokens(e, row)
        e.plan.seconds[0] -= times * (
            hooks.decode_s(tokens, kv, e.cost) if decoding(e, row) else hooks.chunk_s(tokens, kv, e.cost)
        )


def _keep_budget(e: Any, row: int, want: int, tokens: int) -> None:
    return


@where("step_limits", otherwise=_keep_budget)
def lower_budget(e: Any, row: int, want: int, tokens: int) -> None:
    """Under the rule ``seconds_as="tokens"``: if the seconds cut the row's work to ``tokens``, these are all
    that is left of the step's budget. What the evicted give back later is free for anybody, as in vLLM."""
    p = e.plan
    if p.timed[0] != SECONDS or e.core.seconds_as[0] != AS_TOKENS:
        return
    if tokens < _within_tokens(e, want, decoding(e, row)):
        p.budget[0], p.timed[0] = tokens, SPENT


def _whole_budget(e: Any, row: int, tokens: int) -> int:
    return int(e.plan.budget[0])


@where("step_limits", otherwise=_whole_budget)
def room(e: Any, row: int, tokens: int) -> int:
    """Tokens that a plan whose last piece is ``tokens`` of ``row`` has room for: of its budget, what the seconds
    left would let that piece grow by. After a decode nothing can: all of the budget."""
    if e.plan.timed[0] != SECONDS or decoding(e, row):
        return int(e.plan.budget[0])
    spend_seconds(e, row, tokens, -1)
    most = _within_seconds(e, row, tokens + e.plan.budget[0], False)
    spend_seconds(e, row, tokens, 1)
    return int(most - tokens)


def _first_chunk(e: Any, row: int, known: int, have: int) -> int:
    return fit(e, row, known - have, known - have)


@where("host", otherwise=_first_chunk, of="blocks")
def first_tokens(e: Any, row: int, known: int, have: int) -> int:
    """Tokens that a waiting row would start with; 0 if none fit. ``known``, ``have``: see `kv.admission`."""
    left = wanted(e, row) if decoding(e, row) else known - reach(e, row, have)
    return fit(e, row, left, left)


def _afresh(e: Any, row: int, known: int, tokens: int, have: int, idle: int) -> tuple[int, int]:
    return admission(e, known, tokens, have, idle)


@where("host", otherwise=_afresh, of="blocks")
def first_blocks(e: Any, row: int, known: int, tokens: int, have: int, idle: int) -> tuple[int, int]:
    """``(needed, taken)`` device blocks to start a waiting row with ``tokens`` tokens: see `kv.admission`.

    A swapped row needs blocks for all its computed tokens: those that it does not find in the prefix
    cache are taken as if they were part of the chunk.
    """
    end = reach(e, row, have) + tokens
    return admission(e, known if known > end else end, end - have, have, idle)
