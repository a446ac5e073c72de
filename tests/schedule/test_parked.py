"""KV left on the device: it counts as free, comes back without a copy, and goes when others need the room."""

from __future__ import annotations

import pytest

from tailrace.schedule.kv import free_row
from tailrace.schedule.parked import is_parked, reclaim
from tailrace.schedule.transfer import IN, OUT
from tailrace.table import PREFILL

from .test_host import DEVICE_BLOCKS, engine, put_out, take_in

KEEP = {"evict": "swap", "swap_out": "when_needed"}


def test_kv_that_nobody_needs_stays_on_the_device_and_counts_as_free() -> None:
    e = engine(10, **KEEP)
    e.table.kv_blocks[0] += 1  # reserved for its prompt, and empty
    e.core.free_blocks[0] -= 1
    put_out(e, 0)
    put_out(e, 1)
    host, lanes = e.blocks.host, e.blocks.lanes
    assert (e.core.free_blocks[0], host.parked_blocks[0], host.free_blocks[0]) == (DEVICE_BLOCKS, 5, 5)
    assert [bool(is_parked(e.blocks, row)) for row in (0, 1)] == [True, True]
    assert (host.parked[0], host.swapped[0], lanes.asked[OUT]) == (2, 0, 0)
    take_in(e, 0)
    assert (host.kept[0], host.parked_blocks[0], host.free_blocks[0], lanes.asked[IN]) == (1, 3, 7, 0)
    assert [bool(is_parked(e.blocks, row)) for row in (0, 1)] == [False, True]
    assert (e.table.phase[0], e.rows.target_tokens[0], e.table.computed_tokens[0]) == (PREFILL, 40, 20)


@pytest.mark.parametrize("first", [0, 1])
def test_who_is_ranked_last_gives_way_first_and_no_more_than_must(first: int) -> None:
    e = engine(10, **KEEP)
    e.table.seq[1 - first] = 1
    put_out(e, 0)
    put_out(e, 1)
    host, lanes, stored = e.blocks.host, e.blocks.lanes, e.blocks.stored
    e.core.free_blocks[0] = 5
    reclaim(e, 0.0)
    assert (host.parked_rows[0], lanes.asked[OUT]) == (2, 0)
    e.core.free_blocks[0] = 4
    reclaim(e, 0.0)
    last = 1 - first
    assert [bool(is_parked(e.blocks, row)) for row in (first, last)] == [True, False]
    assert (host.swapped[0], host.parked_blocks[0], lanes.asked[OUT]) == (1, stored.blocks[first], stored.blocks[last])
    assert lanes.tokens[OUT] == e.table.computed_tokens[last]
    e.core.free_blocks[0] = -1  # where the limit is only reported
    reclaim(e, 0.0)
    assert (host.parked_rows[0], host.parked_blocks[0], lanes.asked[OUT]) == (0, 0, 5)
    assert (host.swapped[0], host.free_blocks[0]) == (2, 5)


def test_a_row_that_leaves_while_its_kv_is_on_the_device_is_not_copied() -> None:
    e = engine(10, **KEEP)
    put_out(e, 1)
    put_out(e, 0)
    free_row(e, 1)
    host = e.blocks.host
    assert (host.parked_rows[0], host.parked_blocks[0], host.free_blocks[0], host.kept[0]) == (1, 2, 8, 0)
    assert e.core.free_blocks[0] == DEVICE_BLOCKS
    reclaim(e, 0.0)
    assert e.blocks.lanes.asked[OUT] == 0
