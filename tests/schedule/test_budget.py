"""The copy budget by hand: its three cases, and who may copy how much of it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tailrace.latency import ProfiledParams
from tailrace.registry import POLICIES
from tailrace.rules import EngineRules
from tailrace.schedule.budget import allow_copies, budget_copies, spend_copies
from tailrace.schedule.engine import Engine, Limits, build
from tailrace.schedule.host import build_host, decoding, reach
from tailrace.schedule.managed import Management, build_managed
from tailrace.schedule.waiting import add
from tailrace.table import WAITING

pytestmark = pytest.mark.plain

COST = ProfiledParams(constant_s=1.0, prefill_token_s=0.25)
"""A step takes 1 s, and a token of a prefill 0.25 s; a decode takes none."""


def engine(block_s: float, seconds: float, beta: float = 2.0, tokens: int = 100) -> Engine:
    """Three rows of 64 tokens wait in their order, with 8, 8 and 4 blocks of 4 in host memory: of the first two all
    but half is missing. ``seconds`` are the policy's, without the constant."""
    rules = EngineRules(block_tokens=4, evict="swap", copy_budget="adaptive", order_scope="all", phase_order="ranked")
    slide = POLICIES.get("slide")  # which limits seconds
    assert slide.Params is not None
    held = build_managed(3, build_host(3, 100, 1.0, block_s), Management(4, None, 1, beta))
    e, buffers = build(3, Limits(tokens, 0, 400), rules, slide, slide.Params(), COST, held)
    table, rows = buffers.table, buffers.rows
    table["prompt_tokens"], rows["target_tokens"], rows["output_tokens"] = 64, 64, 10
    table["phase"], table["computed_tokens"], table["arrival_s"] = WAITING, (32, 32, 16), (0, 1, 2)
    e.blocks.stored.blocks[:] = 8, 8, 4
    for row in range(3):
        add(e, row, 0.0)
    e.plan.budget[0], e.plan.seconds[0], e.plan.timed[0] = tokens, seconds, not math.isinf(seconds)
    return e


def budget(*args: Any, **more: Any) -> int:
    e = engine(*args, **more)
    budget_copies(e, 0.0)
    return int(e.blocks.choice.left_blocks[0])


def test_the_three_cases() -> None:
    """T_fwd = 1 + (32 + 32 + 48)·0.25 = 29 s, T_trans = 20 blocks."""
    assert budget(0.5, math.inf) == -1
    assert budget(0.5, 4.0) == 10  # work enough: what is copied in 5 s
    assert budget(0.5, 100.0) == -1  # 10 s of copies behind 29 s of work
    assert budget(2.0, 9.0) == 5
    assert budget(1e-3, 4.0) == 20  # no more than there are


def test_copies_that_would_be_waited_for_are_computed_instead_from_the_lowest_rank_up() -> None:
    """40 s of copies, 29 s of work; a block less is 2 s less of copies and 1 s more of work: 4 fewer are enough. At
    3 s a block 60 against 29: 4 s a block, so 8 fewer, all 4 of the third and 4 of the second."""
    assert budget(2.0, 100.0) == 16
    assert budget(3.0, 100.0) == 12
    assert budget(100.0, 1000.0) == 0


def test_it_is_used_up_in_order_and_the_first_may_have_more() -> None:
    e = engine(0.5, 2.0, beta=0.0)  # 6 blocks
    budget_copies(e, 0.0)
    assert allow_copies(e, 0, 64)
    assert reach(e, 0, 0) == 32
    spend_copies(e, 0)
    assert e.blocks.choice.left_blocks[0] == 0
    assert not allow_copies(e, 1, 64)
    assert not allow_copies(e, 2, 64)
    assert e.blocks.choice.skipped[0] == 2


def test_who_has_nothing_there_is_asked_nothing() -> None:
    e = engine(0.5, 2.0, beta=0.0)
    e.blocks.stored.blocks[2], e.table.computed_tokens[2] = 0, 0
    budget_copies(e, 0.0)
    spend_copies(e, 2)
    assert e.blocks.choice.taken_blocks[0] == 0
    spend_copies(e, 0)
    assert allow_copies(e, 2, 64)


def partial(seconds: float, beta: float, tokens: int = 100, chunk_cap: int = 0) -> int | None:
    """Tokens that the second keeps, of 10 blocks of budget after the first's 8; None if it is skipped."""
    e = engine(0.5, 4.0, beta, tokens)
    budget_copies(e, 0.0)
    assert e.blocks.choice.left_blocks[0] == 10
    assert allow_copies(e, 0, 64)
    spend_copies(e, 0)
    e.plan.seconds[0], e.plan.chunk_cap[0] = seconds, chunk_cap
    e.plan.timed[0] = not math.isinf(seconds)
    if not allow_copies(e, 1, 64):
        return None
    assert not decoding(e, 1)
    return int(reach(e, 1, 0))


def test_a_copy_in_part_needs_progress_in_proportion() -> None:
    """Two of eight blocks are covered: it lacks 24 tokens of them, and 56 in all."""
    assert partial(math.inf, 2.0) == 8
    assert partial(14.0, 8.0) == 8  # its 56 tokens take 14 s: all that it could compute
    assert partial(13.75, 2.0) == 8  # 55 > 2·24
    assert partial(12.25, 2.0) == 8
    assert partial(12.0, 2.0) is None  # 48 are not
    assert partial(13.75, 8.0) is None
    assert partial(13.75, 8.0, tokens=50) == 8  # all that a step may have
    assert partial(3.0, 8.0, chunk_cap=12) == 8
    assert partial(2.75, 8.0, chunk_cap=12) is None
    assert partial(math.inf, 0.0) is None
