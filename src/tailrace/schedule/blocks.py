"""Named KV blocks: their memory, the table that finds a name, and the free queue.

A full block is named by its content and all before it. Block 0 holds no KV: it is the free
queue's two ends. What is done with blocks is in `prefix`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _jit
from .._jit import kernel
from ..table import I8, Columns

__all__ = ["Blocks", "Counted", "Hold", "Node", "Owner", "Pool", "counted", "find", "give_name", "link", "name_of"]
__all__ += ["take_name", "unlink"]

LOW: Final = 0xFFFFFFFF
"""The low half of a name."""
FACTORS: Final = (0x2545F491, 0x3C6EF363, 0x5851F42D)
"""Odd and below 2**30, 2**30 and 2**31: products of 32-bit numbers with them stay below 2**63."""


class Node(Columns):
    """One KV block. In ``next`` and ``before``, block 0 stands for both ends of the free queue."""

    users: I8
    """Rows that hold it; 0 = it lies in the free queue."""
    next: I8
    before: I8
    """Its neighbours in the free queue; the head goes first."""
    name: I8
    younger: I8
    older: I8
    """The ring of blocks with its name, in the order they got it; 0 = it has no name.
    The table knows the oldest, whose ``older`` is the youngest."""


class Hold(Columns):
    """What the row in a seat holds."""

    count: I8
    """Blocks."""
    sealed: I8
    """How many of them, the first ones, have had their names given."""
    spare: I8
    """A stack of empty seats."""


class Pool(Columns):
    """Scalars: one row."""

    block_tokens: I8
    free: I8
    """Blocks in the free queue."""
    spares: I8
    """Empty seats."""


class Owner(Columns):
    """One row of the table."""

    seat: I8
    """1 + its seat; 0 = it holds no blocks."""


class Blocks(NamedTuple):
    """Named blocks: the engine's ``blocks`` with a prefix cache. Build it with `prefix.build_blocks`."""

    nodes: Any
    holds: Any
    pool: Any
    owners: Any
    table: NDArray[np.int64]
    """Open addressing by name: the oldest block of that name; 0 = empty."""
    held: NDArray[np.int32]
    """(seats, longest) block numbers of a row, from its first token on."""
    ids: NDArray[np.int64]
    offsets: NDArray[np.int64]
    """The names ``ids[offsets[row]:offsets[row + 1]]`` of a row's first blocks, 0 or more each."""
    memory: NDArray[np.int64]
    """All of ``nodes``, ``holds``, ``pool``, ``owners`` and ``table``, which are views of it."""
    spare: NDArray[np.int64]
    spare_held: NDArray[np.int32]
    """The snapshot of ``memory`` and of ``held``."""


class Counted(NamedTuple):
    """The engine's ``blocks`` without a prefix cache: they are counted elsewhere."""

    nothing: NDArray[np.int64]


_jit.register(Counted, {})


def counted() -> Counted:
    """What stands for the blocks of an engine that only counts them."""
    return Counted(np.zeros(1, dtype=np.int64))


@kernel
def name_of(b: Blocks, row: int, index: int) -> int:
    """The name of the row's block ``index``: given, or its own for ever, also after a preemption."""
    first = b.offsets[row]
    if index < b.offsets[row + 1] - first:
        return b.ids[first + index]
    return -1 - ((row << 32) + index)


@kernel
def _home(b: Blocks, name: int) -> int:
    """The slot where the search for a name begins. Nothing overflows, here or in Python."""
    mixed = (name & LOW) * FACTORS[0] + ((name >> 32) & LOW) * FACTORS[1]
    mixed = (mixed ^ (mixed >> 32)) & LOW
    return ((mixed * FACTORS[2]) >> 16) & (b.table.shape[0] - 1)


@kernel
def find(b: Blocks, name: int) -> int:
    """The slot that holds the name, or the empty one where it would go."""
    slot = _home(b, name)
    while b.table[slot] != 0 and b.nodes.name[b.table[slot]] != name:
        slot = (slot + 1) & (b.table.shape[0] - 1)
    return slot


@kernel
def _clear(b: Blocks, slot: int) -> None:
    """Empty a slot, and move up those behind it that would not be found past a gap."""
    last = b.table.shape[0] - 1
    gap, at = slot, (slot + 1) & last
    while b.table[at] != 0:
        home = _home(b, b.nodes.name[b.table[at]])
        if ((at - home) & last) >= ((at - gap) & last):
            b.table[gap] = b.table[at]
            gap = at
        at = (at + 1) & last
    b.table[gap] = 0


@kernel
def give_name(b: Blocks, block: int, name: int) -> None:
    """Make the block found under ``name``, after those that are already."""
    nodes, slot = b.nodes, find(b, name)
    oldest = b.table[slot]
    nodes.name[block] = name
    if oldest == 0:
        b.table[slot] = oldest = nodes.older[block] = block
    youngest = nodes.older[oldest]
    nodes.younger[youngest] = block
    nodes.older[block], nodes.younger[block] = youngest, oldest
    nodes.older[oldest] = block


@kernel
def take_name(b: Blocks, block: int) -> None:
    """The block's content is lost: it is no longer found, if it was."""
    nodes = b.nodes
    younger, older = nodes.younger[block], nodes.older[block]
    if younger == 0:
        return
    slot = find(b, nodes.name[block])
    if younger == block:
        _clear(b, slot)
    elif b.table[slot] == block:
        b.table[slot] = younger
    nodes.younger[older], nodes.older[younger] = younger, older
    nodes.younger[block] = nodes.older[block] = 0


@kernel
def link(b: Blocks, block: int, before: int) -> None:
    """Put a block into the free queue behind ``before`` (0: at the head)."""
    nodes = b.nodes
    after = nodes.next[before]
    nodes.before[block], nodes.next[block] = before, after
    nodes.next[before] = nodes.before[after] = block
    b.pool.free[0] += 1


@kernel
def unlink(b: Blocks, block: int) -> None:
    """Take a block out of the free queue."""
    before, after = b.nodes.before[block], b.nodes.next[block]
    b.nodes.next[before], b.nodes.before[after] = after, before
    b.pool.free[0] -= 1
