"""ProServe's block management in whole runs: times by hand, what must hold in random ones, and that all of them end."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tailrace.exports.chrome import write_trace
from tailrace.schedule.transfer import IN, OUT
from tailrace.sim import invariants
from tailrace.sim.instance import DRAINED, PAUSED
from tailrace.sim.presence import Presence
from tailrace.sim.run import Instance
from tailrace.sim.watch import watch
from tailrace.workloads.workload import Workload

from .cases import TICK, Case, managing
from .digest import digests, elsewhere
from .test_reference import PATIENCE
from .test_swap import instance

plain = pytest.mark.plain


def counts(run: Instance, *names: str) -> list[float]:
    swap = run.result().summary()["swap"]
    return [swap[name] for name in names]


@plain
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


@plain
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


@plain
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
    present = Presence(run)
    while run.advance(steps=1) == PAUSED and since < PATIENCE:
        steps, since = steps + 1, since + 1
        if run.progress() > reached:
            reached, since = run.progress(), 0
        present.look()
        if steps % 3 == 0:
            invariants.check(run)
    invariants.check(run)
    return run


@plain
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


@plain
@pytest.mark.parametrize("name", ["sink", "slide"])
def test_planning_is_pure(name: str) -> None:
    for seed in range(9100, 9106):
        run = managing(name, seed).instance()
        while run.advance(steps=5) == PAUSED and run.records.counters["steps"][0] < 400:
            invariants.plan_is_pure(run)


@plain
def test_a_trace_shows_what_is_computed_and_copied(tmp_path: Path) -> None:
    """As above: in step 4, from 12, the second goes, and the copy of its second block has not begun."""
    seen = watch(instance(swap_out="ahead", offload_blocks=1))
    copies = [(c.lane, c.row, c.blocks, c.begin_s / TICK, c.end_s / TICK, c.discarded) for c in seen.copies]
    assert copies[:5] == [
        (OUT, 0, 1, 4, 6, False),
        (OUT, 1, 1, 6, 8, False),
        (OUT, 1, 1, 12, 12, True),
        (OUT, 0, 1, 12, 14, False),
        (IN, 1, 1, 40, 44, False),
    ]
    assert [s.copy_wait_s / TICK for s in seen.steps] == [0] * 10 + [4] + [0] * 6
    write_trace(str(tmp_path / "t.json"), seen)
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    threads = {e["args"]["name"]: e["tid"] for e in events if e["name"] == "thread_name" and e["pid"] == 1}
    assert set(threads) == {"steps", "compute", "copies out", "copies in"}
    drawn = [e for e in events if e["ph"] == "X" and e["pid"] == 1]
    out = [(e["name"], e["args"]["blocks"]) for e in drawn if e["tid"] == threads["copies out"]]
    assert out[:4] == [("request 0", 1), ("request 1", 1), ("discarded", 1), ("request 0", 1)]
    computing = [e for e in drawn if e["tid"] == threads["compute"]]
    assert sum(e["dur"] for e in computing) == pytest.approx(17 * 4 * TICK * 1e6)


@plain
@pytest.mark.parametrize("how", [{"swap_out": "at_once"}, {"reload": "layerwise", "layers": 4}])
def test_copies_that_steps_wait_for_are_seen_too(how: dict[str, Any]) -> None:
    copies = [(c.lane, c.blocks, c.begin_s / TICK, c.end_s / TICK) for c in watch(instance(**how)).copies]
    assert copies == [(OUT, 2, 12, 16), (IN, 2, 44, 52)]


@plain
@pytest.mark.parametrize("beta", [0.0, 1.5])
@pytest.mark.parametrize("name", ["fcfs", "srpt", "slide"])
def test_with_little_memory_and_a_slow_link_everything_ends(name: str, beta: float) -> None:
    """Long requests, all parts on. A block takes 8 ticks to come back, so a step's budget has none or a few of the
    60 that a long request may have in host memory, and whoever is evicted loses what the link had no time for."""
    partial = 0
    for seed in range(8):
        rng = random.Random(f"tight {seed}")
        n = 24
        w = Workload.of(
            [rng.randrange(60) * TICK for _ in range(n)],
            [rng.choice([20, 40, 100, 200]) for _ in range(n)],
            [rng.choice([4, 30, 40]) for _ in range(n)],
            name="tight",
            class_names=("high", "low"),
            class_weights=(2.0, 1.0),
            class_id=[rng.randrange(2) for _ in range(n)],
            ttft_slo_s=[rng.choice([200, 2000]) * TICK for _ in range(n)],
            tpot_slo_s=[16 * TICK] * n,
        )
        tight: dict[str, Any] = {"kv_tokens": 256, "host_kv_tokens": rng.choice([256, 2000]), "block_tokens": 4}
        tight |= {"swap_in_gb_per_s": 64.0, "swap_out_gb_per_s": 128.0, "offload_blocks": 2, "layers": 4}
        how = {"swap_out": "ahead", "reload": "layerwise", "copy_budget": "adaptive", "partial_copy_beta": beta}
        run = instance(w, name, **tight, **how, max_seqs=16, steps_in_flight=rng.choice([1, 2]))
        assert run.advance(steps=40_000) == DRAINED
        assert run.records.counters["completed"][0] == n
        partial += int(run.engine.blocks.offload.partial[0])
    assert (partial > 0) == (name == "slide" and beta > 0)


def _put(part: str, column: str, value: int) -> Callable[[Instance], None]:
    def change(run: Instance) -> None:
        getattr(getattr(run.engine.blocks, part), column)[0] += value

    return change


@plain
@pytest.mark.parametrize(
    ("check", "change"),
    [
        (invariants.host_blocks, _put("host", "free_blocks", 1)),
        (invariants.ordered, _put("stored", "blocks", 3)),
        (invariants.ordered, _put("orders", "left_blocks", 1)),
        (invariants.ordered, _put("orders", "left_blocks", -1)),
        (invariants.ordered, _put("orders", "ready_s", 1)),
        (invariants.ordered, _put("offload", "queued", -1)),
        (invariants.ordered, _put("lanes", "until_s", 1)),
    ],
)
def test_the_invariants_see_what_is_ordered(
    check: Callable[[Instance], None], change: Callable[[Instance], None]
) -> None:
    """At 4 both have a block to be copied."""
    run = instance(swap_out="ahead", offload_blocks=1)
    run.advance(steps=1)
    assert run.engine.blocks.orders.left_blocks.tolist() == [1, 1]
    check(run)
    change(run)
    with pytest.raises(AssertionError):
        check(run)


@plain
def test_who_computes_on_kv_that_is_not_there_is_seen() -> None:
    run = instance(swap_out="ahead", offload_blocks=1)
    present = Presence(run)
    for _ in range(2):
        run.advance(steps=1)
        present.look()
    present.there[1] -= 1
    run.advance(steps=1)
    with pytest.raises(AssertionError, match="row 1 computes on 31 tokens and has 30"):
        present.look()


def test_compiled_it_does_what_python_does() -> None:
    found = digests("slide", 8000, 8012, managing)
    assert found == elsewhere("slide", "8000", "8012", "manage", NUMBA_DISABLE_JIT="1")
