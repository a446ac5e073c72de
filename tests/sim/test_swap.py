"""Preemption by swap: times by hand, full host memory, KV left on the device, aborts, and no work done twice."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tailrace.config import engine
from tailrace.latency import Latency, PiecewiseParams
from tailrace.registry import POLICIES
from tailrace.sim import invariants
from tailrace.sim.instance import DRAINED, PAUSED
from tailrace.sim.run import Instance
from tailrace.table import DONE, WAITING
from tailrace.workloads.workload import Workload

from .cases import TICK, Case, parking, swapping
from .digest import digests, elsewhere
from .test_invariants import walk

LATENCY = Latency("ticks", PiecewiseParams(constant_s=4 * TICK, per_token_s=0.0), None, "")
SETTINGS: dict[str, Any] = {
    "token_budget": 64,
    "max_seqs": 8,
    "kv_tokens": 64,
    "evict": "swap",
    "host_kv_tokens": 64,
    "kv_bytes_per_token": 125_000_000,
    "swap_out_gb_per_s": 1024.0,
    "swap_in_gb_per_s": 512.0,
}
"""Four blocks here and four there; a block of 16 tokens takes 2 ticks out and 4 in."""
TWO = Workload.of([0.0, 0.0], [30, 30], [10, 10], name="two")


def instance(workload: Workload = TWO, name: str = "fcfs", **overrides: Any) -> Instance:
    policy = POLICIES.get(name)
    assert policy.Params is not None
    return Instance(workload, policy, policy.Params(), engine("vllm_v1", {**SETTINGS, **overrides}), LATENCY)


def roomy(name: str, seed: int, make: Callable[[str, int], Case] = swapping) -> Case:
    """A random case whose host memory is never full."""
    case = make(name, seed)
    case.config = dataclasses.replace(case.config, host_kv_tokens=10_000)
    return case


def test_two_requests_by_hand() -> None:
    """Both fit until step 4 (at 12 ticks), when the first needs a third block: the second goes out.

    Its 32 tokens' two blocks take 4 ticks out. The first ends with step 10, at 12 + 4 + 7·4 = 44. Then
    the second needs 3 blocks: 8 ticks for its two to come back, and 7 steps for its 7 last tokens.
    """
    run = instance()
    assert run.advance() == DRAINED
    result = run.result()
    assert (result.requests.finish_s / TICK).tolist() == [44, 80]
    assert (result.requests.preempted_s / TICK).tolist() == [0, 32]
    assert (result.requests.gap_max_s / TICK).tolist() == [8, 44]
    assert result.requests.recomputed_tokens.tolist() == [0, 0]
    assert result.requests.preemptions.tolist() == [0, 1]
    summary = result.summary()
    assert summary["swap"] == {
        "swapped": 1,
        "host_full": 0,
        "parked": 0,
        "kept": 0,
        "swapped_out_tokens": 32,
        "swapped_in_tokens": 32,
        "swapped_out_bytes": 32 * 125_000_000,
        "swapped_in_bytes": 32 * 125_000_000,
        "swap_s": 12 * TICK,
        "swap_tax": 12 / 80,
        "most_host_kv_tokens": 32,
        "out_busy_s": 4 * TICK,
        "in_busy_s": 8 * TICK,
    }
    assert summary["recompute_tax"] == 0
    assert {name: result.meta["engine"][name] for name in SETTINGS if "swap_" in name or "host" in name} == {
        "host_kv_tokens": 64,
        "swap_out_gb_per_s": 1024.0,
        "swap_in_gb_per_s": 512.0,
    }


def test_where_host_memory_is_full_it_is_recomputed() -> None:
    """The second's two blocks do not fit one: no copies, and its 33 known tokens are computed again at once."""
    run = instance(host_kv_tokens=16)
    assert run.advance() == DRAINED
    result = run.result()
    assert (result.requests.finish_s / TICK).tolist() == [40, 68]
    assert result.requests.recomputed_tokens.tolist() == [0, 32]
    assert result.requests.preempted_s[1] == (40 - 12) * TICK
    swap = result.summary()["swap"]
    assert (swap["swapped"], swap["host_full"], swap["swapped_out_bytes"], swap["swap_s"]) == (0, 1, 0, 0)


def test_a_prefill_goes_on_where_it_was_put_out() -> None:
    """A short prompt displaces a long one in the middle of its prefill, which keeps the 32 tokens it has."""
    workload = Workload.of([0.0, 5 * TICK], [60, 10], [2, 2], name="late", predicted_output_tokens=[2, 2])
    run = instance(workload, "sjf", token_budget=16, max_seqs=1)
    assert run.advance() == DRAINED
    assert run.buffers.table["preemptions"].tolist() == [1, 0]
    assert run.records.out["recomputed_tokens"].tolist() == [0, 0]
    assert run.records.counters["step_tokens"][0] == 61 + 11
    assert run.result().counters["swapped_out_tokens"] == 32


