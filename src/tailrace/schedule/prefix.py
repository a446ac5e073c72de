"""A prefix cache: KV blocks that have names and contents, as vLLM keeps them.

A full block is named by its content and all before it. A row that starts takes over the
leading blocks whose names are known; a block that nobody uses keeps its content until it
is handed out again, so the free queue is also the order of eviction. Block 0 holds no KV:
it is the free queue's two ends.

The kernels check nothing: a caller asks `free_count`, `hits` and `idle_among` first, and
starts no row that holds blocks already.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _jit
from .._jit import columns, kernel, routine
from ..table import I8, Columns, dtype_of
from . import kv  # noqa: F401  what is registered below must be defined

__all__ = ["Blocks", "Counted", "build_blocks", "counted", "free_count", "grow", "held_count", "hits", "idle_among"]
__all__ += ["releasable", "release", "restore", "seal", "snapshot", "start"]

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
    """Named blocks: the engine's ``blocks`` with a prefix cache. Build it with `build_blocks`."""

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


def counted() -> Counted:
    """What stands for the blocks of an engine that only counts them."""
    return Counted(np.zeros(1, dtype=np.int64))


def build_blocks(
    rows: int,
    seats: int,
    longest: int,
    usable_blocks: int,
    block_tokens: int,
    ids: NDArray[np.int64],
    offsets: NDArray[np.int64],
) -> Blocks:
    """An empty cache of ``usable_blocks`` blocks of ``block_tokens`` tokens, all free in order of number.

    ``seats``: most rows that hold blocks at once; ``longest``: most blocks of one row.
    ``ids``, ``offsets``: see `Blocks`. Raises ValueError for an id below 0 (rows name the
    blocks without one by numbers below 0) or offsets that do not fit the rows.
    """
    if len(offsets) != rows + 1 or offsets[-1] > len(ids) or (len(ids) and ids.min() < 0):
        raise ValueError(f"block ids must be 0 or more, and their offsets {rows + 1} for {rows} rows")
    memory, (nodes, holds, pool, owners), table = _memory(usable_blocks, seats, rows)
    ring = np.arange(usable_blocks + 1)
    nodes["next"], nodes["before"] = np.roll(ring, -1), np.roll(ring, 1)
    holds["spare"] = np.arange(seats)[::-1]
    pool["block_tokens"], pool["free"], pool["spares"] = block_tokens, usable_blocks, seats
    views = (columns(part) for part in (nodes, holds, pool, owners))
    held = np.zeros((seats, longest), dtype=np.int32)
    names = [np.ascontiguousarray(values, dtype=np.int64) for values in (ids, offsets)]
    return Blocks._make([*views, table, held, *names, memory, np.zeros_like(memory), np.zeros_like(held)])


