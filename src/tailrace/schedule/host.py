"""Host memory for KV (rule ``evict=swap``): a preempted row's KV goes there, and comes back when it resumes.

A waiting row's KV is in host memory, and its ``computed_tokens`` say how much of it; it holds no device block. To
resume it takes device blocks for all of them and for its next tokens. If host memory is full the row is
recomputed instead.

When it is copied out is the rule ``swap_out``: as it is preempted, once its device blocks are needed (`parked`), or
ahead, while it runs (`offload`): only then is part of it in host memory and part lost. `managed` has what
comes back in parts, and who waits for it.
With a prefix cache (`tiered`) the copy in host memory is whole too; what the cache has of it when the row
resumes is not copied back.

Engines without the rule are compiled without any of this: `where` asks for the trait ``host``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _jit
from .._jit import kernel, where
from ..rules import WHEN_NEEDED
from ..table import DECODE, F8, I8, PREFILL, WAITING, Columns, allocate
from .kv import blocks_for, free_row, vacate
from .offload import kept_tokens, note_reload, retain, set_aside
from .parked import copy_out, is_parked, park, unpark
from .transfer import IN, CopyLane, ask, lanes_wait_s

__all__ = ["HostKV", "HostTotals", "Stored", "build_host", "copy_in", "decoding", "drop", "host_copies", "reach"]
__all__ += ["resume", "yield_kv"]


class HostTotals(Columns):
    """Scalars: one row."""

    total_blocks: I8
    free_blocks: I8
    most_blocks: I8
    """Most in use at once, reserved for parked rows or holding KV."""
    swapped: I8
    """Preemptions that took KV to host memory, at once or later."""
    parked: I8
    """Preemptions that left KV on the device at first."""
    kept: I8
    """Of those, the ones whose row found it there when it resumed."""
    parked_rows: I8
    """Rows parked now."""
    parked_blocks: I8
    """Device blocks with their KV, which count as free; as many host blocks are reserved."""
    full: I8
    """Preemptions that found it full: the row is recomputed."""
    wait_s: F8
    """Seconds that steps waited for copies."""


class Stored(Columns):
    """One row of the table."""

    blocks: I8
    """Host blocks held: with its KV, or reserved for it while it is parked."""
    place: I8
    """1 + its index in ``parked``; 0 if it is not parked."""
    parked: I8
    """The list of parked rows, in no order: the first ``HostTotals.parked_rows`` entries."""


class HostKV(NamedTuple):
    """The engine's ``blocks`` with a host tier: on the device blocks are counted, and so they are there."""

    host: Any
    stored: Any
    lanes: Any


def build_host(rows: int, host_blocks: int, out_block_s: float, in_block_s: float) -> HostKV:
    """Empty host memory of ``host_blocks`` blocks for ``rows`` rows.

    ``out_block_s``, ``in_block_s``: seconds to copy a block from the device, and to it.
    """
    totals, host = allocate(HostTotals, 1)
    records, lanes = allocate(CopyLane, 2)
    totals["total_blocks"] = totals["free_blocks"] = host_blocks
    records["block_s"] = out_block_s, in_block_s
    return HostKV(host, allocate(Stored, rows)[1], lanes)


@kernel
def drop(b: Any, row: int) -> None:
    """The row's host blocks, if it holds any, become free, and so do its device blocks if it is parked."""
    unpark(b, row)
    b.host.free_blocks[0] += b.stored.blocks[row]
    b.stored.blocks[row] = 0


@kernel
def host_copies(b: Any, begins_s: float, step_s: float) -> float:
    """`with_copies` of an engine with host memory."""
    wait_s = lanes_wait_s(b.lanes, begins_s)
    b.host.wait_s[0] += wait_s
    return wait_s + step_s


_jit.register(HostKV, {"give_back": drop, "with_copies": host_copies}, traits=["host"])


# ── what the engine does with it ─────────────────────────────────────────────────────


@kernel
def _in_decode(e: Any, row: int) -> bool:
    return e.table.phase[row] == DECODE


@where("host", otherwise=_in_decode, of="blocks")
def decoding(e: Any, row: int) -> bool:
    """Whether the row's next tokens are a decode's: it decodes, or was swapped out when it did."""
    if e.table.phase[row] != WAITING:
        return e.table.phase[row] == DECODE
    computed = e.table.computed_tokens[row]
    whole = e.blocks.stored.blocks[row] > 0 and kept_tokens(e.blocks, row, computed) == computed
    return whole and computed >= e.rows.target_tokens[row]


def _found(e: Any, row: int, have: int) -> int:
    return have


@where("host", otherwise=_found, of="blocks")
def reach(e: Any, row: int, have: int) -> int:
    """Tokens a waiting row has when it starts: ``have`` in the prefix cache, or more in host memory."""
    kept = kept_tokens(e.blocks, row, e.table.computed_tokens[row])
    return kept if kept > have else have


@where("host", otherwise=free_row, of="blocks")
def yield_kv(e: Any, row: int) -> None:
    """A running row gives up its device blocks: its KV goes to host memory, now or when they are needed, or is lost."""
    table, b = e.table, e.blocks
    if set_aside(e, row):
        return
    blocks = blocks_for(e, table.computed_tokens[row])
    if blocks > b.host.free_blocks[0]:
        b.host.full[0] += 1
        free_row(e, row)
        return
    vacate(e, row)  # it holds no host blocks yet
    b.host.free_blocks[0] -= blocks
    b.stored.blocks[row] = blocks
    used = b.host.total_blocks[0] - b.host.free_blocks[0]
    if used > b.host.most_blocks[0]:
        b.host.most_blocks[0] = used
    if e.core.swap_out[0] == WHEN_NEEDED:
        park(b, row)
    else:
        copy_out(e, row)


@kernel
def _start_afresh(e: Any, row: int) -> None:
    table = e.table
    table.phase[row] = PREFILL
    e.rows.target_tokens[row] = table.prompt_tokens[row] + table.generated_tokens[row]


def _no_copies(e: Any, row: int, slot: int) -> None:
    return


@where("host", otherwise=_no_copies, of="blocks")
def copy_in(e: Any, row: int, slot: int) -> None:
    """A waiting row is about to resume by the plan in ``slot``: ask for its KV that is in host memory and that
    it does not find on the device, where it was parked or in the prefix cache."""
    b = e.blocks
    if b.stored.blocks[row] == 0:
        return
    if is_parked(b, row):
        b.host.kept[0] += 1
        return
    found = e.items.found[slot * e.seats.run.shape[0] + e.rows.mark[row] - 1]
    tokens = kept_tokens(b, row, e.table.computed_tokens[row])
    blocks = blocks_for(e, tokens) - found // e.core.block_tokens[0]
    if blocks > 0:
        note_reload(e, row, blocks)
        ask(b.lanes, IN, blocks, tokens - found)


@where("host", otherwise=_start_afresh, of="blocks")
def resume(e: Any, row: int) -> None:
    """A waiting row starts: from its first token, or behind what it has in host memory and the plan copies back."""
    b = e.blocks
    if b.stored.blocks[row] == 0:
        _start_afresh(e, row)
        return
    decodes = decoding(e, row)
    if not retain(e, row):
        drop(b, row)
    e.table.phase[row] = DECODE if decodes else PREFILL
