"""From the block ids of a trace to a `Prefix`, which names full blocks and each with all before it."""

from __future__ import annotations

import numpy as np

from ...table import I8
from ..prefix import Prefix, twice
from .rows import Rows

__all__ = ["chained", "prefix_of"]


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
    ids, row = flat[_entries(first, full)], np.repeat(np.arange(len(full)), full)
    if chain:
        ids = chained(ids, offsets)
    elif (entry := twice(ids, row)) is not None:
        wrong = f"id {ids[entry]} comes twice in a request"
        raise rows.mistake(int(kept[row[entry]]), field, wrong, f"correct it, or {skip}")
    return Prefix(block_tokens, ids, offsets), int((counts - full).sum())


def chained(ids: I8, offsets: I8) -> I8:
    """``ids`` renamed so that two are alike only if all before them in their rows are alike too.

    Names are numbered from 0. Time: a sort of each level, of the rows that still share what they had so far.
    """
    if len(ids) * (int(ids.max(initial=0)) + 1) >= 2**63:
        ids = np.unique(ids, return_inverse=True)[1].astype(np.int64)
    kinds, counts = int(ids.max(initial=0)) + 1, np.diff(offsets)
    out, before = np.empty_like(ids), np.zeros(len(counts), dtype=np.int64)
    active, names, level = np.flatnonzero(counts > 0), 0, 0
    while len(active):
        place = offsets[active] + level
        found, which, shared = np.unique(before[active] * kinds + ids[place], return_inverse=True, return_counts=True)
        out[place] = before[active] = names + which
        names += len(found)
        alone = shared[which] == 1
        rest = _entries(offsets[active[alone]] + level + 1, counts[active[alone]] - level - 1)
        out[rest] = names + np.arange(len(rest))  # nobody else begins like this any more
        names, level = names + len(rest), level + 1
        active = active[~alone & (counts[active] > level)]
    return out


def _entries(first: I8, counts: I8) -> I8:
    """The places ``first[i]`` to ``first[i] + counts[i]``, one row after the other."""
    ends = np.cumsum(counts)
    return np.repeat(first - (ends - counts), counts) + np.arange(int(counts.sum()))
