"""A live engine's state in the simulator's own memory, so that the same kernels plan its steps.

The mirror is told what the live engine did; `decide` then makes the plan that the simulator
would make, with `schedule.batch.plan`. Tokens count as computed when they are scheduled, as
in vLLM. The true output length is not known here: ``output_tokens`` is the longest allowed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _jit, hooks
from .._jit import entry, kernel, routine
from ..schedule.batch import plan, unmark
from ..schedule.engine import LAST, PART, STEADY
from ..schedule.fit import room
from ..schedule.kv import blocks_for
from ..schedule.moves import requeue, start, suspend
from ..schedule.rank import refresh
from ..schedule.waiting import add, discard, next_waiting
from ..table import DECODE, DONE, FREE, I8, PREFILL, WAITING, Columns

__all__ = ["Found", "arrive", "carry_out", "commit", "complete", "decide", "more", "remove"]
__all__ += ["settle", "told", "victims"]


class Told(NamedTuple):
    """What the live engine says of its prefix cache, by row: the mirror's ``blocks``."""

    found: NDArray[np.int64]
    """Tokens of a waiting request that are cached."""
    idle: NDArray[np.int64]
    """Blocks of these that count as free."""
    yields: NDArray[np.int64]
    """Blocks that a running request would free; below 0: all it holds."""


@kernel
def _found(b: Told, row: int, known: int) -> int:
    return int(b.found[row])


@kernel
def _idle(b: Told, row: int, tokens: int) -> int:
    return int(b.idle[row])


@kernel
def _yields(b: Told, row: int, held: int) -> int:
    return held if b.yields[row] < 0 else int(b.yields[row])


_jit.register(Told, {"cached_tokens": _found, "idle_blocks": _idle, "yields": _yields})


def told(rows: int) -> Told:
    """Nothing said yet."""
    zeros = [np.zeros(rows, dtype=np.int64) for _ in range(3)]
    zeros[2] -= 1
    return Told._make(zeros)


@entry
def arrive(e: Any, row: int, now: float) -> None:
    """A request came in; its columns are filled."""
    e.table.phase[row] = WAITING
    hooks.on_arrival(e.table, row, now, e.state, e.params)
    add(e, row, now)


@entry
def settle(e: Any, running: Any) -> None:
    """What runs, where the mirror's own account of it is not to be trusted: (row, tokens
    computed) a column."""
    table, count = e.table, 0
    for i in range(running.shape[1]):
        row = running[0, i]
        if count == e.seats.run.shape[0]:
            break
        if table.phase[row] == WAITING:
            discard(e, row)
            e.rows.target_tokens[row] = table.prompt_tokens[row] + table.generated_tokens[row]
            table.computed_tokens[row] = running[1, i]
            table.kv_blocks[row] = blocks_for(e, running[1, i])
            table.phase[row] = DECODE if running[1, i] >= e.rows.target_tokens[row] else PREFILL
        e.seats.run[count] = row
        count += 1
    e.core.running[0] = count


class Found(Columns):
    """What `decide` finds: one row."""

    displaced: I8
    """How many of ``seats.evicted`` are to be displaced, each for ``seats.gain``."""
    admitted: I8
    """How many start: ``seats.admitted``."""
    unserved: I8
    """The waiting row that is next, or -1."""
    items: I8
    """Items of the plan."""
    most_tokens: I8
    """The policy's limit of the step, 0 = none; one in seconds is what the plan holds (see the rule
    ``seconds_as``) and has room for, should the prefix cache hold less than was found before the step."""
    reordered: I8
    """1 if the running (``seats.run``) have changed places."""
    apart: I8
    """How many of those that will hold a place get nothing in this step, or lose it for want of KV:
    then the live engine's own account of the step counts."""
    running: I8
    """How many run, by the mirror's account."""


@entry
def decide(e: Any, count: int, last: int, free_blocks: int, places: int, now: float, found: Any) -> int:
    """Plan the step and apply nothing but the order of the running. Writes ``found``, a `Found`.

    ``count``, ``last``: how many run and the row of the last. If the mirror's account is another,
    nothing is done and the answer is 0: `settle` then, and ask again. A ``count`` below 0 plans the
    same step once more. ``places``: how many may run at once now.
    """
    core, p = e.core, e.plan
    if count >= 0:
        found.reordered[0] = 0
        if count != core.running[0] or (count > 0 and last != e.seats.run[count - 1]):
            return 0
    core.free_blocks[0], core.max_seqs[0] = free_blocks, places
    plan(e, 0, now)
    tokens = 0
    for i in range(p.items[0]):
        tokens += e.items.tokens[i]
    for i in range(core.running[0]):
        if e.seats.run[i] != e.seats.order[i]:
            e.seats.run[i] = e.seats.order[i]
            found.reordered[0] = 1
    found.displaced[0] = 0 if p.pressure[0] > 0 else p.evicted[0]
    found.admitted[0], found.unserved[0], found.items[0] = p.admitted[0], p.unserved[0], p.items[0]
    end = p.items[0] - 1
    budget = tokens + (room(e, e.items.row[end], e.items.tokens[end]) if p.admitted[0] > 0 else p.budget[0])
    found.most_tokens[0] = 0 if budget >= core.token_budget[0] else budget if budget > 1 else 1
    kept = core.running[0] - p.evicted[0] + p.admitted[0]
    found.apart[0] = kept - p.items[0] + p.pressure[0]
    found.running[0] = core.running[0]
    unmark(e, 0)
    return 1


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
def carry_out(e: Any, items: Any, count: int, found: Any, now: float) -> None:
    """The plan last made is what the live engine does. ``items``, its first ``count`` columns to fill
    in: (row, tokens, kind, seq); ``found``: tokens that the admitted were found to have computed."""
    for i in range(count):
        items[0, i], items[1, i] = e.items.row[i], e.items.tokens[i]
    for i in range(e.plan.evicted[0]):
        _suspend(e, e.seats.evicted[i], now)
    for i in range(found.shape[0]):
        _start(e, e.seats.admitted[i], found[i], now)
    _compute(e, items, count)


