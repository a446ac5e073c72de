"""Ranks are a strict total order."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.hooks import NoState
from tailrace.latency import PiecewiseParams
from tailrace.registry import POLICIES
from tailrace.rules import EngineRules
from tailrace.schedule.engine import Limits, build
from tailrace.schedule.rank import before, earlier, order_running, outranks

RANKS = st.lists(
    st.tuples(st.integers(-1, 1), st.sampled_from([-1.5, 0.0, 2.0, float("inf")]), st.sampled_from([0.0, 1.0])),
    min_size=1,
    max_size=12,
)


def engine(ranks: list[tuple[int, float, float]], scope: Any = "all") -> Any:
    fcfs = POLICIES.get("fcfs")
    rules = EngineRules(order_scope=scope)
    e, buffers = build(len(ranks), Limits(128, 0, 1000), rules, fcfs, fcfs.Params(), PiecewiseParams())
    for row, (tier, key, arrival) in enumerate(ranks):
        buffers.rows["tier"][row], buffers.rows["key"][row] = tier, key
        buffers.table["arrival_s"][row], buffers.table["seq"][row] = arrival, len(ranks) - row
    assert isinstance(e.state, NoState)
    return e


@given(RANKS)
def test_before_is_the_order_of_tuples(ranks: list[tuple[int, float, float]]) -> None:
    e, rows = engine(ranks), list(range(len(ranks)))
    want = sorted(rows, key=lambda row: (*ranks[row], len(ranks) - row))

    def compare(a: int, b: int) -> int:
        return -1 if before(e, a, b) else 1

    assert sorted(rows, key=cmp_to_key(compare)) == want
    for a in rows:
        assert not before(e, a, a)
        for b in rows:
            assert a == b or before(e, a, b) != before(e, b, a)
            assert outranks(e, a, b) == (ranks[a][:2] < ranks[b][:2])
            assert earlier(e, a, b) == ((ranks[a][2], -a) < (ranks[b][2], -b))


@pytest.mark.parametrize("scope", ["all", "waiting"])
def test_running_order(scope: str) -> None:
    e = engine([(0, 0.0, 3.0), (0, 0.0, 1.0), (0, 0.0, 2.0), (0, 0.0, 1.0)], scope)
    e.seats.run[:] = [2, 0, 3, 1]
    e.core.running[0] = 4
    order_running(e, 0.0)
    assert e.seats.order.tolist() == ([3, 1, 2, 0] if scope == "all" else [2, 0, 3, 1])
    assert e.seats.run.tolist() == [2, 0, 3, 1]
