"""Between waiting and running: what a row's start and its preemption change, in every host."""

from __future__ import annotations

import math
from typing import Any

from .. import hooks
from .._jit import kernel
from ..table import WAITING
from .host import resume, yield_kv
from .waiting import add, discard

__all__ = ["requeue", "start", "suspend"]


@kernel
def start(e: Any, row: int, now: float, begins_s: float) -> None:
    """A waiting row is admitted at ``now`` to a step that begins at ``begins_s``."""
    table = e.table
    discard(e, row)
    table.cached_tokens[row] = 0
    resume(e, row)
    first = math.isnan(table.started_s[row])
    if first:
        table.started_s[row] = begins_s
    hooks.on_admit(table, row, first, e.rows.tier[row], now, e.state, e.params)


@kernel
def suspend(e: Any, row: int, now: float) -> None:
    """A running row loses its place and its device KV, and waits again."""
    yield_kv(e, row)
    e.table.phase[row] = WAITING
    e.table.waiting_since_s[row] = now
    e.table.preemptions[row] += 1
    hooks.on_preempt(e.table, row, now, e.state, e.params)
    add(e, row, now)


@kernel
def requeue(e: Any, row: int, now: float) -> None:
    """A waiting row's columns have changed, and its key with them."""
    discard(e, row)
    add(e, row, now)
