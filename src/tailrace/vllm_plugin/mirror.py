"""A live engine's state in the simulator's own memory, so that the same kernels plan its steps.

The mirror is told what the live engine did; `decide` then makes the plan that the simulator
would make, with `schedule.batch.plan`. Tokens count as computed when they are scheduled, as
in vLLM. The true output length is not known here: ``output_tokens`` is the longest allowed.
"""

from __future__ import annotations

from typing import Any

from .. import hooks
from .._jit import entry, kernel
from ..schedule.batch import plan, unmark
from ..schedule.engine import LAST, PART, STEADY
from ..schedule.kv import blocks_for
from ..schedule.moves import requeue, start, suspend
from ..schedule.waiting import add, discard, next_waiting
from ..table import DECODE, DONE, FREE, PREFILL, WAITING

__all__ = ["arrive", "commit", "complete", "decide", "more", "remove", "requeued", "rewait", "victims"]


@entry
def arrive(e: Any, row: int, now: float) -> None:
    """A request came in; its columns are filled."""
    e.table.phase[row] = WAITING
    hooks.on_arrival(e.table, row, now, e.state, e.params)
    add(e, row, now)


@entry
def decide(e: Any, running: int, free_blocks: int, now: float) -> tuple[int, int, int, int, bool]:
    """Plan the step over ``seats.run[:running]`` and apply nothing.

    Returns counts: displaced (``seats.evicted``, for ``seats.gain``), admitted
    (``seats.admitted``), then the waiting row that is next, or -1, the tokens planned,
    and whether the policy limits them. ``seats.order`` is the order of the running.
    """
    core, p = e.core, e.plan
    core.running[0], core.free_blocks[0] = running, free_blocks
    plan(e, 0, now)
    tokens = 0
    for i in range(p.items[0]):
        tokens += e.items.tokens[i]
    limited = p.timed[0] == 1 or p.budget[0] + tokens < core.token_budget[0]
    displaced = 0 if p.pressure[0] > 0 else p.evicted[0]
    unmark(e, 0)
    return displaced, p.admitted[0], p.unserved[0], tokens, limited


@entry
def more(e: Any, rows: Any, now: float) -> int:
    """Waiting rows that rank behind those the plan has read, in order; how many they are."""
    count = 0
    while e.core.waiting[0] > 0 and count < rows.shape[0]:
        row = next_waiting(e, now)
        if row < 0:
            break
        rows[count] = row
        count += 1
    return count


@entry
def victims(e: Any, rows: Any, costs: Any, now: float) -> None:
    """``costs[i]``: (protected as 1 or 0, cost) of each row."""
    for i in range(rows.shape[0]):
        protected, cost = hooks.victim(e.table, rows[i], now, e.state, e.scratch, e.cost, e.params)
        costs[i, 0] = 1.0 if protected else 0.0
        costs[i, 1] = cost


@entry
def commit(e: Any, items: Any, admitted: Any, preempted: Any, now: float) -> None:
    """A step is scheduled. ``items``: (row, tokens, kind) with the kind to fill in;
    ``admitted``: (row, tokens found computed); ``preempted``: rows that lost their KV."""
    table = e.table
    for row in preempted:
        if _runs(e, row):
            suspend(e, row, now)
    for i in range(admitted.shape[1]):
        row = admitted[0, i]
        if table.phase[row] == WAITING:
            start(e, row, now, now)
            table.computed_tokens[row] = table.cached_tokens[row] = admitted[1, i]
    for i in range(items.shape[1]):
        row = items[0, i]
        computed = table.computed_tokens[row] + items[1, i]
        table.computed_tokens[row] = computed
        if computed > table.attained_tokens[row]:
            table.attained_tokens[row] = computed
        table.kv_blocks[row] = blocks_for(e, computed)
        items[2, i] = STEADY if table.phase[row] == DECODE else PART
        if table.phase[row] == PREFILL and computed >= e.rows.target_tokens[row]:
            table.phase[row] = DECODE
            items[2, i] = LAST
        if items[2, i] != PART:
            e.rows.pending_tokens[row] += 1


@kernel
def _runs(e: Any, row: int) -> bool:
    return bool(e.table.phase[row] == PREFILL or e.table.phase[row] == DECODE)


@entry
def complete(e: Any, items: Any, ended: Any, step_s: float, now: float) -> None:
    """A step ended. ``items``: as `commit` left them; ``ended``, a column each: seq of the
    request, output tokens delivered so far, tokens computed, and 1 if it has finished."""
    table, kept = e.table, 0
    for i in range(items.shape[1]):
        row = items[0, i]
        if table.seq[row] != ended[0, i] or table.phase[row] == DONE or table.phase[row] == FREE:
            continue  # aborted while the step ran; the row may be another's by now
        items[0, kept] = row
        kept += 1
        hooks.on_progress(table, row, items[1, i], now, e.state, e.params)
        if items[2, i] == LAST and table.phase[row] == DECODE:
            hooks.on_prefill_done(table, row, now, e.state, e.params)
        if items[2, i] != PART:
            e.rows.pending_tokens[row] -= 1
        made = ended[1, i] > table.generated_tokens[row]
        if made:
            if table.generated_tokens[row] == 0:
                table.first_token_s[row] = now
            table.last_token_s[row] = now
            table.generated_tokens[row] = ended[1, i]
        if ended[3, i]:
            _leave(e, row, hooks.FINISHED, now)
        elif table.phase[row] == WAITING:
            if made:
                requeue(e, row, now)
        else:
            table.computed_tokens[row] = ended[2, i]  # speculation may have taken some back
    hooks.after_step(table, items[0, :kept], step_s, now, e.state, e.params)


@kernel
def _leave(e: Any, row: int, reason: int, now: float) -> None:
    if e.table.phase[row] == WAITING:
        discard(e, row)
    e.table.phase[row] = DONE
    hooks.on_remove(e.table, row, reason, now, e.state, e.params)


@entry
def remove(e: Any, row: int, reason: int, now: float) -> None:
    """One request leaves outside a step."""
    _leave(e, row, reason, now)


@entry
def rewait(e: Any, row: int, now: float) -> None:
    """A running request waits again and keeps its KV: a session between its inputs."""
    if _runs(e, row):
        e.table.phase[row] = WAITING
        e.table.waiting_since_s[row] = now
        add(e, row, now)


@entry
def requeued(e: Any, row: int, now: float) -> None:
    """A waiting request's columns have changed."""
    if e.table.phase[row] == WAITING:
        requeue(e, row, now)
