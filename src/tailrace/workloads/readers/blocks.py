"""From the block ids of a trace to a `Prefix`, which names full blocks and each with all before it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...table import I8
from ..prefix import Prefix
from .rows import Rows

__all__ = ["chained", "prefix_of", "twice"]


def prefix_of(
    rows: Rows, field: str, kept: I8, prompt_tokens: I8, block_tokens: int, chain: bool, skip: str
) -> tuple[Prefix, int]:
    """``(prefix, partial blocks left out)`` of the rows ``kept``, whose prompts are ``prompt_tokens`` long.

    A prompt of p tokens has p / ``block_tokens`` ids, the last of which may be of a block
    it does not fill; that one is left out. With ``chain`` an id names its block's content
    alone, and is renamed by what stands before it; else it names all that, and cannot
    come twice in a request. Raises UserError by row; ``skip`` says how to do without.
    """
    flat, starts = rows.numbers(field)
    counts, first = np.diff(starts)[kept], starts[:-1][kept]
    full = prompt_tokens // block_tokens
    off = (counts < full) | (counts > -(-prompt_tokens // block_tokens))
    if off.any():
        i = int(np.argmax(off))
        wrong = f"{counts[i]} ids, but {prompt_tokens[i]} tokens are {prompt_tokens[i] / block_tokens:.4g}"
        remedy = f"correct it, give block_tokens, or {skip}"
        raise rows.mistake(int(kept[i]), field, f"{wrong} blocks of {block_tokens}", remedy)
    offsets = np.concatenate(([0], np.cumsum(full))).astype(np.int64)
    row = np.repeat(np.arange(len(full)), full)
    ids = flat[first[row] + np.arange(offsets[-1]) - offsets[row]]
    if chain:
        ids = chained(ids, offsets)
    elif (entry := twice(ids, row)) is not None:
        wrong = f"id {ids[entry]} comes twice in a request"
        raise rows.mistake(int(kept[row[entry]]), field, wrong, f"correct it, or {skip}")
    return Prefix(block_tokens, ids, offsets), int((counts - full).sum())


def chained(ids: I8, offsets: I8) -> I8:
    """``ids`` renamed so that two are alike only if all before them in their rows are alike too.

    Names are numbered level by level from 0. Time: a sort of each level.
    """
    _, dense = np.unique(ids, return_inverse=True)
    kinds = int(dense.max(initial=0)) + 1
    counts = np.diff(offsets)
    order = np.argsort(-counts, kind="stable")
    out, before, names = np.empty_like(ids), np.zeros(len(counts), dtype=np.int64), 1
    for level in range(int(counts.max(initial=0))):
        active = order[: int(np.searchsorted(-counts[order], -level, side="left"))]
        place = offsets[:-1][active] + level
        found, name = np.unique(before[active] * kinds + dense[place], return_inverse=True)
        out[place] = before[active] = names + name
        names += len(found)
    return out - 1


def twice(ids: I8, row: I8) -> Any:
    """An entry whose id its row has had, or None."""
    order = np.lexsort((ids, row))
    alike = (np.diff(ids[order]) == 0) & (np.diff(row[order]) == 0)
    return int(order[1:][int(np.argmax(alike))]) if alike.any() else None
