"""KV that stays on the device while its request waits, until somebody needs the room (``swap_out=when_needed``).

A **parked** row is preempted, its KV is still on the device, and host memory is reserved for all of it. Its
device blocks count as free: whoever plans may hand them out. Once all that a step takes is known, parked rows
are copied out, whole, until the blocks of those who stay parked are free in truth (`reclaim`). A parked row that
resumes takes the same blocks up again, and nothing is copied.

UniBoost's Algorithm 1 (arXiv 2606.18431) leaves the KV of whom it does not select on the device like this, and
chooses the victim by priority and swap cost. Here it is the worst ranked by the policy's keys: the last to
come back. Cost is left out, as a copy takes as long as it gives room, whoever's it is.
"""

from __future__ import annotations

from typing import Any

from .._jit import kernel, routine, where
from .rank import before, refresh
from .transfer import OUT, ask
from .waiting import has_lanes, is_list

__all__ = ["copy_out", "is_parked", "park", "reclaim", "unpark"]


@kernel
def is_parked(b: Any, row: int) -> bool:
    """Whether the row waits and its KV is on the device."""
    return b.stored.place[row] > 0


@kernel
def park(b: Any, row: int) -> None:
    """The KV of a row that was just preempted stays on the device; its host blocks are taken."""
    host, stored = b.host, b.stored
    host.parked[0] += 1
    stored.parked[host.parked_rows[0]] = row
    host.parked_rows[0] += 1
    stored.place[row] = host.parked_rows[0]
    host.parked_blocks[0] += stored.blocks[row]


@kernel
def unpark(b: Any, row: int) -> None:
    """A parked row's KV is no longer there for it to come back to, or it has come back. Others are left alone."""
    host, stored = b.host, b.stored
    if stored.place[row] == 0:
        return
    host.parked_rows[0] -= 1
    last = stored.parked[host.parked_rows[0]]
    stored.parked[stored.place[row] - 1] = last
    stored.place[last] = stored.place[row]
    stored.place[row] = 0
    host.parked_blocks[0] -= stored.blocks[row]


@kernel
def copy_out(e: Any, row: int) -> None:
    """Ask for the copy of a preempted row's KV to host memory, where it has blocks."""
    e.blocks.host.swapped[0] += 1
    ask(e.blocks.lanes, OUT, e.blocks.stored.blocks[row], e.table.computed_tokens[row])


@kernel
def _worst(e: Any) -> int:
    """The parked row that is ranked last."""
    parked, worst = e.blocks.stored.parked, e.blocks.stored.parked[0]
    for i in range(1, e.blocks.host.parked_rows[0]):
        if before(e, worst, parked[i]):
            worst = parked[i]
    return worst


@routine
def _copy_worst_out(e: Any, now: float) -> None:
    host = e.blocks.host
    if is_list(e) or has_lanes(e):  # a heap by rank holds keys that are fresh
        for i in range(host.parked_rows[0]):
            refresh(e, e.blocks.stored.parked[i], now)
    while host.parked_rows[0] > 0 and host.parked_blocks[0] > e.core.free_blocks[0]:
        row = _worst(e)
        copy_out(e, row)
        unpark(e.blocks, row)


def _nobody(e: Any, now: float) -> None:
    return


@where("host", otherwise=_nobody, of="blocks")
def reclaim(e: Any, now: float) -> None:
    """The step that was planned at ``now`` has all its blocks: parked rows whose own it took are copied out.

    O(1) where nobody has to go; else a pass over the parked a row that goes.
    """
    if e.blocks.host.parked_rows[0] > 0 and e.blocks.host.parked_blocks[0] > e.core.free_blocks[0]:
        _copy_worst_out(e, now)
