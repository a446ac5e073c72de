"""ProServe's block management in whole runs: times by hand, what must hold in random ones, and that all of them end."""

from __future__ import annotations

import dataclasses

import pytest

from tailrace.sim import invariants
from tailrace.sim.instance import DRAINED, PAUSED
from tailrace.sim.run import Instance

from .cases import TICK, Case, managing
from .test_reference import PATIENCE
from .test_swap import instance

pytestmark = pytest.mark.plain


def counts(run: Instance, *names: str) -> list[float]:
    swap = run.result().summary()["swap"]
    return [swap[name] for name in names]


def test_who_is_preempted_keeps_what_was_copied_while_it_ran() -> None:
    """Both have a full block of 16 with step 1, of 4 ticks; a copy takes 2, one after the other, so both are there
    at 8. At 12 the first needs a third block: the second goes with 32 tokens, of which a second block was ordered in
    step 3, ready at 12 like the first's. It waits with 16 and computes 17 more once the first is done, with its
    step 10, at 12 + 7·4 = 40: there 4 ticks for a block to come back, and 4 for the step, as for the next 5.
    """
    run = instance(swap_out="ahead", offload_blocks=1)
    run.advance(steps=4)
    assert run.buffers.table["computed_tokens"].tolist() == [33, 16]
    invariants.check(run)
    assert run.advance() == DRAINED
    result = run.result()
    assert (result.requests.finish_s / TICK).tolist() == [40, 40 + 4 + 7 * 4]
    assert result.requests.recomputed_tokens.tolist() == [0, 16]
    assert counts(run, "offloads", "discarded_blocks", "not_offloaded_tokens") == [5, 1, 16]
    assert counts(run, "swapped", "host_full") == [1, 0]
    assert counts(run, "swapped_out_tokens", "swapped_in_tokens", "swap_s") == [64, 16, 4 * TICK]
    assert counts(run, "out_busy_s", "in_busy_s") == [8 * TICK, 4 * TICK]


def test_copies_wait_for_n_off_blocks_and_for_host_memory() -> None:
    late = instance(swap_out="ahead", offload_blocks=2)
    late.advance(steps=4)
    assert late.buffers.table["computed_tokens"].tolist() == [33, 0]
    assert late.advance() == DRAINED
    assert counts(late, "offloads", "discarded_blocks", "not_offloaded_tokens", "swapped") == [3, 2, 32, 0]
    small = instance(swap_out="ahead", offload_blocks=1, host_kv_tokens=16)
    small.advance(steps=4)
    assert small.buffers.table["computed_tokens"].tolist() == [33, 0]
    assert counts(small, "offloads", "most_host_kv_tokens") == [1, 16]
    assert counts(small, "offloads_refused")[0] > 0


@pytest.mark.parametrize(("layers", "ends"), [(1, 80), (2, 78), (4, 77), (8, 76.5)])
def test_layers_compute_while_the_next_come(layers: int, ends: float) -> None:
    """As in test_swap, where the second's two blocks take T = 8 ticks to come back at 44 and C = 4: T + C/L."""
    run = instance(reload="layerwise", layers=layers)
    assert run.advance() == DRAINED
    assert (run.result().requests.finish_s / TICK).tolist() == [44, ends]
    assert counts(run, "swap_s") == [(12 - 80 + ends) * TICK]


def walk(case: Case) -> Instance:
    """Run to the end, or until nobody gets further, looking after every step."""
    run, steps, since, reached = case.instance(), 0, 0, -1
    present = invariants.Presence(run)
    while run.advance(steps=1) == PAUSED and since < PATIENCE:
        steps, since = steps + 1, since + 1
        if run.progress() > reached:
            reached, since = run.progress(), 0
        present.look()
        if steps % 3 == 0:
            invariants.check(run)
    invariants.check(run)
    return run


@pytest.mark.parametrize("name", ["fcfs", "sink", "slide"])
def test_no_block_is_lost_and_none_computed_on_that_is_not_there(name: str) -> None:
    copied = 0
    for seed in range(9000, 9020):
        case = managing(name, seed)
        if case.config.rules.swap_out == "when_needed":  # parked KV is on the device, and no copy says so
            rules = dataclasses.replace(case.config.rules, swap_out="ahead")
            case.config = dataclasses.replace(case.config, rules=rules)
        run = walk(case)
        copied += int(run.engine.blocks.lanes.blocks.sum())
        host = run.engine.blocks.host
        ended = run.buffers.core["waiting"][0] + run.buffers.core["running"][0] == 0
        assert not ended or host.free_blocks[0] == host.total_blocks[0]
    assert copied > 500


@pytest.mark.parametrize("name", ["sink", "slide"])
def test_planning_is_pure(name: str) -> None:
    for seed in range(9100, 9106):
        run = managing(name, seed).instance()
        while run.advance(steps=5) == PAUSED and run.records.counters["steps"][0] < 400:
            invariants.plan_is_pure(run)
