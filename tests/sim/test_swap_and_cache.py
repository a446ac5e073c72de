"""Preemption by swap with a prefix cache: by hand, invariants, and what each must and must not change of the other."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tailrace.sim import invariants
from tailrace.sim.instance import DRAINED, PAUSED
from tailrace.sim.run import Instance
from tailrace.table import DONE
from tailrace.workloads.prefix import Prefix

from .cached_cases import tiered
from .cases import TICK, Case
from .digest import digests, elsewhere
from .test_invariants import walk
from .test_swap import TWO, instance

TWINS = dataclasses.replace(TWO, prefix=Prefix(16, np.array([7, 7]), np.array([0, 1, 2])))
"""The same two requests, whose prompts begin with the same block."""


@pytest.mark.plain
def test_what_is_still_cached_does_not_come_back_by_hand() -> None:
    """As without a cache until the second goes out, with two blocks: the first takes one of them, the other
    keeps its name. At 44 ticks the second copies one block back, 4 ticks, and makes 7 steps."""
    run = instance(prefix_cache=True)
    assert run.advance() == DRAINED
    result = run.result()
    assert (result.requests.finish_s / TICK).tolist() == [44, 76]
    assert result.requests.recomputed_tokens.tolist() == [0, 0]
    summary = result.summary()
    assert (summary["swap"]["swapped_out_tokens"], summary["swap"]["swapped_in_tokens"]) == (32, 16)
    assert (summary["swap"]["swapped_in_bytes"], summary["swap"]["swap_s"]) == (16 * 125_000_000, 8 * TICK)
    assert summary["engine"]["cached_tokens"] == 16


@pytest.mark.plain
def test_a_shared_block_is_copied_out_with_the_rest_by_hand() -> None:
    """In step 4 both need a third block and there is one. The second's two blocks go out, 4 ticks, though the
    first holds one of them all along; both are still in the cache at 44 ticks, so nothing comes back."""
    run = instance(TWINS, prefix_cache=True)
    assert run.advance() == DRAINED
    result = run.result()
    assert (result.requests.finish_s / TICK).tolist() == [44, 72]
    swap = result.summary()["swap"]
    assert (swap["swapped_out_bytes"], swap["swapped_in_bytes"]) == (32 * 125_000_000, 0)
    assert (swap["swapped"], swap["most_host_kv_tokens"]) == (1, 32)
    assert result.counters["cached_tokens"] == 16 + 32


@pytest.mark.plain
@pytest.mark.parametrize("name", ["fcfs", "srpt", "memguard", "sink"])
def test_invariants_hold_and_planning_is_pure(name: str) -> None:
    moved = found = 0
    for seed in range(20, 32):
        run = walk(tiered(name, seed), every=1 + seed % 2, pure=seed % 2 == 0)
        moved += int(run.engine.blocks.lanes.blocks.sum())
        found += int(run.records.counters["cached_tokens"][0])
        assert run.engine.blocks.host.free_blocks[0] == run.engine.blocks.host.total_blocks[0]
        assert run.engine.blocks.pool.free[0] == run.buffers.core["total_blocks"][0]
    assert moved > 0
    assert found > 0


def roomy(name: str, seed: int) -> Case:
    """A random case whose host memory is never full."""
    case = tiered(name, seed)
    case.config = dataclasses.replace(case.config, host_kv_tokens=10_000)
    return case


@pytest.mark.plain
@pytest.mark.parametrize("name", ["srpt", "sink"])
def test_with_room_on_the_host_nothing_is_computed_twice(name: str) -> None:
    """And what the cache spares of copies is what was found by those who came back."""
    swapped = spared = 0
    for seed in range(100, 125):
        run = roomy(name, seed).instance()
        assert run.advance() == DRAINED
        assert run.records.counters["recomputed_tokens"][0] == 0
        out, back = run.engine.blocks.lanes.blocks
        swapped, spared = swapped + int(out), spared + int(out - back)
    assert swapped > 100
    assert spared > swapped // 10


@pytest.mark.plain
def test_with_free_copies_and_nothing_in_common_the_cache_changes_nothing() -> None:
    """A row that comes back takes its own blocks where they are still there: as many, and no sooner.

    (Under a policy that displaces nobody: that is decided before the step where there is a cache.)
    """
    spared = 0
    for seed in range(200, 230):
        case = roomy("psf", seed)
        case.workload = dataclasses.replace(case.workload, prefix=None)
        case.config = dataclasses.replace(case.config, swap_out_gb_per_s=1e30, swap_in_gb_per_s=1e30)
        plain = dataclasses.replace(case.config.rules, prefix_cache=False)
        other = dataclasses.replace(case, config=dataclasses.replace(case.config, rules=plain))
        runs = [case.instance(), other.instance()]
        for run in runs:
            assert run.advance() == DRAINED
        for column in ("finish_s", "reason", "preempted_s"):
            np.testing.assert_array_equal(runs[0].records.out[column], runs[1].records.out[column], err_msg=case.label)
        back = [int(run.engine.blocks.lanes.blocks[1]) for run in runs]
        assert back[0] <= back[1]
        spared += back[1] - back[0]
    assert spared > 0


@pytest.mark.plain
@pytest.mark.parametrize("name", ["uniboost_base", "memguard", "uniboost"])
def test_effective_work_counts_what_the_first_admission_found(name: str) -> None:
    """What a request finds when it comes back from the host changes neither its work nor its lock."""
    others = 0
    for seed in range(40, 60):
        run, first = tiered(name, seed).instance(), dict[int, int]()
        while run.advance(steps=1) == PAUSED:
            state = run.engine.state
            found = np.asarray((state.found if name == "uniboost_base" else state.guard).found_tokens)
            for row in np.flatnonzero(found).tolist():
                now = int(run.buffers.table["cached_tokens"][row])
                assert first.setdefault(row, int(found[row])) == found[row]
                others += now != found[row] - 1
    assert others > 0


@pytest.mark.plain
@pytest.mark.parametrize("in_flight", [1, 2])
def test_an_aborted_request_gives_everything_back(in_flight: int) -> None:
    stored = 0
    for seed in range(40):
        case = tiered("sink", seed)
        rules = dataclasses.replace(case.config.rules, steps_in_flight=in_flight)
        run = dataclasses.replace(case, config=dataclasses.replace(case.config, rules=rules)).instance()
        while run.advance(steps=2) == PAUSED:
            there = np.flatnonzero(np.asarray(run.engine.blocks.stored.blocks))
            live = there if seed % 4 else np.flatnonzero(np.isin(run.buffers.table["phase"], (1, 2, 3)))
            if live.size and run.records.counters["aborted"][0] < 6:
                stored += bool(seed % 4)
                assert run.abort(int(live[seed % live.size]))
            invariants.check(run)
        assert (run.buffers.table["phase"] == DONE).all()
        assert run.engine.blocks.host.free_blocks[0] == run.engine.blocks.host.total_blocks[0]
        assert run.engine.blocks.pool.free[0] == run.buffers.core["total_blocks"][0]
    assert stored > 10


def _break_named(run: Instance) -> None:
    run.engine.blocks.nodes.users[int(run.engine.blocks.held[0, 0])] += 1


def _break_count(run: Instance) -> None:
    run.engine.blocks.holds.count[int(run.engine.blocks.owners.seat[0]) - 1] -= 1


def _break_free(run: Instance) -> None:
    run.engine.blocks.pool.free[0] += 1


def _break_owner(run: Instance) -> None:
    run.engine.blocks.owners.seat[1] = 1  # it waits


@pytest.mark.plain
@pytest.mark.parametrize("change", [_break_named, _break_count, _break_free, _break_owner])
def test_the_invariants_see_named_blocks(change: Any) -> None:
    run = instance(TWINS, prefix_cache=True)
    run.advance(steps=6)
    invariants.check(run)
    change(run)
    with pytest.raises(AssertionError):
        invariants.named_blocks(run)


def test_the_same_bytes_twice_and_without_the_compiler() -> None:
    found = digests("memguard", 0, 4, tiered)
    assert found == digests("memguard", 0, 4, tiered)
    assert found == elsewhere("memguard", "0", "4", "tiered", NUMBA_DISABLE_JIT="1")
