"""Which prompts begin alike: names of their blocks, as a trace gives them and as an engine needs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from ..table import I8

__all__ = ["Prefix", "checked", "engine_ids", "twice"]


@dataclass(frozen=True, eq=False)
class Prefix:
    """``ids[offsets[i]:offsets[i + 1]]`` name request i's full prompt blocks of ``block_tokens`` tokens.

    Each id, a number of 0 or more, stands for the block and everything before it: prompts
    share what is named alike, and nothing else. Blocks left out at the end are like no
    other request's. `Workload.of` checks it.
    """

    block_tokens: int
    ids: I8
    offsets: I8
    """One more than requests; the first is 0."""

    def take(self, rows: I8) -> Prefix:
        """The names of ``rows``, in that order."""
        counts = np.diff(self.offsets)[rows]
        row, index, offsets = _ragged(counts)
        ids = self.ids[self.offsets[rows][row] + index]
        for values in (ids, offsets):
            values.flags.writeable = False
        return Prefix(self.block_tokens, ids, offsets)


def _ragged(counts: I8) -> tuple[I8, I8, I8]:
    """``(row, index in it, offsets)`` of the entries of rows with so many entries each."""
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    row = np.repeat(np.arange(len(counts)), counts)
    return row, np.arange(offsets[-1]) - offsets[row], offsets


def checked(prefix: Prefix, name: str, prompt_tokens: I8) -> Prefix:
    """``prefix`` with int64 arrays, fit for requests of ``prompt_tokens``.

    Raises UserError in the name of workload ``name`` for a block below 1 token, ids that
    are not whole, below 0 or twice in a request, offsets that do not match, or more blocks
    than a prompt fills.
    """

    def refuse(bad: Any, what: str) -> None:
        if bad:
            raise UserError(f"workload {name!r}: prefix: {what}")

    size, ids, offsets = prefix.block_tokens, np.asarray(prefix.ids), np.asarray(prefix.offsets)
    refuse(size != int(size) or size < 1, f"block_tokens={size} must be a whole number of 1 or more")
    ids = ids.astype(np.int64) if ids.size == 0 else ids
    for field, values in (("ids", ids), ("offsets", offsets)):
        refuse(values.dtype.kind not in "iu" or values.ndim != 1, f"{field} must be a list of whole numbers")
    ids, offsets, rows = ids.astype(np.int64), offsets.astype(np.int64), len(prompt_tokens)
    refuse(len(offsets) != rows + 1, f"{len(offsets)} offsets for {rows} requests; give {rows + 1}")
    fits = offsets[0] == 0 and offsets[-1] == len(ids) and (np.diff(offsets) >= 0).all()
    refuse(not fits, f"offsets must rise from 0 to the number of ids, {len(ids)}")
    refuse((ids < 0).any(), f"id {ids.min(initial=0)} is below 0 or above 2**63 - 1")
    counts = np.diff(offsets)
    over = counts > prompt_tokens // size
    i = int(np.argmax(over))
    refuse(over.any(), f"request {i} names {counts[i]} blocks, but {prompt_tokens[i]} tokens fill fewer of {size}")
    row = np.repeat(np.arange(rows), counts)
    entry = twice(ids, row)
    refuse(entry is not None, f"request {row[entry or 0] if len(row) else 0} names two blocks alike")
    return Prefix(int(size), ids, offsets)


def twice(ids: I8, row: I8) -> int | None:
    """An entry whose id, 0 or more, its ``row`` has had before, or None."""
    kinds = int(ids.max(initial=0)) + 1
    if kinds * (int(row.max(initial=0)) + 1) < 2**63:  # sorting numbers is ten times as fast as sorting pairs
        pairs = np.sort(row * kinds + ids)
        if not (pairs[1:] == pairs[:-1]).any():
            return None
    order = np.lexsort((ids, row))
    alike = (np.diff(ids[order]) == 0) & (np.diff(row[order]) == 0)
    return int(order[1:][int(np.argmax(alike))]) if alike.any() else None


def engine_ids(prefix: Prefix, prompt_tokens: I8, engine_block_tokens: int) -> tuple[I8, I8]:
    """``(ids, offsets)`` of the prompts' full blocks of ``engine_block_tokens`` tokens.

    A larger block is named by the last of the trace's blocks inside it; a smaller one by
    the trace's block it lies in and its place there, mixed to 63 bits. Raises UserError
    unless one size is a multiple of the other.
    """
    ours, theirs = engine_block_tokens, prefix.block_tokens
    if ours % theirs and theirs % ours:
        raise UserError(
            f"the engine's blocks of {ours} tokens and the workload's prefix blocks of {theirs}: one size must be "
            "a multiple of the other; choose another block_tokens"
        )
    named = np.minimum(np.diff(prefix.offsets) * theirs, prompt_tokens)
    row, index, offsets = _ragged(named // ours)
    ids = prefix.ids[prefix.offsets[row] + ((index + 1) * ours - 1) // theirs]
    return (_mixed(ids, index % (theirs // ours)) if ours < theirs else ids), offsets


def _mixed(ids: I8, places: I8) -> I8:
    mixed: I8 = (_scatter(_scatter(ids.astype(np.uint64)) + places.astype(np.uint64)) >> np.uint64(1)).astype(np.int64)
    return mixed


def _scatter(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One step of SplitMix64 (Steele, Lea, Flood 2014): a permutation of the 64-bit numbers."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