@entry
def commit(e: Any, items: Any, admitted: Any, preempted: Any, now: float) -> None:
    """A step is scheduled. ``items``: (row, tokens, kind, seq) a column, the last two to fill in;
    ``admitted``: (row, tokens found computed), in order; ``preempted``: rows that lost their KV."""
    for row in preempted:
        _suspend(e, row, now)
    for i in range(admitted.shape[1]):  # the plan may not have looked at them
        refresh(e, admitted[0, i], now)
    for i in range(admitted.shape[1]):
        _start(e, admitted[0, i], admitted[1, i], now)
    _compute(e, items, items.shape[1])


@routine
def _suspend(e: Any, row: int, now: float) -> None:
    if _runs(e, row):
        _vacate(e, row)
        suspend(e, row, now)


@routine
def _start(e: Any, row: int, found: int, now: float) -> None:
    if e.table.phase[row] == WAITING:
        start(e, row, now, now)
        e.table.computed_tokens[row] = e.table.cached_tokens[row] = found
        if e.core.running[0] < e.seats.run.shape[0]:
            e.seats.run[e.core.running[0]] = row
            e.core.running[0] += 1


@kernel
def _vacate(e: Any, row: int) -> None:
    """Take a row off the running list."""
    kept = 0
    for i in range(e.core.running[0]):
        if e.seats.run[i] != row:
            e.seats.run[kept] = e.seats.run[i]
            kept += 1
    e.core.running[0] = kept


@routine
def _compute(e: Any, items: Any, count: int) -> None:
    """Count the items' tokens."""
    table = e.table
    for i in range(count):
        row = items[0, i]
        computed = table.computed_tokens[row] + items[1, i]
        table.computed_tokens[row] = computed
        if computed > table.attained_tokens[row]:
            table.attained_tokens[row] = computed
        table.kv_blocks[row] = blocks_for(e, computed)
        items[2, i], items[3, i] = STEADY if table.phase[row] == DECODE else PART, table.seq[row]
        if table.phase[row] == PREFILL and computed >= e.rows.target_tokens[row]:
            table.phase[row] = DECODE
            items[2, i] = LAST
        if items[2, i] != PART:
            e.rows.pending_tokens[row] += 1


@kernel
def _runs(e: Any, row: int) -> bool:
    return bool(e.table.phase[row] == PREFILL or e.table.phase[row] == DECODE)


@entry
def complete(e: Any, items: Any, count: int, ended: Any, step_s: float, now: float) -> None:
    """A step ended. ``items``: as `commit` left the first ``count``; ``ended``, a column each: output
    tokens delivered so far, tokens computed, and 1 if it has finished. Of the items of requests that
    have left meanwhile, row becomes -1."""
    table = e.table
    for i in range(count):
        row = items[0, i]
        if table.seq[row] != items[3, i] or table.phase[row] == DONE or table.phase[row] == FREE:
            items[0, i] = -1  # aborted while the step ran; the row may be another's by now
            continue
        hooks.on_progress(table, row, items[1, i], now, e.state, e.params)
        if items[2, i] == LAST and table.phase[row] == DECODE:
            hooks.on_prefill_done(table, row, now, e.state, e.params)
        if items[2, i] != PART:
            e.rows.pending_tokens[row] -= 1
        made = ended[0, i] > table.generated_tokens[row]
        if made:
            if table.generated_tokens[row] == 0:
                table.first_token_s[row] = now
            table.last_token_s[row] = now
            table.generated_tokens[row] = ended[0, i]
        if ended[2, i]:
            _leave(e, row, hooks.FINISHED, now)
        elif table.phase[row] == WAITING:
            if made:
                requeue(e, row, now)
        else:
            table.computed_tokens[row] = ended[1, i]  # speculation may have taken some back
    kept = 0
    for i in range(count):  # the kinds have served: keep the rows there, without gaps
        if items[0, i] >= 0:
            items[2, kept] = items[0, i]
            kept += 1
    hooks.after_step(table, items[2, :kept], step_s, now, e.state, e.params)


@routine
def _leave(e: Any, row: int, reason: int, now: float) -> None:
    if e.table.phase[row] == WAITING:
        discard(e, row)
    else:
        _vacate(e, row)
    e.table.phase[row] = DONE
    hooks.on_remove(e.table, row, reason, now, e.state, e.params)


@entry
def remove(e: Any, row: int, reason: int, now: float) -> None:
    """One request leaves outside a step."""
    _leave(e, row, reason, now)
