"""Host memory: what leaves the device, what comes back, and what happens when it is full."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.latency import PiecewiseParams
from tailrace.registry import POLICIES
from tailrace.rules import EngineRules
from tailrace.schedule.engine import Engine, Limits, build
from tailrace.schedule.fit import first_blocks, wanted
from tailrace.schedule.host import build_host, copy_in, decoding, resume, yield_kv
from tailrace.schedule.kv import free_row
from tailrace.schedule.transfer import IN, OUT
from tailrace.table import DECODE, PREFILL, WAITING

DEVICE_BLOCKS = 20


def engine(host_blocks: int | None, **changes: Any) -> Engine:
    """Two rows with 40 prompt tokens; row 0 runs with 20 of them in 2 blocks, row 1 decodes with 42 in 3."""
    rules = EngineRules(block_tokens=16, decode_block_tokens=8, **changes)
    fcfs, held = POLICIES.get("fcfs"), None if host_blocks is None else build_host(2, host_blocks, 1.0, 1.0)
    e, buffers = build(2, Limits(64, 0, DEVICE_BLOCKS * 16), rules, fcfs, fcfs.Params(), PiecewiseParams(), held)
    table, rows = buffers.table, buffers.rows
    table["prompt_tokens"], rows["target_tokens"], rows["output_tokens"] = 40, 40, 12
    table["phase"], table["computed_tokens"], table["kv_blocks"] = (PREFILL, DECODE), (20, 42), (2, 3)
    table["generated_tokens"] = 0, 3
    buffers.core["free_blocks"] -= 5
    return e


def take_in(e: Engine, row: int, found: int = 0) -> None:
    """By a plan whose one item is the row's."""
    e.rows.mark[row], e.items.found[0] = 1, found
    copy_in(e, row, 0)
    resume(e, row)


def put_out(e: Engine, row: int) -> None:
    yield_kv(e, row)
    e.table.phase[row] = WAITING


def test_what_is_swapped_out_keeps_its_tokens_and_leaves_the_device() -> None:
    e = engine(10)
    put_out(e, 0)
    put_out(e, 1)
    assert e.core.free_blocks[0] == DEVICE_BLOCKS
    assert e.table.kv_blocks.tolist() == [0, 0]
    assert e.table.computed_tokens.tolist() == [20, 42]
    assert e.blocks.stored.blocks.tolist() == [2, 3]
    host, lanes = e.blocks.host, e.blocks.lanes
    assert (host.free_blocks[0], host.most_blocks[0], host.swapped[0], host.full[0]) == (5, 5, 2, 0)
    assert (lanes.asked[OUT], lanes.tokens[OUT], lanes.asked[IN]) == (5, 62, 0)


def test_a_row_goes_on_where_it_was() -> None:
    e = engine(10)
    for row in (0, 1):
        assert not decoding(e, row) or row == 1
        put_out(e, row)
    assert [bool(decoding(e, row)) for row in (0, 1)] == [False, True]
    assert [wanted(e, row) for row in (0, 1)] == [20, 8]
    take_in(e, 0)
    take_in(e, 1)
    assert e.table.phase.tolist() == [PREFILL, DECODE]
    assert e.rows.target_tokens.tolist() == [40, 40]
    assert e.blocks.stored.blocks.tolist() == [0, 0]
    assert (e.blocks.host.free_blocks[0], e.blocks.lanes.asked[IN], e.blocks.lanes.tokens[IN]) == (10, 5, 62)


def test_what_does_not_fit_is_lost_and_counted() -> None:
    e = engine(4)
    put_out(e, 1)
    put_out(e, 0)
    assert e.table.computed_tokens.tolist() == [0, 42]
    assert (e.blocks.host.swapped[0], e.blocks.host.full[0], e.blocks.host.free_blocks[0]) == (1, 1, 1)
    assert e.core.free_blocks[0] == DEVICE_BLOCKS
    assert not decoding(e, 0)
    take_in(e, 0)
    assert (e.table.phase[0], e.rows.target_tokens[0], e.blocks.lanes.asked[IN]) == (PREFILL, 40, 0)


def test_a_row_that_leaves_gives_its_host_blocks_back() -> None:
    e = engine(10)
    put_out(e, 1)
    free_row(e, 1)
    assert (e.blocks.host.free_blocks[0], e.blocks.stored.blocks[1], e.table.computed_tokens[1]) == (10, 0, 0)
    assert e.core.free_blocks[0] == DEVICE_BLOCKS - 2


@pytest.mark.parametrize(
    ("changes", "prefill", "decode"),
    [
        ({"reserve_full_isl": True}, (3, 2), (4, 4)),
        ({"reserve_full_isl": False}, (2, 2), (4, 4)),
        ({"admit": "prompt"}, (3, 3), (4, 4)),
        ({"admit": "projected", "projection": "chunk"}, (2, 2), (4, 4)),
    ],
)
def test_to_resume_takes_the_blocks_of_all_its_tokens_and_the_next(
    changes: dict[str, Any], prefill: tuple[int, int], decode: tuple[int, int]
) -> None:
    """20 + 10 tokens in 2 blocks, the whole prompt in 3; 42 + 8 in 4."""
    e = engine(10, **changes)
    put_out(e, 0)
    put_out(e, 1)
    assert first_blocks(e, 0, 40, 10, 0, 0) == prefill
    assert first_blocks(e, 1, 43, 8, 0, 0) == decode


def test_without_host_memory_the_kv_is_lost() -> None:
    e = engine(None)
    put_out(e, 1)
    assert (e.table.computed_tokens[1], e.table.kv_blocks[1]) == (0, 0)
    assert not decoding(e, 1)
    take_in(e, 1)
    assert (e.table.phase[1], e.rows.target_tokens[1]) == (PREFILL, 43)
