"""The plan of one step: rank, decodes, prefills, admit.

`plan` reads the engine and writes only its plan part, so planning twice gives the same
plan. Each phase order is one line of `_stage`; `_pass` does all the work.
"""

from __future__ import annotations

import math
from typing import Any, Final

from .. import hooks
from .._jit import kernel, where
from ..rules import (
    DECODE_FIRST,
    KV_STALL,
    ORDER_ALL,
    PREFILL_ALONE,
    RANKED,
    RUNNING_FIRST,
    STOP,
)
from ..table import DECODE
from .budget import allow_copies, budget_copies, spend_copies
from .engine import EVICTED, NONE
from .fit import first_blocks, first_tokens, fit, lower_budget, spend_seconds, wanted
from .host import decoding, reach
from .kv import (
    blocks_for,
    blocks_free,
    cached_tokens,
    enforced,
    idle_blocks,
    missing,
    more_blocks,
    name_blocks,
    remember,
    take_blocks,
    undo,
)
from .rank import before, order_running
from .victims import displace, evict, room_for_running
from .waiting import has_lanes, is_list, next_waiting, start_cursor

__all__ = ["plan", "unmark"]

NOBODY: Final = 0
PREFILLS: Final = 1
DECODES: Final = 2
EVERYBODY: Final = 3
"""Which running rows a pass takes, as a bit a phase."""

AHEAD: Final = -1
"""To see whom the step will displace, from the prefix cache as it is before it."""
FIRST: Final = 0
UNTIMED: Final = 1
"""The policy's seconds hold no piece of work at all: they cannot bind."""
DEADLOCK: Final = 2
"""Everybody stalls for a block: the newest gives way."""

GO_ON: Final = 0
END: Final = 1
"""What the next row finds: more to give, or a pass that is over."""


@kernel
def plan(e: Any, slot: int, now: float) -> int:
    """Decide the next step and return its number of items.

    The items go to slot ``slot``; ``evicted`` and ``admitted`` say who leaves and enters.
    """
    attempt, ahead = _first_attempt(e), 0
    while True:
        _begin(e, now, attempt > FIRST)
        _name(e, attempt)
        for i in range(ahead):
            evict(e, e.seats.ahead[i], e.seats.ahead_gain[i], slot)
        if attempt == DEADLOCK:
            evict(e, e.seats.order[e.core.running[0] - 1], -1, slot)
            e.plan.pressure[0] += 1
        for stage in range(3):
            _pass(e, stage, slot, now)
        if attempt == AHEAD:
            ahead = _keep_ahead(e, slot)
            attempt = FIRST
            continue
        if e.plan.items[0] > 0 or attempt == DEADLOCK:
            return e.plan.items[0]
        if attempt == FIRST and e.plan.timed[0]:
            attempt = UNTIMED
        elif ahead > 0:
            return 0  # displaced in vain: the next step has their blocks
        elif e.core.kv_short[0] == KV_STALL and e.core.running[0] > 0 and e.core.in_flight[0] == 0:
            attempt = DEADLOCK  # with a step under way, its end may yet free blocks
        else:
            return 0
        _clear(e)


def _at_once(e: Any) -> int:
    return FIRST


@where("may_preempt", otherwise=_at_once)
def _first_attempt(e: Any) -> int:
    """AHEAD where blocks have names and a waiting row may displace a running one."""
    may = e.core.may_preempt_at_cap[0] or e.core.may_preempt_for_kv[0]
    return AHEAD if may and named(e) else FIRST


def _no(e: Any) -> bool:
    return False


@where("prefix", otherwise=_no, of="blocks")
def named(e: Any) -> bool:
    """Whether blocks have names (prefix cache)."""
    return True


@kernel
def _name(e: Any, attempt: int) -> None:
    """Named blocks change while the plan is made, so that each row sees what the one before did."""
    e.plan.exact[0] = 1 if named(e) and attempt != AHEAD else 0
    if not e.plan.exact[0]:
        return
    if attempt > FIRST:
        undo(e.blocks)
    elif e.plan.timed[0] or e.core.kv_short[0] == KV_STALL:
        remember(e.blocks)
    e.plan.free[0] = blocks_free(e.blocks, e.plan.free[0])


@kernel
def _keep_ahead(e: Any, slot: int) -> int:
    """Note whom the plan displaces and forget the plan; returns how many."""
    count = 0 if e.plan.pressure[0] > 0 else e.plan.evicted[0]
    for i in range(count):
        e.seats.ahead[i], e.seats.ahead_gain[i] = e.seats.evicted[i], e.seats.gain[i]
    unmark(e, slot)
    return count


