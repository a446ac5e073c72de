"""A prefix cache, as vLLM keeps it: what a row takes, names and gives back of the KV blocks.

A row that starts takes over the leading blocks whose names are known; a block that nobody
uses keeps its content until it is handed out again, so the free queue is also the order of
eviction.

The kernels check nothing: a caller asks `free_count`, `hits` and `idle_among` first, and
starts no row that holds blocks already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .. import _jit
from .._jit import columns, kernel, routine
from ..table import dtype_of
from . import kv  # noqa: F401  what is registered below must be defined
from .blocks import Blocks, Hold, Node, Owner, Pool, find, give_name, link, name_of, take_name, unlink

__all__ = ["KERNELS", "build_blocks", "free_count", "grow", "held_count", "hits", "idle_among", "releasable", "release"]
__all__ += ["restore", "seal", "snapshot", "start"]


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
    while count < most and b.table[find(b, name_of(b, row, count))] != 0:
        count += 1
    return count


@kernel
def idle_among(b: Blocks, row: int, count: int) -> int:
    """How many of the row's first ``count`` blocks, all in the cache, lie in the free queue.

    To start the row takes these out of it, on top of new blocks.
    """
    idle = 0
    for i in range(count):
        if b.nodes.users[b.table[find(b, name_of(b, row, i))]] == 0:
            idle += 1
    return idle


@kernel
def start(b: Blocks, row: int, hit: int, fresh: int) -> None:
    """Give the row its first ``hit`` blocks out of the cache, then ``fresh`` new ones."""
    b.pool.spares[0] -= 1
    seat = b.holds.spare[b.pool.spares[0]]
    b.owners.seat[row] = seat + 1
    for i in range(hit):
        block = b.table[find(b, name_of(b, row, i))]
        if b.nodes.users[block] == 0:
            unlink(b, block)
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
        unlink(b, block)
        take_name(b, block)
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
        give_name(b, b.held[seat, i], name_of(b, row, i))
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
            link(b, block, head)
            head = block
        elif b.nodes.users[block] == 0:
            link(b, block, b.nodes.before[0])
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


KERNELS: Final[dict[str, Callable[..., Any]]] = {
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
}
"""What `kv`'s generics do on named blocks."""

_jit.register(Blocks, KERNELS, traits=["prefix"])
