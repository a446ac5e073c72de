"""Preemption: whose KV or place is taken, decided within the plan and undone with it."""

from __future__ import annotations

from typing import Any

from .. import hooks
from .._jit import kernel, where
from ..rules import ORDER_ALL, RANKED, VICTIM_HOOK
from ..table import DECODE
from .engine import EVICTED, NONE
from .fit import first_blocks, first_tokens, spend_seconds
from .kv import blocks_free, give_back, yields
from .rank import earlier, outranks, refresh

__all__ = ["displace", "evict", "room_for_running"]


def _none_cheapest(e: Any, first: int, now: float) -> tuple[int, bool]:
    return -1, False


def _no_room(e: Any, row: int, known: int, have: int, idle: int, slot: int, now: float) -> tuple[int, int]:
    return 0, 0


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
def evict(e: Any, row: int, gain: int, slot: int) -> None:
    """Take a running row out of the plan, its work in this step and its KV with it.

    ``gain``: the waiting row it is displaced for, or -1.
    """
    _credit(e, row, slot)
    _strike(e, row, gain, slot)
    if e.plan.exact[0]:
        give_back(e.blocks, row)
        e.plan.free[0] = blocks_free(e.blocks, e.plan.free[0])


@kernel
def _credit(e: Any, row: int, slot: int) -> None:
    """Give back what the row holds and what it was to get in this step."""
    plan, items = e.plan, e.items
    plan.free[0] += yields(e.blocks, row, e.table.kv_blocks[row])
    plan.residents[0] -= 1
    if e.rows.mark[row] > NONE:
        at = slot * e.seats.run.shape[0] + e.rows.mark[row] - 1
        plan.budget[0] += items.tokens[at]
        plan.free[0] += items.blocks[at]
        plan.growth[0] -= items.blocks[at]
        plan.seqs[0] += 1
        spend_seconds(e, row, items.tokens[at], -1)
        if e.table.phase[row] == DECODE:
            plan.decodes[0] -= 1


@kernel
def _strike(e: Any, row: int, gain: int, slot: int) -> None:
    """Cross the row out: off the items, on to the evicted."""
    items, plan, mark, first = e.items, e.plan, e.rows.mark, slot * e.seats.run.shape[0]
    if mark[row] > NONE:
        for i in range(first + mark[row] - 1, first + plan.items[0] - 1):
            items.row[i], items.tokens[i], items.blocks[i] = items.row[i + 1], items.tokens[i + 1], items.blocks[i + 1]
            items.found[i] = items.found[i + 1]
            mark[items.row[i]] -= 1
        plan.items[0] -= 1
    mark[row] = EVICTED
    e.seats.evicted[plan.evicted[0]], e.seats.gain[plan.evicted[0]] = row, gain
    plan.evicted[0] += 1


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
        evict(e, chosen, -1, slot)
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
        if e.table.attained_tokens[other] < e.rows.safe_until_tokens[other]:
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
def displace(e: Any, row: int, known: int, have: int, idle: int, slot: int, now: float) -> tuple[int, int]:
    """Displace outranked running rows so that waiting row ``row`` finds a place and KV.

    ``(tokens, blocks)`` that it starts with; 0 tokens if no set of victims suffices. They are
    only taken once they do, so nobody is preempted for a request that then does not start.
    """
    p, rows, base = e.plan, e.rows, e.plan.evicted[0]
    budget, seqs, seconds, free = p.budget[0], p.seqs[0], p.seconds[0], p.free[0]
    residents, growth, decodes = p.residents[0], p.growth[0], p.decodes[0]
    count = tokens = taken = 0
    while True:
        if p.residents[0] < e.core.max_seqs[0]:
            tokens = first_tokens(e, row, known, have)
            need, taken = first_blocks(e, row, known, tokens, have, idle)
            if tokens > 0 and need <= p.free[0]:
                break
        loser = _next_loser(e, row, now)
        if loser < 0:
            tokens = 0
            break
        rows.tentative[loser] = 1
        e.seats.evicted[base + count] = loser
        count += 1
        _credit(e, loser, slot)
    for i in range(base, base + count):
        rows.tentative[e.seats.evicted[i]] = 0
        if tokens > 0:
            _strike(e, e.seats.evicted[i], row, slot)
    if tokens == 0:
        p.budget[0], p.seqs[0], p.seconds[0], p.free[0] = budget, seqs, seconds, free
        p.residents[0], p.growth[0], p.decodes[0] = residents, growth, decodes
    return tokens, taken
