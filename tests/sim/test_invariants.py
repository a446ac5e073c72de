"""The invariants hold between all steps, and each of them fails when its fact is broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tailrace.sim import invariants
from tailrace.sim.instance import PAUSED
from tailrace.sim.run import Instance

from .cases import NAMES, Case, draw

PURE = ("fcfs", "srpt", "qba", "sink")
"""One policy of each kind of keys: `Instance.plan` is compiled for these."""
MOST_ROUNDS = 300
"""Checks after which a run that can go on for ever is left."""


def crowded(name: str, in_flight: int = 1) -> Instance:
    """A run of ``name`` in the middle: requests wait and run, some were preempted."""
    for seed in range(200):
        run = draw(name, seed, (in_flight,)).instance()
        run.advance(steps=25)
        core = run.buffers.core
        if core["waiting"][0] > 3 and core["running"][0] > 1 and run.records.counters["preemptions"][0]:
            return run
    raise AssertionError("no crowded run")


def walk(case: Case, every: int = 3, pure: bool = False) -> Instance:
    """Run to the end, checking every few steps. Two may have none: ltr, its quantum too short for a recompute, and
    slide, where requests that recompute displace each other."""
    run, clock, rounds = case.instance(), 0.0, 0
    while run.advance(steps=every) == PAUSED:
        rounds += 1
        if rounds == MOST_ROUNDS and case.policy.name in ("ltr", "slide"):
            break
        assert rounds < 100 * MOST_ROUNDS
        invariants.check(run)
        clock = invariants.clock_moves_on(run, clock)
        if pure:
            invariants.plan_is_pure(run)
    invariants.check(run)
    return run


@pytest.mark.parametrize("name", NAMES)
def test_they_hold_in_random_runs(name: str) -> None:
    for seed in range(1000, 1006):
        walk(draw(name, seed))


@pytest.mark.parametrize("name", PURE)
def test_planning_is_pure(name: str) -> None:
    for seed in range(2000, 2004):
        walk(draw(name, seed), every=5, pure=True)


def test_keys_stay_fresh_though_tokens_come_after_the_eviction() -> None:
    """With two steps in flight a preempted request is still given the tokens of the older one."""
    for seed in range(25):
        walk(draw("srpt", seed, (2,)), every=1)


def test_planning_leaves_a_step_under_way_alone() -> None:
    run = draw("fcfs", 3, (2,)).instance()
    run.advance(steps=1)
    assert run.buffers.core["in_flight"][0] == 1
    invariants.plan_is_pure(run)
    items, _ = run.plan()
    assert items


def test_the_plan_is_what_the_next_step_does() -> None:
    run = draw("qba", 3, (1,)).instance()
    run.advance(steps=5)
    run.buffers.core["next_row"][0] = run.buffers.core["rows"][0]  # nobody comes in between
    items, evicted = run.plan()
    run.advance(steps=1)
    e = run.engine
    assert items == [(int(e.items.row[i]), int(e.items.tokens[i])) for i in range(int(e.slots.items[0]))]
    assert evicted == [int(row) for row in e.seats.evicted[: int(e.plan.evicted[0])]]


def _first(run: Instance, *phases: int) -> int:
    return int(np.flatnonzero(np.isin(run.buffers.table["phase"], phases))[0])


def _waiting_moves(run: Instance) -> None:
    heap, count = run.engine.heap, int(run.engine.lanes.count[0])
    heap[0, 0], heap[0, count - 1] = heap[0, count - 1], heap[0, 0]


def _put(column: str, phase: int, value: float, part: str = "table") -> Callable[[Instance], None]:
    def change(run: Instance) -> None:
        getattr(run.buffers, part)[column][_first(run, phase)] = value

    return change


def _core(column: str, by: int) -> Callable[[Instance], None]:
    def change(run: Instance) -> None:
        run.buffers.core[column][0] += by

    return change


BREAKS: list[tuple[str, Callable[[Instance], None]]] = [
    ("blocks", _core("free_blocks", 1)),
    ("blocks", _put("computed_tokens", 1, 3)),
    ("blocks", _put("computed_tokens", 3, 10_000)),
    ("requests", _core("waiting", 1)),
    ("requests", _put("phase", 3, 1)),
    ("requests", _put("preemptions", 1, 99)),
    ("heaps", _waiting_moves),
    ("heaps", _put("position", 1, 0, "rows")),
    ("keys_are_fresh", _put("key", 1, -5.0, "rows")),
    ("tokens", _put("generated_tokens", 3, 10_000)),
    ("tokens", _put("pending_tokens", 3, 1, "rows")),
    ("tokens", _put("attained_tokens", 3, 0)),
    ("budgets", _core("max_seqs", -1000)),
    ("marks", _put("mark", 1, -1, "rows")),
    ("causality", _put("started_s", 3, -1.0)),
    ("causality", _put("first_token_s", 3, 1e9)),
    ("total_order", _put("seq", 1, -1)),
]


@pytest.mark.parametrize(("name", "change"), BREAKS, ids=[f"{i}-{name}" for i, (name, _) in enumerate(BREAKS)])
def test_each_notices_what_it_is_there_for(name: str, change: Callable[[Instance], None]) -> None:
    run = crowded("srpt")
    check: Any = getattr(invariants, name)
    check(run)
    change(run)
    if name == "total_order":
        table = run.buffers.table
        table["seq"][:], table["arrival_s"][:] = 0, 0.0
    with pytest.raises(AssertionError):
        check(run)


def test_the_clock_is_not_turned_back() -> None:
    run = crowded("srpt")
    with pytest.raises(AssertionError, match="the clock went"):
        invariants.clock_moves_on(run, 1e9)


def test_planning_that_writes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = crowded("srpt")

    def plan() -> Any:
        run.buffers.table["weight"][0] += 1
        return [], []

    monkeypatch.setattr(run, "plan", plan)
    with pytest.raises(AssertionError, match="planning changed table"):
        invariants.plan_is_pure(run)
