"""One step's plan, on an engine set up by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tailrace.latency import PiecewiseParams
from tailrace.registry import POLICIES
from tailrace.rules import EngineRules
from tailrace.schedule.batch import plan
from tailrace.schedule.engine import Limits, build
from tailrace.schedule.prefix import build_blocks, seal, start
from tailrace.schedule.waiting import add
from tailrace.table import DECODE, PREFILL, WAITING

pytestmark = pytest.mark.plain
STALLING = EngineRules(
    block_tokens=4,
    prefix_cache=True,
    kv_short="stall",
    may_preempt_for_kv=True,
    order_scope="all",
    phase_order="ranked",
    reserve_full_isl=False,
)


def test_who_is_displaced_in_vain_is_not_also_given_up_to_a_deadlock() -> None:
    """Rows 0 and 1 each want 4 blocks more and none is free. Row 3 outranks row 2, with whose three blocks it would
    have room by the count ahead, two of them being its own first blocks; once row 2 is gone those are idle, and
    row 3 does not start. Nobody can go on, and row 2, the last, leaves once and not twice."""
    named = build_blocks(4, 4, 9, 9, 4, np.array([7, 8, 7, 8]), np.array([0, 0, 0, 2, 4]))
    policy = POLICIES.get("priority")
    assert policy.Params is not None
    e, buffers = build(4, Limits(64, 0, 36), STALLING, policy, policy.Params(), PiecewiseParams(), named)
    table, core = buffers.table, buffers.core
    table["prompt_tokens"], table["priority"] = (28, 28, 12, 17), (1, 1, 5, 0)
    table["seq"] = table["arrival_s"] = range(4)
    table["phase"], table["generated_tokens"] = (PREFILL, PREFILL, DECODE, WAITING), (0, 0, 1, 0)
    buffers.rows["output_tokens"], buffers.rows["target_tokens"] = 8, table["prompt_tokens"]
    for row in range(3):
        start(named, row, 0, 3)
        seal(named, row, 12)
        table["computed_tokens"][row] = table["attained_tokens"][row] = 12
        table["kv_blocks"][row], e.seats.run[row] = 3, row
    core["running"], core["free_blocks"] = 3, 0
    add(e, 3, 4.0)
    assert plan(e, 0, 5.0) == 0
    assert e.seats.evicted[: e.plan.evicted[0]].tolist() == [2]
    assert e.seats.gain[0] == 3
    assert (e.plan.pressure[0], e.plan.residents[0], e.plan.free[0]) == (0, 2, 3)
