"""Preemption: whose KV or place is taken, decided within the plan and undone with it."""

from __future__ import annotations

from typing import Any

from .. import hooks
from .._jit import kernel, where
from ..rules import ORDER_ALL, RANKED, VICTIM_HOOK
from ..table import DECODE
from .engine import EVICTED, NONE
from .rank import earlier, outranks, refresh

__all__ = ["evict", "room_for_running", "room_for_waiting", "spend_seconds"]


def _none_cheapest(e: Any, first: int, now: float) -> tuple[int, bool]:
    return -1, False


def _no_room(e: Any, row: int, need: int, slot: int, now: float) -> bool:
    return False


@where("victim", otherwise=_none_cheapest)
def _cheapest(e: Any, first: int, now: float) -> tuple[int, bool]:
    """``(row, protected)`` of least cost among ``order[first:]``, by the policy's ``victim``."""
    best, best_cost, best_protected = -1, 0.0, True
    for i in range(first, e.core.running[0]):
        row = e.seats.order[i]
        if e.rows.mark[row] == EVICTED:
            continue
        protected, cost = hooks.victim(e.table, row, now, e.state, e.scratch, e.cost, e.params)
        better = best < 0 or (best_protected and not protected)
        if not better and protected == best_protected:
            better = cost < best_cost or (cost == best_cost and earlier(e, best, row))
        if better:
            best, best_cost, best_protected = row, cost, protected
    return best, best >= 0 and best_protected


@kernel
def _last(e: Any, first: int) -> int:
    """The last row of ``order[first:]`` that is not evicted, or -1."""
    for i in range(e.core.running[0] - 1, first - 1, -1):
        if e.rows.mark[e.seats.order[i]] != EVICTED:
            return e.seats.order[i]
    return -1


@kernel
def evict(e: Any, row: int, slot: int) -> None:
    """Take a running row out of the plan, its work in this step and its KV with it."""
    mark, plan = e.rows.mark, e.plan
    if mark[row] > NONE:
        _unplan(e, row, slot)
    plan.free[0] += e.table.kv_blocks[row]
    plan.residents[0] -= 1
    mark[row] = EVICTED
    e.seats.evicted[plan.evicted[0]] = row
    plan.evicted[0] += 1


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


@kernel
def _unplan(e: Any, row: int, slot: int) -> None:
    items, plan, first = e.items, e.plan, slot * e.seats.run.shape[0]
    at = e.rows.mark[row] - 1
    plan.budget[0] += items.tokens[first + at]
    plan.free[0] += items.blocks[first + at]
    plan.growth[0] -= items.blocks[first + at]
    plan.seqs[0] += 1
    spend_seconds(e, row, items.tokens[first + at], -1)
    if e.table.phase[row] == DECODE:
        plan.decodes[0] -= 1
    for i in range(at, plan.items[0] - 1):
        items.row[first + i] = items.row[first + i + 1]
        items.tokens[first + i] = items.tokens[first + i + 1]
        items.blocks[first + i] = items.blocks[first + i + 1]
        e.rows.mark[items.row[first + i]] = i + 1
    plan.items[0] -= 1
    e.rows.mark[row] = NONE


@kernel
def room_for_running(e: Any, row: int, index: int, need: int, slot: int, now: float) -> bool:
    """Preempt until ``need`` blocks are free for the running row at ``order[index]``.

    Under ranked order only rows behind it may yield, and it waits if none is left; else it
    yields itself when it is the victim. Returns whether there is room now.
    """
    ranked = e.core.phase_order[0] == RANKED and e.core.order_scope[0] == ORDER_ALL
    first = index + 1 if ranked else 0
    while e.plan.free[0] < need:
        protected = False
        if e.core.victim[0] == VICTIM_HOOK:
            chosen, protected = _cheapest(e, first, now)
        else:
            chosen = _last(e, first)
        if chosen < 0:
            return False
        if protected:
            e.plan.escapes[0] += 1
        evict(e, chosen, slot)
        e.plan.pressure[0] += 1
        if chosen == row:
            return False
    return True


@kernel
def _next_loser(e: Any, row: int, now: float) -> int:
    """The next running row that waiting row ``row`` may displace, or -1."""
    best, best_cost = -1, 0.0
    for i in range(e.core.running[0] - 1, -1, -1):
        other = e.seats.order[i]
        if e.rows.mark[other] == EVICTED or e.rows.tentative[other]:
            continue
        if e.core.order_scope[0] != ORDER_ALL:
            refresh(e, other, now)
        if not outranks(e, row, other):
            continue
        if not hooks.may_preempt(e.table, row, other, now, e.state, e.scratch, e.cost, e.params):
            continue
        if e.core.victim[0] != VICTIM_HOOK:
            return int(other)
        protected, cost = hooks.victim(e.table, other, now, e.state, e.scratch, e.cost, e.params)
        if protected:
            continue
        if best < 0 or cost < best_cost or (cost == best_cost and earlier(e, best, other)):
            best, best_cost = other, cost
    return best


@where("may_preempt", otherwise=_no_room)
def room_for_waiting(e: Any, row: int, need: int, slot: int, now: float) -> bool:
    """Displace outranked running rows so that waiting row ``row`` finds a place and KV.

    All or nothing: the victims are only taken once they are known to suffice, so nobody
    is preempted for a request that then does not start.
    """
    plan, rows = e.plan, e.rows
    free, places, count = plan.free[0], e.core.max_seqs[0] - plan.residents[0], 0
    base = plan.evicted[0]
    enough = True
    while free < need or places <= 0:
        loser = _next_loser(e, row, now)
        if loser < 0:
            enough = False
            break
        rows.tentative[loser] = 1
        e.seats.evicted[base + count] = loser
        count += 1
        places += 1
        free += e.table.kv_blocks[loser]
        if rows.mark[loser] > NONE:
            free += e.items.blocks[slot * e.seats.run.shape[0] + rows.mark[loser] - 1]
    for i in range(count):
        rows.tentative[e.seats.evicted[base + i]] = 0
    if enough:
        for i in range(count):
            evict(e, e.seats.evicted[base + i], slot)
    return enough