def displacing(prompt: int, output: int, **overrides: Any) -> Instance:
    """One place. A prompt of 60 tokens has 32 in two blocks when, at 8 ticks, a shorter one displaces it."""
    workload = Workload.of([0.0, 5 * TICK], [60, prompt], [2, output], name="late", predicted_output_tokens=[2, output])
    return instance(workload, "sjf", **{"token_budget": 16, "max_seqs": 1, "swap_out": "when_needed", **overrides})


def copies(run: Instance) -> tuple[float, ...]:
    swap = run.result().summary()["swap"]
    return tuple(swap[name] for name in ("parked", "kept", "swapped", "swapped_out_tokens", "swapped_in_tokens"))


def test_who_is_displaced_with_room_for_both_is_not_copied() -> None:
    """The short takes a block of the other two, and two steps; the long goes on at 16 with 28 tokens in two steps."""
    run = displacing(10, 2)
    assert run.advance() == DRAINED
    assert (run.result().requests.finish_s / TICK).tolist() == [28, 16]
    assert copies(run) == (1, 1, 0, 0, 0)
    assert run.result().summary()["swap"]["swap_s"] == 0
    assert run.result().summary()["swap"]["most_host_kv_tokens"] == 32
    again = displacing(10, 2, swap_out="at_once")
    assert again.advance() == DRAINED
    assert (again.result().requests.finish_s / TICK).tolist() == [28 + 4 + 8, 16 + 4]
    assert copies(again) == (0, 0, 1, 32, 32)


def test_kv_is_copied_out_in_the_step_that_needs_its_blocks() -> None:
    """The short needs a third of four blocks for its last step, at 24: 4 ticks, and 8 to come back at 32."""
    run = displacing(30, 4)
    run.advance(steps=6)
    assert copies(run) == (1, 0, 0, 0, 0)
    run.advance(steps=1)
    assert copies(run) == (1, 0, 1, 32, 0)
    assert run.advance() == DRAINED
    assert (run.result().requests.finish_s / TICK).tolist() == [52, 32]
    assert copies(run) == (1, 0, 1, 32, 32)
    assert run.result().summary()["swap"]["swap_s"] == 12 * TICK


def test_who_is_preempted_for_its_blocks_is_copied_as_at_once() -> None:
    run = instance(swap_out="when_needed")
    assert run.advance() == DRAINED
    assert (run.result().requests.finish_s / TICK).tolist() == [44, 80]
    assert copies(run) == (1, 0, 1, 32, 32)


def test_who_is_aborted_while_its_kv_is_on_the_device_leaves_nothing_behind() -> None:
    run = displacing(30, 4)
    run.advance(steps=4)
    assert run.abort(0)
    invariants.check(run)
    assert run.advance() == DRAINED
    assert run.result().requests.finish_s[1] == 28 * TICK
    assert copies(run) == (1, 0, 0, 0, 0)


@pytest.mark.parametrize("make", [swapping, parking])
@pytest.mark.parametrize("name", ["fcfs", "srpt", "qba", "sink"])
def test_invariants_hold_and_planning_is_pure(name: str, make: Callable[[str, int], Case]) -> None:
    moved = 0
    for seed in range(20, 30):
        run = walk(make(name, seed), every=1 + seed % 2, pure=seed % 2 == 0)
        moved += int(run.engine.blocks.lanes.blocks.sum())
    assert moved > 0


@pytest.mark.parametrize("make", [swapping, parking])
@pytest.mark.parametrize("name", ["fcfs", "srpt", "qba", "sink"])
def test_with_room_on_the_host_nothing_is_computed_twice(name: str, make: Callable[[str, int], Case]) -> None:
    """So every step gets further, and requests cannot preempt each other for ever."""
    swapped = 0
    for seed in range(100, 130):
        run = roomy(name, seed, make).instance()
        assert run.advance() == DRAINED
        table, done = run.buffers.table, run.records.out["reason"] == 1
        last = 1 if run.rules.prefill_emits else 0
        work = table["prompt_tokens"][done] + run.workload.output_tokens[done] - last
        assert run.records.counters["step_tokens"][0] == work.sum()
        assert run.records.counters["recomputed_tokens"][0] == 0
        host = run.engine.blocks.host
        assert host.free_blocks[0] == host.total_blocks[0]
        swapped += int(host.swapped[0])
    assert swapped > 10


def test_what_preempts_itself_for_ever_by_recompute_ends_by_swap() -> None:
    case = roomy("fcfs", 8)
    recompute = dataclasses.replace(case.config.rules, evict="recompute")
    again = dataclasses.replace(case, config=dataclasses.replace(case.config, rules=recompute)).instance()
    assert again.advance(steps=2000) == PAUSED
    reached = again.progress()
    assert again.advance(steps=200) == PAUSED
    assert again.progress() == reached
    assert case.instance().advance(steps=2000) == DRAINED


