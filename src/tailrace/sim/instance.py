"""One instance: arrivals in, steps planned, carried out and timed.

`advance` is the whole loop. A step is planned at the end of the one before it (or, with
two in flight, at its start), so a request joins at the first step boundary after it
arrives.
"""

from __future__ import annotations

from typing import Any, Final

from .. import hooks
from .._jit import entry, routine
from ..schedule.batch import plan, unmark
from ..schedule.kv import fits_at_all, remember, undo
from ..schedule.waiting import add
from ..table import DONE, WAITING
from .apply import commit, complete, remove

__all__ = ["DRAINED", "PAUSED", "STUCK", "abort", "advance", "plan_only"]

DRAINED: Final = 0
"""Every request has left."""
PAUSED: Final = 1
"""The clock reached the given time, or the steps are used up."""
STUCK: Final = 2
"""Requests wait, nothing runs, and nothing more will arrive: a fault, never normal."""


@routine
def _arrivals(e: Any, r: Any, now: float) -> None:
    """Let in everybody who has arrived by ``now``."""
    core, table = e.core, e.table
    while core.next_row[0] < core.rows[0] and table.arrival_s[core.next_row[0]] <= now:
        row = core.next_row[0]
        core.next_row[0] += 1
        if fits_at_all(e, row):
            table.phase[row] = WAITING
            table.waiting_since_s[row] = table.arrival_s[row]
            hooks.on_arrival(table, row, now, e.state, e.params)
            add(e, row, now)
        else:
            table.phase[row] = DONE
            r.out.reason[row] = hooks.REJECTED + 1
            r.counters.rejected[0] += 1
        if core.next_row[0] == core.rows[0]:
            r.counters.waiting_at_end_of_arrivals[0] = core.waiting[0]
            r.counters.end_of_arrivals_s[0] = table.arrival_s[row]
    if core.waiting[0] > r.counters.most_waiting[0]:
        r.counters.most_waiting[0] = core.waiting[0]


@entry
def advance(e: Any, r: Any, until_s: float, steps: int) -> int:
    """Run until the clock passes ``until_s``, ``steps`` more steps are done, or all is drained.

    Writes the engine ``e`` and the recorder ``r``. Returns DRAINED, PAUSED or STUCK. With
    ``core.hold`` it stops when the last step has begun; the next call ends that first.
    """
    core, slots, width, idle = e.core, e.slots, e.slots.items.shape[0], False
    last = r.counters.steps[0] + steps
    while True:
        if core.in_flight[0] == width or (core.in_flight[0] > 0 and idle):
            slot = core.first_slot[0]
            core.clock_s[0] = slots.end_s[slot]
            core.first_slot[0] = (slot + 1) % width
            core.in_flight[0] -= 1
            complete(e, r, slot, core.clock_s[0])
        if r.counters.steps[0] >= last or core.clock_s[0] >= until_s:
            return PAUSED
        now = core.clock_s[0]
        if core.next_row[0] < core.rows[0] and e.table.arrival_s[core.next_row[0]] <= now:
            _arrivals(e, r, now)
        idle, slot = True, (core.first_slot[0] + core.in_flight[0]) % width
        if core.waiting[0] + core.running[0] > 0:
            idle = plan(e, slot, now) == 0 and e.plan.evicted[0] == 0
        if not idle:  # with a step under way, it runs when that one ends
            begins_s = slots.end_s[(slot + width - 1) % width] if core.in_flight[0] > 0 else now
            slots.end_s[slot] = begins_s + commit(e, r, slot, now, begins_s)
            core.in_flight[0] += 1
            if core.hold[0] and r.counters.steps[0] == last:
                return PAUSED
        elif core.in_flight[0] == 0:
            if core.next_row[0] == core.rows[0]:
                return STUCK if core.waiting[0] + core.running[0] > 0 else DRAINED
            core.clock_s[0] = e.table.arrival_s[core.next_row[0]]  # later than now, or it had come in


@entry
def plan_only(e: Any, slot: int, now: float) -> int:
    """Decide the next step and apply nothing (tests ask twice)."""
    remember(e.blocks)
    count = plan(e, slot, now)
    unmark(e, slot)
    undo(e.blocks)
    return count


@entry
def abort(e: Any, r: Any, row: int) -> bool:
    """Abort request ``row`` at the engine's clock; False if it is not live."""
    return remove(e, r, row, e.core.clock_s[0])
