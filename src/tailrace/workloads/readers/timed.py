"""Readers of rows of timestamp, input_length and output_length, with block ids or without.

``mooncake``: Mooncake's traces (https://github.com/kvcache-ai/Mooncake, FAST25-release/traces,
Apache-2.0; Qin et al., Mooncake, FAST 2025). Milliseconds, an id for each block of 512 tokens,
which names the block and all before it; the last block may be partial.

``bailian``: Alibaba's usage traces of Qwen (https://github.com/alibaba-edu/qwen-bailian-usagetraces-anon,
Apache-2.0; Wang et al., KVCache Cache in the Wild, ATC 2025). Seconds, an id for each block of
16 tokens, chats linked by parent_chat_id.

``timed``: what vLLM's ``bench serve --dataset-name timed_trace`` and GuideLLM replay. Both
document seconds, and vLLM 16 tokens a block, as defaults.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np

from ...errors import UserError
from ...params import P
from ...table import F8, I8
from ..prefix import Prefix
from ..workload import Workload
from . import tables
from .about import describe, from_earliest, refuse_gaps, reordered
from .blocks import prefix_of
from .rows import Rows
from .source import Source

__all__ = ["BAILIAN", "MOONCAKE", "TIMED", "BailianParams", "MooncakeParams", "TimedParams", "block_size", "read"]

TIMED: Final = ("timestamp", "input_length", "output_length")
MOONCAKE: Final = (*TIMED, "hash_ids")
BAILIAN: Final = (*MOONCAKE, "chat_id", "parent_chat_id")
KINDS: Final = {"hash_ids": "numbers", "chat_id": "name", "parent_chat_id": "name", "type": "name"}
SIZES: Final = (512, 16)
PER_SECOND: Final = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
SLOW_GAP_S: Final = 10.0
"""Whole timestamps further apart on average may be milliseconds as well as seconds."""
LARGEST_S: Final = 1e11
"""Beyond the year 5000, as seconds since 1970."""

Blocks = Annotated[int, P("tokens of a block named by one of hash_ids", "tokens", low=1, high=2**20)]
FoundBlocks = Annotated[int, P("the same; 0 finds 512 or 16", "tokens", low=0, high=2**20)]
UseIds = Annotated[bool, P("read hash_ids as shared beginnings of prompts")]


class MooncakeParams(NamedTuple):
    """A Mooncake trace."""

    unit: Annotated[int, P("unit of the timestamps", choices=("s", "ms", "us", "ns"))] = 1
    block_tokens: Blocks = 512
    prefix: UseIds = True


class BailianParams(NamedTuple):
    """A Qwen-Bailian trace."""

    unit: Annotated[int, P("unit of the timestamps", choices=("s", "ms", "us", "ns"))] = 0
    block_tokens: Blocks = 16
    prefix: UseIds = True


class TimedParams(NamedTuple):
    """A timed trace; the unit is seconds unless the timestamps say that this cannot be taken for granted."""

    unit: Annotated[int, P("unit of the timestamps", choices=("s", "ms", "us", "ns", "auto"))] = 4
    block_tokens: FoundBlocks = 0
    prefix: UseIds = True


AS_DOCUMENTED: Final = TimedParams()
OF_PARAMS: Final[dict[type[Any], tuple[str, tuple[str, ...], tuple[str, ...]]]] = {
    MooncakeParams: ("mooncake", MOONCAKE, ()),
    BailianParams: ("bailian", BAILIAN, ("type",)),
    TimedParams: ("timed", TIMED, ("hash_ids",)),
}
"""Name, columns needed, columns taken where they are there."""


def read(path: str | Path | Source, params: MooncakeParams | BailianParams | TimedParams = AS_DOCUMENTED) -> Workload:
    """The trace in ``path``, JSON Lines (or a JSON array, CSV or Parquet); arrivals count from the earliest.

    Rows without output are dropped and counted. A request's class is Bailian's ``type``;
    its session the root of its chat. Raises UserError by file, row and field, and when the
    unit of the timestamps is not clear.
    """
    source = Source.of(path)
    name, required, optional = OF_PARAMS[type(params)]
    rows = tables.read(source, [x for x in required if params.prefix or x != "hash_ids"], optional, KINDS)
    output = rows.whole("output_length", low=0)
    kept = np.flatnonzero(output > 0)
    if not len(kept):
        raise rows.unanswered("output_length")
    prompt = rows.whole("input_length", low=1, among=output > 0)[kept]
    stamp = rows.real("timestamp", "finite and 0 or more", lambda values: np.isfinite(values) & (values >= 0))[kept]
    unit, estimates = _unit(source.path, stamp, params)
    arrival, late = from_earliest(stamp, unit, PER_SECOND[unit])
    refuse_gaps(rows, "timestamp", kept, arrival)
    prefix, blocks = _prefix(rows, kept, prompt, params, name)
    columns, chats = _chats(rows, kept) if name == "bailian" else ({}, [])
    about = describe(
        source.path,
        name,
        len(kept),
        params=params,
        units={"timestamp": unit, "input_length": "tokens", "output_length": "tokens"},
        dropped={"no output tokens": len(rows) - len(kept)},
        reordered_rows=reordered(stamp),
        ignored=rows.ignored,
        notes=[*late, *blocks, *chats],
        estimates=estimates,
    )
    return Workload.of(arrival, prompt, output[kept], name=source.name, description=about, prefix=prefix, **columns)


def block_size(pairs: list[tuple[int, int]]) -> int:
    """Which of `SIZES` fits every pair of tokens and ids, 0 if none."""
    fits = (size for size in SIZES if all(t // size <= n <= -(-t // size) for t, n in pairs))
    return next(fits, 0)


def _unit(path: Path, stamp: F8, params: Any) -> tuple[str, list[str]]:
    """The unit and, where the file could not tell, what was taken for granted."""
    names = (*PER_SECOND, "auto")
    if names[params.unit] != "auto":
        return names[params.unit], []
    gap = float(stamp.max() - stamp.min()) / max(len(stamp) - 1, 1)
    whole = bool((stamp == np.floor(stamp)).all())
    if stamp.max() >= LARGEST_S or (whole and gap > SLOW_GAP_S):
        seen = f"{len(stamp)} requests from {stamp.min():.16g} to {stamp.max():.16g}"
        options = " or ".join(f"--format timed:unit={unit}" for unit in PER_SECOND)
        raise UserError(f"{path}: field timestamp: the unit is not clear from {seen}; say {options}")
    rate = f"{1 / gap:.4g} requests/s" if gap else "all at once"
    return "s", [f"timestamps were taken as seconds ({rate}), as vLLM and GuideLLM do; unit=ms would read milliseconds"]


def _prefix(rows: Rows, kept: I8, prompt: I8, params: Any, name: str) -> tuple[Prefix | None, list[str]]:
    if "hash_ids" not in rows or not params.prefix:
        return None, ["hash_ids were not read"] if "hash_ids" in (*rows.ignored, *rows.table.column_names) else []
    size = params.block_tokens
    if not size:
        _, starts = rows.numbers("hash_ids")
        size = block_size(list(zip(prompt.tolist(), np.diff(starts)[kept].tolist(), strict=True))) or SIZES[-1]
    skip = f"do without: --format {name}:prefix=false"
    prefix, partial = prefix_of(rows, "hash_ids", kept, prompt, size, name != "mooncake", skip)
    told = f"hash_ids name blocks of {size} tokens; last ones that their prompts do not fill, left out: {partial:,}"
    return prefix, [told]


def _chats(rows: Rows, kept: I8) -> tuple[dict[str, Any], list[str]]:
    """Sessions, each a chat from its root on, and classes by type."""
    chat, names = rows.names("chat_id")
    parent, parents = rows.names("parent_chat_id", missing=True)
    index = {name: number for number, name in enumerate(names)}
    # A parent that the trace does not hold is the root of its children.
    outside = {name: len(names) + number for number, name in enumerate(parents) if name not in index and name != "-1"}
    node = np.array([*(index.get(name, outside.get(name, -1)) for name in parents), -1], dtype=np.int64)
    first = np.unique(chat, return_index=True)[1]
    root, loop = _roots(node[parent[first]], len(names) + len(parents))
    if loop is not None:
        raise rows.mistake(int(first[loop]), "parent_chat_id", "its parents lead back to itself")
    columns: dict[str, Any] = {"session": root[chat][kept]}
    if "type" in rows:
        columns["class_id"], columns["class_names"] = rows.names("type", among=kept)
    note = f"chats that begin before the trace, so that their first parents are not in it: {len(outside):,}"
    return columns, [note] if outside else []


def _roots(above: I8, nodes: int) -> tuple[I8, int | None]:
    """The root of each of ``nodes``, the first of which lie under ``above`` (-1 = nothing), and one on a loop."""
    start = np.arange(nodes, dtype=np.int64)
    start[: len(above)] = np.where(above < 0, start[: len(above)], above)
    root = start.copy()
    for _ in range(64):  # each turn halves the way to the root
        root = root[root]
    loops = start[root] != root
    return root, int(np.argmax(loops)) if loops.any() else None