@pytest.mark.parametrize("make", [swapping, parking])
@pytest.mark.parametrize("in_flight", [1, 2])
def test_an_aborted_request_gives_everything_back(in_flight: int, make: Callable[..., Case]) -> None:
    """Whatever state it is in: not begun, running, swapped out in its prefill or while it decodes."""
    seen: set[tuple[int, bool]] = set()
    for seed in range(40):
        run, aborted = make("sink", seed, (in_flight,)).instance(), 0
        while run.advance(steps=3) == PAUSED and run.records.counters["steps"][0] < 2000:
            stored, table = np.asarray(run.engine.blocks.stored.blocks), run.buffers.table
            rows = np.flatnonzero(stored) if stored.any() else np.flatnonzero(np.isin(table["phase"], (1, 2, 3)))
            if rows.size and aborted < 6:
                row = int(rows[seed % rows.size])
                seen.add((int(table["phase"][row]) if not stored[row] else -1, _had_decoded(run, row)))
                assert run.abort(row)
                assert not run.abort(row)
                assert stored[row] == 0
                aborted += 1
            invariants.check(run)
        assert (run.buffers.table["phase"] == DONE).all()
        host = run.engine.blocks.host
        assert host.free_blocks[0] == host.total_blocks[0]
        assert (host.parked_rows[0], host.parked_blocks[0]) == (0, 0)
        assert run.buffers.core["free_blocks"][0] == run.buffers.core["total_blocks"][0]
        assert (run.records.out["preempted_s"] >= 0).all()
    assert {(-1, False), (-1, True), (WAITING, False)} <= seen


def _had_decoded(run: Instance, row: int) -> bool:
    return bool(run.buffers.table["computed_tokens"][row] >= run.buffers.rows["target_tokens"][row] > 0)


def test_the_time_lost_ends_when_a_waiting_request_is_aborted() -> None:
    run = instance()
    run.advance(steps=6)
    assert run.buffers.table["phase"][1] == WAITING
    assert run.abort(1)
    assert run.records.out["preempted_s"][1] == run.buffers.core["clock_s"][0] - 12 * TICK


def _break(part: str, column: str, by: int) -> Callable[[Instance], None]:
    def change(run: Instance) -> None:
        getattr(getattr(run.engine.blocks, part), column)[0] += by

    return change


@pytest.mark.parametrize(
    ("check", "change"),
    [
        (invariants.host_blocks, _break("host", "free_blocks", 1)),
        (invariants.host_blocks, _break("host", "most_blocks", -3)),
        (invariants.host_blocks, _break("lanes", "asked", 1)),
        (invariants.host_blocks, _break("lanes", "blocks", -2)),
        (invariants.host_blocks, _break("lanes", "until_s", 1)),
        (invariants.host_blocks, _break("stored", "blocks", 1)),  # the first runs
        (invariants.parked, _break("host", "parked", 1)),
        (invariants.parked, _break("host", "parked_rows", 1)),
        (invariants.parked, _break("host", "parked_blocks", 1)),
        (invariants.parked, _break("stored", "place", 1)),
        (invariants.blocks, lambda run: run.buffers.table["kv_blocks"].__setitem__(1, 1)),
        (invariants.blocks, lambda run: run.buffers.table["computed_tokens"].__setitem__(1, 33)),
        (invariants.tokens, lambda run: run.buffers.table["computed_tokens"].__setitem__(1, 31)),
    ],
)
def test_the_invariants_see_host_memory(check: Callable[[Instance], None], change: Callable[[Instance], None]) -> None:
    run = instance()
    run.advance(steps=6)
    check(run)
    change(run)
    with pytest.raises(AssertionError):
        check(run)


@pytest.mark.parametrize(
    "change",
    [
        _break("host", "parked_blocks", -1),
        _break("host", "kept", 1),
        _break("host", "swapped", 1),
        _break("stored", "place", 1),
        lambda run: run.buffers.core["free_blocks"].__setitem__(0, 1),  # the two that are parked are not there
    ],
)
def test_the_invariants_see_what_is_parked(change: Callable[[Instance], None]) -> None:
    run = displacing(30, 4)
    run.advance(steps=4)
    assert run.engine.blocks.host.parked_rows[0] == 1
    invariants.check(run)
    change(run)
    with pytest.raises(AssertionError):
        invariants.parked(run)


@pytest.mark.parametrize(("make", "said"), [(swapping, "swap"), (parking, "park")])
def test_the_same_bytes_twice_and_without_the_compiler(make: Callable[[str, int], Case], said: str) -> None:
    names = ("qba", "sink")
    found = [line for name in names for line in digests(name, 0, 4, make)]
    assert found == [line for name in names for line in digests(name, 0, 4, make)]
    assert found == elsewhere(",".join(names), "0", "4", said, NUMBA_DISABLE_JIT="1")
