"""Files of measured steps, a row a step, as samples for a fit (docs/latency.md has the format)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from ..latency import Sample, StepShape, step_shape
from ..table import I8
from ..workloads.readers import tables
from ..workloads.readers.rows import Rows
from ..workloads.readers.source import Source

__all__ = ["LISTS", "OPTIONAL", "SUMS", "read"]

LISTS: Final = ("seconds", "chunk_tokens", "chunk_kv_tokens", "decode_kv_tokens")
"""A number a chunk or decode: q and kv of each prefill chunk, kv of each decode."""
OPTIONAL: Final = "decode_output_tokens"
"""m of each decode; 1 each where it is left out."""
SUMS: Final = (
    "seconds",
    *("prefill_seqs", "prefill_tokens", "prefill_sq", "prefill_cross", "prefill_kv"),
    *("decode_seqs", "decode_tokens", "decode_kv"),
)
"""The fields of a `StepShape` that the others do not follow from."""
MOST: Final = 2**53


def read(path: str | Path) -> list[Sample]:
    """The steps of a CSV, Parquet, JSON Lines or JSON file, by its columns `LISTS` or `SUMS`.

    Raises UserError naming file, row and field for whatever is missing or cannot be.
    """
    source = Source(path)
    names = tables.schema(source) if source.is_parquet else tables.header(source)[1]
    by_lists = tables.resembles(names, LISTS) / len(LISTS) >= tables.resembles(names, SUMS) / len(SUMS)
    if by_lists:
        kinds = dict.fromkeys((*LISTS[1:], OPTIONAL), "numbers")
        rows = tables.read(source, LISTS, (OPTIONAL,), kinds)
    else:
        rows = tables.read(source, SUMS)
    seconds = rows.real("seconds", "a number of seconds above 0", lambda x: (x > 0) & np.isfinite(x))
    shapes = _of_lists(rows) if by_lists else _of_sums(rows)
    return list(zip(shapes, seconds.tolist(), strict=True))


def _of_lists(rows: Rows) -> list[StepShape]:
    chunks = _pairs(rows, "chunk_tokens", "chunk_kv_tokens")
    if OPTIONAL in rows:
        decodes = _pairs(rows, OPTIONAL, "decode_kv_tokens")
    else:
        decodes = [[(1, kv) for kv in each] for each in _lists(rows, "decode_kv_tokens")]
    for index, (prefill, decode) in enumerate(zip(chunks, decodes, strict=True)):
        if not prefill and not decode:
            raise rows.mistake(index, "chunk_tokens", "the step holds no chunk and no decode")
    return [step_shape(prefill, decode) for prefill, decode in zip(chunks, decodes, strict=True)]


def _pairs(rows: Rows, tokens: str, kv: str) -> list[list[tuple[int, int]]]:
    """What each request of a row computes, at least one token, and on how many."""
    made = []
    for index, (many, cached) in enumerate(zip(_lists(rows, tokens), _lists(rows, kv), strict=True)):
        if len(many) != len(cached):
            raise rows.mistake(index, kv, f"holds {len(cached)} numbers and {tokens} {len(many)}")
        if 0 in many:
            raise rows.mistake(index, tokens, "0 tokens are no part of a step")
        made.append(list(zip(many, cached, strict=True)))
    return made


def _lists(rows: Rows, field: str) -> list[list[int]]:
    values, offsets = rows.numbers(field)
    return [part.tolist() for part in np.split(values, offsets[1:-1])]


def _of_sums(rows: Rows) -> list[StepShape]:
    columns: list[I8] = [rows.whole(field, 0, MOST) for field in SUMS[1:]]
    shapes = []
    for index, (n, q, square, cross, kv, m, out, context) in enumerate(np.stack(columns, axis=1).tolist()):
        shape = StepShape(q + out, n + m, n, q, square, cross, kv, m, out, context)
        wrong = _wrong(shape)
        if wrong:
            raise rows.mistake(index, *wrong)
        shapes.append(shape)
    return shapes


def _wrong(shape: StepShape) -> tuple[str, str] | None:
    """The first field that contradicts the others, and how."""
    n, q, m = shape.prefill_seqs, shape.prefill_tokens, shape.decode_seqs
    if shape.tokens == 0:
        return "prefill_tokens", "the step holds no chunk and no decode"
    if n > q or (q > 0 and n == 0):
        return "prefill_seqs", f"{n} chunks cannot hold {q} tokens"
    if not q * q <= shape.prefill_sq * max(1, n) <= q * q * max(1, n):
        return "prefill_sq", f"{shape.prefill_sq} cannot be the sum of squares of {n} chunks of {q} tokens"
    if shape.prefill_cross > q * shape.prefill_kv or (n == 0 and shape.prefill_kv):
        return "prefill_kv", f"{n} chunks of {q} tokens on {shape.prefill_kv} cannot cross {shape.prefill_cross} times"
    if m > shape.decode_tokens or (shape.decode_tokens > 0 and m == 0):
        return "decode_seqs", f"{m} decodes cannot make {shape.decode_tokens} tokens"
    if m == 0 and shape.decode_kv:
        return "decode_kv", f"{shape.decode_kv} of no decode"
    return None
