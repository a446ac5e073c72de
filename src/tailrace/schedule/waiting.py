"""The waiting: kept so that the next to start is found without looking at all of them.

STATIC, ON_PROGRESS   one binary heap by rank: a waiting row's key does not change.
LANES                 a heap a lane by arrival; only heads compete, with fresh keys.
EVERY_STEP            a plain list; each step keys all rows and selects the best few.

A **cursor** reads the waiting in order during planning and moves nothing, so a plan can
be made twice. Over a heap it is itself a small heap of candidates: reading one adds its
two children.
"""

from __future__ import annotations

from typing import Any, Final

from .. import hooks
from .._jit import kernel, where
from .rank import before, earlier, refresh

__all__ = ["add", "discard", "has_lanes", "is_list", "next_waiting", "start_cursor"]

SELECT: Final = 24
"""Best rows first selected from a list; each further selection is four times as large."""


def _no(e: Any) -> bool:
    return False


@where("every_step", otherwise=_no)
def is_list(e: Any) -> bool:
    """The waiting are a plain list."""
    return True


@where("lanes", otherwise=_no)
def has_lanes(e: Any) -> bool:
    """The waiting are a heap a lane, by arrival."""
    return True


@kernel
def _above(e: Any, a: int, b: int) -> bool:
    """Heap order of two rows of one lane."""
    return earlier(e, a, b) if has_lanes(e) else before(e, a, b)


@kernel
def _settle(e: Any, lane: int, index: int) -> None:
    """Move the row at ``heap[lane, index]`` up or down to its place."""
    heap, position, count = e.heap, e.rows.position, e.lanes.count[lane]
    row = heap[lane, index]
    while index > 0 and _above(e, row, heap[lane, (index - 1) >> 1]):
        other = heap[lane, (index - 1) >> 1]
        heap[lane, index] = other
        position[other] = index
        index = (index - 1) >> 1
    while True:
        child = 2 * index + 1
        if child + 1 < count and _above(e, heap[lane, child + 1], heap[lane, child]):
            child += 1
        if child >= count or not _above(e, heap[lane, child], row):
            break
        other = heap[lane, child]
        heap[lane, index] = other
        position[other] = index
        index = child
    heap[lane, index] = row
    position[row] = index


@kernel
def add(e: Any, row: int, now: float) -> None:
    """Row ``row`` starts to wait. O(log n); O(1) for EVERY_STEP."""
    lane = 0
    if has_lanes(e):
        lane = hooks.lane(e.table, row, e.state, e.params)
    elif not is_list(e):
        refresh(e, row, now)
    index = e.lanes.count[lane]
    e.heap[lane, index] = row
    e.lanes.count[lane] = index + 1
    e.rows.lane[row] = lane
    e.rows.position[row] = index
    e.core.waiting[0] += 1
    if not is_list(e):
        _settle(e, lane, index)


@kernel
def discard(e: Any, row: int) -> None:
    """Row ``row`` waits no longer. O(log n); O(1) for EVERY_STEP."""
    lane, index = e.rows.lane[row], e.rows.position[row]
    last = e.lanes.count[lane] - 1
    e.lanes.count[lane] = last
    e.core.waiting[0] -= 1
    if index < last:
        moved = e.heap[lane, last]
        e.heap[lane, index] = moved
        e.rows.position[moved] = index
        if not is_list(e):
            _settle(e, lane, index)


# ── reading in order: a heap of rows, the best (or, to select, the worst) on top ─────


@kernel
def _rise(e: Any, i: int, worst: bool) -> None:
    """Move ``cursor[i]`` up to its place."""
    row, index = e.cursor.row[i], e.cursor.index[i]
    while i > 0 and before(e, row, e.cursor.row[(i - 1) >> 1]) != worst:
        e.cursor.row[i], e.cursor.index[i] = e.cursor.row[(i - 1) >> 1], e.cursor.index[(i - 1) >> 1]
        i = (i - 1) >> 1
    e.cursor.row[i], e.cursor.index[i] = row, index


