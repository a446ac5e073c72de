"""Keys to order: which of two rows runs sooner, and the running in the order of a step."""

from __future__ import annotations

import math
from typing import Any

from .. import hooks
from .._jit import kernel
from ..rules import ORDER_ALL

__all__ = ["before", "earlier", "order_running", "outranks", "refresh"]


@kernel
def earlier(e: Any, a: int, b: int) -> bool:
    """Row ``a`` arrived before row ``b``; equal times are told apart by ``seq``."""
    table = e.table
    if table.arrival_s[a] != table.arrival_s[b]:
        return table.arrival_s[a] < table.arrival_s[b]
    return table.seq[a] < table.seq[b]


@kernel
def before(e: Any, a: int, b: int) -> bool:
    """Row ``a`` is ranked before row ``b``: tier, key, arrival, seq."""
    rows = e.rows
    if rows.tier[a] != rows.tier[b]:
        return rows.tier[a] < rows.tier[b]
    if rows.key[a] != rows.key[b]:
        return rows.key[a] < rows.key[b]
    return earlier(e, a, b)


@kernel
def outranks(e: Any, a: int, b: int) -> bool:
    """Row ``a`` has the strictly lower (tier, key): arrival alone outranks nobody."""
    rows = e.rows
    if rows.tier[a] != rows.tier[b]:
        return rows.tier[a] < rows.tier[b]
    return rows.key[a] < rows.key[b]


@kernel
def refresh(e: Any, row: int, now: float) -> None:
    """Ask the policy for the row's (tier, key). NaN ranks last: every order is total."""
    tier, value = hooks.key(e.table, row, now, e.state, e.scratch, e.cost, e.params)
    e.rows.tier[row] = tier
    e.rows.key[row] = value if value == value else math.inf


@kernel
def order_running(e: Any, now: float) -> None:
    """Fill ``order``: by rank if the policy ranks all requests, else as admitted.

    The list is nearly sorted from the step before, so insertion is the right sort.
    """
    count = e.core.running[0]
    ranked = e.core.order_scope[0] == ORDER_ALL
    for i in range(count):
        row = e.seats.run[i]
        if ranked:
            refresh(e, row, now)
            j = i
            while j > 0 and before(e, row, e.seats.order[j - 1]):
                e.seats.order[j] = e.seats.order[j - 1]
                j -= 1
            e.seats.order[j] = row
        else:
            e.seats.order[i] = row