@kernel
def _clear(e: Any) -> None:
    """Forget an empty plan's evictions."""
    for i in range(e.plan.evicted[0]):
        e.rows.mark[e.seats.evicted[i]] = NONE


@kernel
def unmark(e: Any, slot: int) -> None:
    """Forget the plan in ``slot`` that was made and not carried out."""
    _clear(e)
    for i in range(e.plan.items[0]):
        e.rows.mark[e.items.row[slot * e.seats.run.shape[0] + i]] = NONE


@kernel
def _live(e: Any) -> int:
    """Fill ``live`` with the rows that `hooks.prepare` may see."""
    count = 0
    if has_lanes(e):
        for lane in range(e.core.lanes[0]):
            for i in range(e.lanes.count[lane]):
                e.cursor.live[count] = e.heap[lane, i]
                count += 1
                if not e.core.sees_all[0]:
                    break
    elif is_list(e):
        for i in range(e.lanes.count[0]):
            e.cursor.live[count] = e.heap[0, i]
            count += 1
        for i in range(e.core.running[0]):
            e.cursor.live[count] = e.seats.run[i]
            count += 1
    return count


@kernel
def _begin(e: Any, now: float, unlimited: bool) -> None:
    p, core = e.plan, e.core
    live = e.cursor.live[: _live(e)]
    hooks.prepare(e.table, live, now, e.state, e.scratch, e.cost, e.params)
    tokens, seqs, seconds = hooks.step_limits(e.table, live, now, e.state, e.scratch, e.cost, e.params)
    p.budget[0] = tokens if tokens < core.token_budget[0] else core.token_budget[0]
    p.seqs[0] = seqs
    p.seconds[0] = math.inf if unlimited else seconds
    p.timed[0] = 0 if math.isinf(p.seconds[0]) else 1
    p.free[0] = core.free_blocks[0]
    p.residents[0] = core.running[0]
    p.unchunked[0] = p.growth[0] = p.decodes[0] = p.items[0] = p.evicted[0] = p.admitted[0] = 0
    p.escapes[0] = p.pressure[0] = 0
    p.unserved[0] = -1
    p.chunk_cap[0] = _chunk_cap(core)
    order_running(e, now)
    if core.waiting[0] > 0:
        start_cursor(e, now)
    budget_copies(e, now)


@kernel
def _chunk_cap(core: Any) -> int:
    """Most prefill tokens of one request in this step, 0 = no cap."""
    cap, live = core.chunk_cap[0], core.running[0] + core.waiting[0]
    if live == 0 or (live == 1 and not core.chunk_cap_alone[0]):
        return 0
    if cap > 0 and core.chunk_cap_adaptive[0] and core.token_budget[0] // live > cap:
        return core.token_budget[0] // live
    return cap


@kernel
def _stage(e: Any, stage: int) -> tuple[int, bool]:
    """``(mask, merge)`` of a stage of the step: which running rows it takes, and whether
    the waiting compete in it. Three stages make every phase order; one may be empty."""
    order, begun = e.core.phase_order[0], NOBODY if e.core.continuation_first[0] else PREFILLS
    if order == RUNNING_FIRST:
        return (EVERYBODY if stage == 0 else NOBODY), stage == 1
    if order == DECODE_FIRST:
        return (DECODES if stage == 0 else PREFILLS - begun if stage == 1 else begun), stage == 2
    if order != RANKED:  # prefill first, or alone
        return (PREFILLS - begun if stage == 0 else begun if stage == 1 else DECODES), stage == 1
    return (PREFILLS - begun if stage == 0 else begun | DECODES if stage == 1 else NOBODY), stage == 1


@kernel
def _takes(e: Any, row: int, mask: int) -> bool:
    """Whether a pass over ``mask`` looks at this running row."""
    bit = DECODES if e.table.phase[row] == DECODE else PREFILLS
    return (mask & bit) != 0 and e.rows.mark[row] == NONE


@kernel
def _pass(e: Any, stage: int, slot: int, now: float) -> None:
    """Give budget to running rows, in run order; if the waiting compete, to them too, by rank.

    Where the policy does not rank the running, all of them come before the waiting.
    """
    mask, merge = _stage(e, stage)
    if stage == 2 and e.core.phase_order[0] == PREFILL_ALONE and e.plan.items[0] > e.plan.decodes[0]:
        return
    p, ranked, running, i = e.plan, e.core.order_scope[0] == ORDER_ALL, e.core.running[0], 0
    if mask == NOBODY:
        i = running
    candidate = -1
    if merge and e.core.waiting[0] > 0 and p.budget[0] > 0:
        candidate = p.unserved[0] = next_waiting(e, now)
    while p.budget[0] > 0 and p.seqs[0] > 0:
        while i < running and not _takes(e, e.seats.order[i], mask):
            i += 1
        if i < running and (candidate < 0 or not ranked or before(e, e.seats.order[i], candidate)):
            if _take_running(e, e.seats.order[i], i, slot, now) == END:
                return
            i += 1
        elif candidate < 0:
            return
        elif _take_waiting(e, candidate, slot, now) == END:
            candidate = -1
        else:
            candidate = p.unserved[0] = next_waiting(e, now)


