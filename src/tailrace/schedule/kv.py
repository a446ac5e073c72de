"""KV blocks: how many a piece of work takes, and whether a waiting request may start.

Without a prefix cache blocks are counted, not named: one is as good as another, and the
generics here do nothing; `prefix` implements them for `blocks.Blocks`, `host`, which counts
blocks in host memory too, one of them, and `tiered` does what both do.
"""

from __future__ import annotations

from typing import Any

from .._jit import generic, kernel
from ..rules import ADMIT_CHUNK, ADMIT_PROMPT, KV_ENFORCED, PROJECT_CHUNK, PROJECT_GROWTH

__all__ = ["admission", "blocks_for", "blocks_free", "cached_tokens", "fits_at_all", "free_row", "give_back"]
__all__ += ["idle_blocks", "missing", "more_blocks", "name_blocks", "remember", "take_blocks", "undo", "vacate"]
__all__ += ["yields"]


# ── named blocks: what a prefix cache adds ───────────────────────────────────────────


@generic(on="b")
def cached_tokens(b: Any, row: int, known: int) -> int:
    """Of a waiting row's ``known`` tokens, the leading ones whose KV is in the prefix cache now."""
    return 0


@generic(on="b")
def idle_blocks(b: Any, row: int, tokens: int) -> int:
    """How many of the blocks with these tokens count as free: starting the row uses them up."""
    return 0


@generic(on="b")
def yields(b: Any, row: int, held: int) -> int:
    """Blocks that become free when a running row with ``held`` blocks loses its KV."""
    return held


@generic(on="b")
def take_blocks(b: Any, row: int, tokens: int, fresh: int) -> None:
    """A row starts: it takes the blocks with its ``tokens`` cached tokens, and ``fresh`` new ones."""


@generic(on="b")
def more_blocks(b: Any, row: int, fresh: int) -> None:
    """A running row takes ``fresh`` new blocks."""


@generic(on="b")
def name_blocks(b: Any, row: int, tokens: int) -> None:
    """The row's full blocks among its first ``tokens`` tokens can be found from now on."""


@generic(on="b")
def give_back(b: Any, row: int) -> None:
    """The row's named or host blocks, if it holds any, become free; what named ones hold stays for now."""


@generic(on="b")
def blocks_free(b: Any, count: int) -> int:
    """Free blocks; ``count`` where they are only counted."""
    return count


@generic(on="b")
def remember(b: Any) -> None:
    """Keep the blocks as they are, for `undo`."""


@generic(on="b")
def undo(b: Any) -> None:
    """Make the blocks as they were at the last `remember`."""


# ── counts ───────────────────────────────────────────────────────────────────────────


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
def admission(e: Any, known: int, tokens: int, have: int, idle: int) -> tuple[int, int]:
    """``(needed, taken)`` blocks to start a waiting row with a chunk of ``tokens``.

    ``needed`` must be free by the rules (more than is free if the projection forbids it);
    ``taken`` are allocated. ``known``: tokens to compute before it decodes, of which ``have`` are
    cached, in blocks of which ``idle`` count as free. The watermark holds only while something
    runs: an idle engine starts whatever fits.
    """
    plan, core = e.plan, e.core
    reserve = core.watermark_blocks[0] if plan.residents[0] > 0 else 0
    held = blocks_for(e, have)
    chunk = blocks_for(e, have + tokens) - held
    if core.admit[0] == ADMIT_PROMPT:
        whole = blocks_for(e, known)
        return whole + reserve, whole
    if core.admit[0] == ADMIT_CHUNK:
        gate = blocks_for(e, known) - held if core.reserve_full_isl[0] else chunk
        return gate + idle + reserve, chunk
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
def vacate(e: Any, row: int) -> None:
    """Give the row's blocks back; whether its computed tokens are lost with them is for the caller to say."""
    give_back(e.blocks, row)
    e.core.free_blocks[0] = blocks_free(e.blocks, e.core.free_blocks[0] + e.table.kv_blocks[row])
    e.table.kv_blocks[row] = 0


@kernel
def free_row(e: Any, row: int) -> None:
    """Give the row's blocks back, and what they hold is lost to it."""
    vacate(e, row)
    e.table.computed_tokens[row] = 0
