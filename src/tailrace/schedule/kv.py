"""KV blocks: how many a piece of work takes, and whether a waiting request may start.

Blocks are counted, not named: without a prefix cache one block is as good as another.
A host tier would enter here, as a second count a row and a second free count.
"""

from __future__ import annotations

from typing import Any

from .._jit import kernel
from ..rules import ADMIT_CHUNK, ADMIT_PROMPT, KV_ENFORCED, PROJECT_CHUNK, PROJECT_GROWTH

__all__ = ["admission", "blocks_for", "fits_at_all", "free_row", "missing"]


@kernel
def blocks_for(e: Any, tokens: int) -> int:
    """Blocks that hold ``tokens`` tokens."""
    size = e.core.block_tokens[0]
    return tokens if size == 1 else (tokens + size - 1) // size


@kernel
def missing(e: Any, row: int, tokens: int) -> int:
    """New blocks that ``tokens`` more tokens of a running row take."""
    after = e.table.computed_tokens[row] + tokens
    held = e.table.kv_blocks[row]
    if after <= held * e.core.block_tokens[0]:
        return 0
    return blocks_for(e, after) - held


@kernel
def admission(e: Any, known: int, tokens: int) -> tuple[int, int]:
    """``(needed, taken)`` blocks to start a waiting row with a chunk of ``tokens``.

    ``needed`` must be free by the rules (more than is free if the projection forbids it);
    ``taken`` are allocated. ``known``: tokens to compute before it decodes. The watermark
    holds only while something runs: an idle engine starts whatever fits.
    """
    plan, core = e.plan, e.core
    reserve = core.watermark_blocks[0] if plan.residents[0] > 0 else 0
    chunk = blocks_for(e, tokens)
    if core.admit[0] == ADMIT_PROMPT:
        whole = blocks_for(e, known)
        return whole + reserve, whole
    if core.admit[0] == ADMIT_CHUNK:
        gate = blocks_for(e, known) if core.reserve_full_isl[0] else chunk
        return gate + reserve, chunk
    if core.projection[0] == PROJECT_CHUNK:
        return chunk + reserve, chunk
    needed = blocks_for(e, known) + plan.unchunked[0] + reserve
    if core.projection[0] != PROJECT_GROWTH:
        needed -= plan.growth[0]
        if needed < chunk and enforced(e):  # growth that is not projected has taken its blocks all the same
            needed = chunk
    return needed, chunk


@kernel
def fits_at_all(e: Any, row: int) -> bool:
    """Whether the row could ever finish with the whole KV to itself.

    A live engine knows this from prompt + max_tokens; the simulator from the truth.
    """
    last = 1 if e.core.prefill_emits[0] else 0
    most = e.table.prompt_tokens[row] + e.rows.output_tokens[row] - last
    return blocks_for(e, most) <= e.core.total_blocks[0]


@kernel
def enforced(e: Any) -> bool:
    """Whether KV may not pass its capacity."""
    return e.core.kv_limit[0] == KV_ENFORCED


@kernel
def free_row(e: Any, row: int) -> None:
    """Give the row's blocks back; nothing of it is kept."""
    e.core.free_blocks[0] += e.table.kv_blocks[row]
    e.table.kv_blocks[row] = 0
    e.table.computed_tokens[row] = 0