@kernel
def _sink(e: Any, count: int, worst: bool) -> None:
    """Move ``cursor[0]`` down to its place among ``count``."""
    row, index, i = e.cursor.row[0], e.cursor.index[0], 0
    while True:
        child = 2 * i + 1
        if child + 1 < count and before(e, e.cursor.row[child + 1], e.cursor.row[child]) != worst:
            child += 1
        if child >= count or before(e, e.cursor.row[child], row) == worst:
            break
        e.cursor.row[i], e.cursor.index[i] = e.cursor.row[child], e.cursor.index[child]
        i = child
    e.cursor.row[i], e.cursor.index[i] = row, index


@kernel
def _offer(e: Any, lane: int, index: int, now: float) -> None:
    """Make the row at ``heap[lane, index]`` a candidate, if there is one."""
    if index >= e.lanes.count[lane]:
        return
    row, i = e.heap[lane, index], e.plan.cursor_size[0]
    if has_lanes(e):
        refresh(e, row, now)
    e.cursor.row[i], e.cursor.index[i] = row, index
    e.plan.cursor_size[0] = i + 1
    _rise(e, i, False)


@kernel
def start_cursor(e: Any, now: float) -> None:
    """Begin to read the waiting in order of rank."""
    e.plan.cursor_size[0], e.plan.cursor_read[0], e.plan.cursor_past[0] = 0, 0, 0
    if is_list(e):
        for i in range(e.lanes.count[0]):
            refresh(e, e.heap[0, i], now)
        _select(e, SELECT, -1)
    else:
        for lane in range(e.core.lanes[0]):
            _offer(e, lane, 0, now)


@kernel
def next_waiting(e: Any, now: float) -> int:
    """The next waiting row in order of rank, or -1 at the end."""
    if is_list(e):
        return _next_selected(e)
    size = e.plan.cursor_size
    if e.plan.cursor_past[0] == 1:  # the top was read: its children take its place
        lane, child = e.rows.lane[e.cursor.row[0]], 2 * e.cursor.index[0] + 1
        size[0] -= 1
        e.cursor.row[0], e.cursor.index[0] = e.cursor.row[size[0]], e.cursor.index[size[0]]
        _sink(e, size[0], False)
        _offer(e, lane, child, now)
        _offer(e, lane, child + 1, now)
    e.plan.cursor_past[0] = 1 if size[0] > 0 else 0
    return e.cursor.row[0] if size[0] > 0 else -1


def _nobody(e: Any) -> int:
    return -1


def _nothing(e: Any, most: int, after: int) -> None:
    return


@where("every_step", otherwise=_nobody)
def _next_selected(e: Any) -> int:
    """``cursor[:size]`` holds a sorted selection; beyond it, select more."""
    count, read = e.plan.cursor_size[0], e.plan.cursor_read[0]
    if read == count:
        total = e.plan.cursor_past[0] + count
        if count == 0 or total >= e.lanes.count[0]:
            return -1
        _select(e, 4 * count, e.cursor.row[count - 1])
        e.plan.cursor_past[0] = total
        read = 0
    e.plan.cursor_read[0] = read + 1
    return e.cursor.row[read]


@where("every_step", otherwise=_nothing)
def _select(e: Any, most: int, after: int) -> None:
    """Put the ``most`` best waiting rows ranked after row ``after`` into ``cursor``, sorted.

    One pass with a bounded heap whose top is the worst kept: a row that does not beat it
    costs one comparison.
    """
    count, rows = 0, e.cursor.row
    for i in range(e.lanes.count[0]):
        row = e.heap[0, i]
        if count == most and not before(e, row, rows[0]):
            continue
        if after >= 0 and not before(e, after, row):
            continue
        if count < most:
            rows[count] = row
            _rise(e, count, True)
            count += 1
        else:
            rows[0] = row
            _sink(e, most, True)
    e.plan.cursor_size[0] = count
    for last in range(count - 1, 0, -1):
        worst = rows[0]
        rows[0] = rows[last]
        rows[last] = worst
        _sink(e, last, True)
