"""Named blocks with host memory: what stays findable, what is copied, and what a row that resumes takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tailrace.latency import PiecewiseParams
from tailrace.registry import POLICIES
from tailrace.rules import EngineRules
from tailrace.schedule import kv
from tailrace.schedule.engine import Engine, Limits, build
from tailrace.schedule.fit import first_blocks, first_tokens
from tailrace.schedule.host import build_host, copy_in, reach, resume, yield_kv
from tailrace.schedule.prefix import build_blocks, grow, hits, seal, start
from tailrace.schedule.tiered import Tiered, build_tiered
from tailrace.schedule.transfer import IN, OUT
from tailrace.table import DECODE, PREFILL, WAITING

pytestmark = pytest.mark.plain
DEVICE_BLOCKS = 12
COMPUTED = 40, 42
"""Row 0 prefills 60 tokens, row 1 has made 3 of its output after 40. Both begin with the same block of 16."""


def engine(host_blocks: int = 10, **changes: Any) -> Engine:
    """Both run: row 0 with 3 blocks, of which 2 are full, row 1 with 3 too, the first of them row 0's."""
    rules = EngineRules(block_tokens=16, prefix_cache=True, evict="swap", **changes)
    named = build_blocks(3, 3, DEVICE_BLOCKS, DEVICE_BLOCKS, 16, np.array([7, 8, 7, 9]), np.array([0, 2, 4, 4]))
    fcfs, held = POLICIES.get("fcfs"), build_tiered(named, build_host(3, host_blocks, 1.0, 1.0))
    e, buffers = build(3, Limits(64, 0, DEVICE_BLOCKS * 16), rules, fcfs, fcfs.Params(), PiecewiseParams(), held)
    table, rows = buffers.table, buffers.rows
    table["prompt_tokens"], rows["output_tokens"] = (60, 40, 200), 12
    rows["target_tokens"], table["generated_tokens"] = table["prompt_tokens"], (0, 3, 0)
    table["phase"], table["computed_tokens"], table["kv_blocks"] = (PREFILL, DECODE, 0), (*COMPUTED, 0), (3, 3, 0)
    start(named, 0, 0, 3)
    seal(named, 0, COMPUTED[0])
    start(named, 1, hits(named, 1, 43), 2)
    seal(named, 1, COMPUTED[1])
    buffers.core["free_blocks"] = kv.blocks_free(held, 0)
    return e


def put_out(e: Engine, row: int) -> None:
    yield_kv(e, row)
    e.table.phase[row] = WAITING


def take_in(e: Engine, row: int, found: int) -> None:
    e.rows.mark[row], e.items.found[0] = 1, found
    copy_in(e, row, 0)
    resume(e, row)


def test_it_has_the_fields_of_both() -> None:
    e = engine()
    assert isinstance(e.blocks, Tiered)
    assert (e.core.free_blocks[0], e.blocks.host.free_blocks[0]) == (DEVICE_BLOCKS - 5, 10)


def test_all_of_a_row_is_copied_out_and_what_others_hold_stays() -> None:
    """Row 1's three blocks go out, the shared one with them; two become free, and its full ones are still found."""
    e = engine()
    put_out(e, 1)
    assert (e.blocks.stored.blocks[1], e.blocks.lanes.asked[OUT], e.blocks.lanes.tokens[OUT]) == (3, 3, 42)
    assert (e.table.kv_blocks[1], e.table.computed_tokens[1]) == (0, 42)
    assert e.core.free_blocks[0] == DEVICE_BLOCKS - 3
    assert kv.cached_tokens(e.blocks, 1, 43) == 32
    assert kv.idle_blocks(e.blocks, 1, 32) == 1


def test_what_is_still_cached_is_not_copied_back() -> None:
    e = engine()
    put_out(e, 1)
    assert (reach(e, 1, 32), first_tokens(e, 1, 43, 32)) == (42, 0)  # no plan is being made: no budget
    e.plan.budget[0] = 64
    assert first_tokens(e, 1, 43, 32) == 1
    assert first_blocks(e, 1, 43, 1, 32, 1) == (1 + 1, 1)
    take_in(e, 1, 32)
    assert (e.blocks.lanes.asked[IN], e.blocks.lanes.tokens[IN]) == (1, 42 - 32)
    assert (e.table.phase[1], e.blocks.stored.blocks[1], e.blocks.host.free_blocks[0]) == (DECODE, 0, 10)


def test_what_the_cache_has_lost_comes_back_from_the_host() -> None:
    """Row 2 takes every free block, so of row 1's only the one that row 0 holds is left."""
    e = engine()
    put_out(e, 1)
    start(e.blocks, 2, 0, 0)
    grow(e.blocks, 2, int(e.blocks.pool.free[0]))
    assert kv.cached_tokens(e.blocks, 1, 43) == 16
    assert kv.idle_blocks(e.blocks, 1, 16) == 0
    e.plan.budget[0] = 64
    assert first_blocks(e, 1, 43, 1, 16, 0) == (2, 2)
    take_in(e, 1, 16)
    assert (e.blocks.lanes.asked[IN], e.blocks.lanes.tokens[IN]) == (2, 26)


def test_the_cache_may_have_more_than_the_host() -> None:
    """Row 0 was put out after 40 tokens of 60, and 48 are in the cache when it resumes: 12 are left, no copies."""
    e = engine()
    put_out(e, 0)
    e.plan.budget[0] = 64
    assert (reach(e, 0, 48), reach(e, 0, 32), first_tokens(e, 0, 60, 48)) == (48, 40, 12)
    assert first_blocks(e, 0, 60, 12, 48, 2) == (1 + 2, 1)
    take_in(e, 0, 48)
    assert (e.blocks.lanes.asked[IN], e.blocks.lanes.tokens[IN]) == (0, 0)
    assert (e.table.phase[0], e.blocks.host.free_blocks[0]) == (PREFILL, 10)


def test_where_the_host_is_full_the_cache_is_what_is_left() -> None:
    e = engine(host_blocks=2)
    put_out(e, 1)
    assert (e.table.computed_tokens[1], e.blocks.host.full[0], e.blocks.lanes.asked[OUT]) == (0, 1, 0)
    assert e.core.free_blocks[0] == DEVICE_BLOCKS - 3
    assert (reach(e, 1, 32), kv.cached_tokens(e.blocks, 1, 43)) == (32, 32)
    e.plan.budget[0] = 64
    assert first_tokens(e, 1, 43, 32) == 11


@pytest.mark.parametrize("stored", [True, False])
def test_a_row_that_leaves_gives_both_back(stored: bool) -> None:
    e = engine()
    if stored:
        put_out(e, 1)
    kv.free_row(e, 1)
    assert (e.blocks.host.free_blocks[0], e.core.free_blocks[0], e.table.computed_tokens[1]) == (10, 9, 0)
    kv.free_row(e, 0)
    assert e.core.free_blocks[0] == e.blocks.pool.free[0] == DEVICE_BLOCKS