def _memory(usable_blocks: int, seats: int, rows: int) -> tuple[Any, list[Any], Any]:
    """``(memory, its records, its table)``: one array, so that a snapshot is one copy."""
    layouts = {Node: usable_blocks + 1, Hold: seats, Pool: 1, Owner: rows}
    widths = [dtype_of(layout).itemsize // 8 * count for layout, count in layouts.items()]
    memory = np.zeros(sum(widths) + (1 << (4 * usable_blocks - 1).bit_length()), dtype=np.int64)
    *parts, table = np.split(memory, np.cumsum(widths))
    return memory, [part.view(dtype_of(layout)) for part, layout in zip(parts, layouts, strict=True)], table


@kernel
def _name(b: Blocks, row: int, index: int) -> int:
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
def _find(b: Blocks, name: int) -> int:
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
def _give_name(b: Blocks, block: int, name: int) -> None:
    """Make the block found under ``name``, after those that are already."""
    nodes, slot = b.nodes, _find(b, name)
    oldest = b.table[slot]
    nodes.name[block] = name
    if oldest == 0:
        b.table[slot] = oldest = nodes.older[block] = block
    youngest = nodes.older[oldest]
    nodes.younger[youngest] = block
    nodes.older[block], nodes.younger[block] = youngest, oldest
    nodes.older[oldest] = block


@kernel
def _take_name(b: Blocks, block: int) -> None:
    """The block's content is lost: it is no longer found, if it was."""
    nodes = b.nodes
    younger, older = nodes.younger[block], nodes.older[block]
    if younger == 0:
        return
    slot = _find(b, nodes.name[block])
    if younger == block:
        _clear(b, slot)
    elif b.table[slot] == block:
        b.table[slot] = younger
    nodes.younger[older], nodes.older[younger] = younger, older
    nodes.younger[block] = nodes.older[block] = 0


@kernel
def _link(b: Blocks, block: int, before: int) -> None:
    """Put a block into the free queue behind ``before`` (0: at the head)."""
    nodes = b.nodes
    after = nodes.next[before]
    nodes.before[block], nodes.next[block] = before, after
    nodes.next[before] = nodes.before[after] = block
    b.pool.free[0] += 1


@kernel
def _unlink(b: Blocks, block: int) -> None:
    """Take a block out of the free queue."""
    before, after = b.nodes.before[block], b.nodes.next[block]
    b.nodes.next[before], b.nodes.before[after] = after, before
    b.pool.free[0] -= 1


@kernel
def free_count(b: Blocks) -> int:
    """Blocks that nobody holds, with or without content."""
    return b.pool.free[0]


@kernel
def held_count(b: Blocks, row: int) -> int:
    """Blocks that the row holds."""
    seat = b.owners.seat[row] - 1
    return b.holds.count[seat] if seat >= 0 else 0


@kernel
def hits(b: Blocks, row: int, known_tokens: int) -> int:
    """How many leading blocks of the row's ``known_tokens`` tokens the cache holds now.

    Never all tokens: the last one must be computed to sample from it.
    """
    most, count = (known_tokens - 1) // b.pool.block_tokens[0], 0
    while count < most and b.table[_find(b, _name(b, row, count))] != 0:
        count += 1
    return count


@kernel
def idle_among(b: Blocks, row: int, count: int) -> int:
    """How many of the row's first ``count`` blocks, all in the cache, lie in the free queue.

    To start the row takes these out of it, on top of new blocks.
    """
    idle = 0
    for i in range(count):
        if b.nodes.users[b.table[_find(b, _name(b, row, i))]] == 0:
            idle += 1
    return idle


@kernel
def start(b: Blocks, row: int, hit: int, fresh: int) -> None:
    """Give the row its first ``hit`` blocks out of the cache, then ``fresh`` new ones."""
    b.pool.spares[0] -= 1
    seat = b.holds.spare[b.pool.spares[0]]
    b.owners.seat[row] = seat + 1
    for i in range(hit):
        block = b.table[_find(b, _name(b, row, i))]
        if b.nodes.users[block] == 0:
            _unlink(b, block)
        b.nodes.users[block] += 1
        b.held[seat, i] = block
    b.holds.count[seat] = b.holds.sealed[seat] = hit
    grow(b, row, fresh)


@kernel
def grow(b: Blocks, row: int, fresh: int) -> None:
    """Give a row that has started ``fresh`` new blocks from the head of the free queue."""
    seat = b.owners.seat[row] - 1
    count = b.holds.count[seat]
    for i in range(count, count + fresh):
        block = b.nodes.next[0]
        _unlink(b, block)
        _take_name(b, block)
        b.nodes.users[block] = 1
        b.held[seat, i] = block
    b.holds.count[seat] = count + fresh


@kernel
def seal(b: Blocks, row: int, tokens: int) -> None:
    """From now on the row's full blocks among its first ``tokens`` tokens, all held, are found.

    A block whose name another has keeps its own copy, found once the older ones are gone.
    """
    seat, full = b.owners.seat[row] - 1, tokens // b.pool.block_tokens[0]
    for i in range(b.holds.sealed[seat], full):
        _give_name(b, b.held[seat, i], _name(b, row, i))
        b.holds.sealed[seat] = i + 1


@kernel
def release(b: Blocks, row: int) -> None:
    """Take all blocks from the row, if it holds any.

    Those nobody else holds go to the free queue: without content to its head, with content
    to its tail; of each kind the row's last block leaves the queue first.
    """
    seat = b.owners.seat[row] - 1
    if seat < 0:
        return
    head = 0
    for i in range(b.holds.count[seat] - 1, -1, -1):
        block = b.held[seat, i]
        b.nodes.users[block] -= 1
        if b.nodes.users[block] == 0 and b.nodes.younger[block] == 0:
            _link(b, block, head)
            head = block
        elif b.nodes.users[block] == 0:
            _link(b, block, b.nodes.before[0])
    b.holds.count[seat] = b.holds.sealed[seat] = b.owners.seat[row] = 0
    b.holds.spare[b.pool.spares[0]] = seat
    b.pool.spares[0] += 1


@kernel
def releasable(b: Blocks, row: int) -> int:
    """How many blocks `release` would add to the free queue."""
    seat, count = b.owners.seat[row] - 1, 0
    if seat < 0:
        return 0
    for i in range(b.holds.count[seat]):
        if b.nodes.users[b.held[seat, i]] == 1:
            count += 1
    return count


@kernel
def _copy(source: Any, target: Any) -> None:
    for i in range(source.shape[0]):
        target[i] = source[i]


@kernel
def _copy_held(b: Blocks, source: Any, target: Any) -> None:
    for seat in range(source.shape[0]):
        for i in range(b.holds.count[seat]):
            target[seat, i] = source[seat, i]


@routine
def snapshot(b: Blocks) -> None:
    """Remember everything as it is now, for `restore`; there is one snapshot."""
    _copy(b.memory, b.spare)
    _copy_held(b, b.held, b.spare_held)


@routine
def restore(b: Blocks) -> None:
    """Make everything as it was at the last `snapshot`."""
    _copy(b.spare, b.memory)
    _copy_held(b, b.spare_held, b.held)


# ── what the engine asks of blocks ───────────────────────────────────────────────────


@kernel
def _cached_tokens(b: Any, row: int, known: int) -> int:
    return hits(b, row, known) * b.pool.block_tokens[0]


@kernel
def _idle_blocks(b: Any, row: int, tokens: int) -> int:
    return idle_among(b, row, tokens // b.pool.block_tokens[0])


@kernel
def _yields(b: Any, row: int, held: int) -> int:
    return releasable(b, row)


@kernel
def _take_blocks(b: Any, row: int, tokens: int, fresh: int) -> None:
    start(b, row, tokens // b.pool.block_tokens[0], fresh)


@kernel
def _blocks_free(b: Any, count: int) -> int:
    return b.pool.free[0]


_jit.register(
    Blocks,
    {
        "cached_tokens": _cached_tokens,
        "idle_blocks": _idle_blocks,
        "yields": _yields,
        "take_blocks": _take_blocks,
        "more_blocks": grow,
        "name_blocks": seal,
        "give_back": release,
        "blocks_free": _blocks_free,
        "remember": snapshot,
        "undo": restore,
    },
    traits=["prefix"],
)
_jit.register(Counted, {})