@kernel
def _take_running(e: Any, row: int, index: int, slot: int, now: float) -> int:
    """Plan a running row's next tokens, preempting for their blocks if the rules say so."""
    want = wanted(e, row)
    if want <= 0:
        return GO_ON
    tokens = fit(e, row, want, want)
    lower_budget(e, row, want, tokens)
    if tokens <= 0:
        return END if e.core.misfit[0] == STOP else GO_ON
    table = e.table
    need = missing(e, row, tokens)
    if need > e.plan.free[0] and enforced(e):
        if e.core.kv_short[0] == KV_STALL:
            return GO_ON
        if not room_for_running(e, row, index, need, slot, now):
            lost = e.rows.mark[row] == EVICTED and e.core.phase_order[0] == RUNNING_FIRST
            return END if lost else GO_ON  # vLLM ends the pass when a request gave way itself
    e.plan.growth[0] += need
    if e.plan.exact[0]:
        more_blocks(e.blocks, row, need)
        _give_names(e, row, table.computed_tokens[row] + tokens)
    _add(e, row, tokens, need, need, 0, slot)
    return GO_ON


@kernel
def _take_waiting(e: Any, row: int, slot: int, now: float) -> int:
    """Start a waiting row if the rules allow it; END when no other may start either."""
    p, core = e.plan, e.core
    if p.pressure[0] > 0 and (core.kv_short[0] == KV_STALL or not core.admit_after_preemption[0]):
        return END  # after a deadlock, what was freed is for those who stalled
    known = e.table.prompt_tokens[row] + e.table.generated_tokens[row]
    have = cached_tokens(e.blocks, row, known)
    if not allow_copies(e, row, known):
        return GO_ON
    tokens = first_tokens(e, row, known, have)
    if tokens <= 0:
        lower_budget(e, row, known - have, 0)
        return END if core.misfit[0] == STOP else GO_ON
    idle = idle_blocks(e.blocks, row, have)
    need, taken = first_blocks(e, row, known, tokens, have, idle)
    full = p.residents[0] >= core.max_seqs[0]
    if full or need > p.free[0]:
        may = core.may_preempt_at_cap[0] if full else core.may_preempt_for_kv[0]
        if may and not p.exact[0]:
            tokens, taken = displace(e, row, known, have, idle, slot, now)
        else:
            tokens = 0
        if tokens <= 0:
            return END if core.blocked_head[0] == STOP or full else GO_ON
    lower_budget(e, row, known - have, tokens)
    if p.exact[0]:
        take_blocks(e.blocks, row, have, taken)
        _give_names(e, row, reach(e, row, have) + tokens)
    later = blocks_for(e, known) - taken
    p.unchunked[0] += later if later > 0 else 0  # a resumed decode takes its next tokens' blocks too
    p.residents[0] += 1
    e.seats.admitted[p.admitted[0]] = row
    p.admitted[0] += 1
    spend_copies(e, row)
    _add(e, row, tokens, taken + blocks_for(e, have), taken + idle, have, slot)
    return GO_ON


@kernel
def _give_names(e: Any, row: int, tokens: int) -> None:
    """Name the row's full blocks of ``tokens`` tokens, but not of output that is still to come."""
    known = e.table.prompt_tokens[row] + e.table.generated_tokens[row]
    name_blocks(e.blocks, row, tokens if tokens < known else known)


@kernel
def _add(e: Any, row: int, tokens: int, blocks: int, spent: int, found: int, slot: int) -> None:
    """The row gets ``tokens`` and holds ``blocks`` more, for which ``spent`` free ones were used up."""
    p, items = e.plan, e.items
    at = slot * e.seats.run.shape[0] + p.items[0]
    items.row[at], items.tokens[at], items.blocks[at], items.found[at] = row, tokens, blocks, found
    p.items[0] += 1
    e.rows.mark[row] = p.items[0]
    p.budget[0] -= tokens
    p.seqs[0] -= 1
    p.free[0] -= spent
    if decoding(e, row):
        p.decodes[0] += 1
    spend_seconds(e, row, tokens, 1)
