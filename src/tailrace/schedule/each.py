"""Every hook of a policy, called once: what does not compile shows here first."""

from __future__ import annotations

import math
from typing import Any

from .. import hooks
from .._jit import entry
from .rank import refresh

__all__ = ["each"]


@entry
def each(e: Any, row: int, now: float) -> None:
    """Call all hooks of ``e``'s policy on a row, with the types that an engine gives them.

    It compiles in a second, and an engine in fifteen. To run it means nothing.
    """
    table, live, state, scratch, cost, params = e.table, e.cursor.live, e.state, e.scratch, e.cost, e.params
    hooks.on_arrival(table, row, now, state, params)
    e.rows.lane[row] = hooks.lane(table, row, state, params)
    hooks.prepare(table, live, now, state, scratch, cost, params)
    tokens, seqs, seconds = hooks.step_limits(table, live, now, state, scratch, cost, params)
    e.rows.tier[row], e.rows.key[row] = tokens + seqs, seconds
    if hooks.may_preempt(table, row, row, now, state, scratch, cost, params):
        protected, loss = hooks.victim(table, row, now, state, scratch, cost, params)
        e.rows.key[row] = math.inf if protected else loss
    refresh(e, row, now)
    hooks.on_admit(table, row, True, e.rows.tier[row], now, state, params)
    hooks.on_progress(table, row, 1, now, state, params)
    hooks.on_prefill_done(table, row, now, state, params)
    hooks.on_preempt(table, row, now, state, params)
    hooks.on_remove(table, row, hooks.FINISHED, now, state, params)
    hooks.after_step(table, live, 0.0, now, state, params)
