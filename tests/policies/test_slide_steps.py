"""SlideBatching by hand: how a step is filled, and what is told of it (f)."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tailrace import params
from tailrace.config import engine
from tailrace.errors import UserError
from tailrace.latency import Latency
from tailrace.policies.slide import FINDINGS
from tailrace.registry import POLICIES
from tailrace.sim.invariants import plan_is_pure
from tailrace.sim.run import Instance
from tailrace.workloads.workload import Workload

from .slide_queue import SLOW, Queue, altered

pytestmark = pytest.mark.plain


def instance(prompts: list[int], ttft_s: list[float], rules: dict[str, Any] | None = None, **given: Any) -> Instance:
    """All arrive at 0, on an engine of 4,096 tokens a step, as `SLOW` as that."""
    n, cls = len(prompts), POLICIES.get("slide")
    w = Workload.of([0.0] * n, prompts, [4] * n, name="hand", ttft_slo_s=ttft_s, tpot_slo_s=[0.05] * n)
    config = engine("vllm_v1", {"token_budget": 4096, "kv_tokens": 65536, **(rules or {})})
    return Instance(w, cls, params.build(cls.Params, given, "slide"), config, Latency("slow", SLOW, None, ""))


def planned(run: Instance) -> list[tuple[int, int]]:
    """``[(row, tokens)]`` of the next step."""
    assert run.advance(steps=1) == 1
    items = run.engine.items
    return [(int(items.row[i]), int(items.tokens[i])) for i in range(int(run.engine.plan.items[0]))]


def test_the_step_is_filled_up_to_the_budget_by_the_largest_chunk() -> None:
    """Due in 60.5 ms, 10 ms of them the constant: the first takes 30 ms and the second what is left."""
    assert planned(instance([30, 500], [0.0605, 9.0])) == [(0, 30), (1, 20)]
    assert planned(instance([30, 500], [0.0605, 9.0], latency_budget=False)) == [(0, 30), (1, 500)]


@pytest.mark.parametrize(
    ("given", "tokens"),
    [
        ({"preset": "tailrace"}, [(0, 30), (1, 20)]),
        ({"preset": "xllm"}, [(0, 30)]),
        ({"preset": "xllm", "min_last_chunk": 0}, [(0, 30), (1, 20)]),
        ({"preset": "xllm", "misfit": "skip"}, [(0, 30), (2, 15)]),
    ],
)
def test_xllm_ends_the_step_on_a_small_last_chunk(given: dict[str, Any], tokens: list[tuple[int, int]]) -> None:
    assert planned(instance([30, 500, 15], [0.0605, 9.0, 99.0], **given)) == tokens


def test_an_engine_too_small_for_the_last_chunk_is_refused() -> None:
    with pytest.raises(UserError, match="token_budget must be above its min_last_chunk=50"):
        instance([30], [1.0], {"token_budget": 50}, preset="xllm")


@pytest.mark.parametrize(("displace", "evicted"), [("anybody", [0]), ("prefills", []), ("preset", []), ("nobody", [])])
def test_who_may_be_displaced(displace: str, evicted: list[int]) -> None:
    """One place, held by a decode with time to spare; an urgent prompt comes."""
    run = instance([20, 20], [9.0, 9.0], {"max_seqs": 1}, displace=displace, coeff=100.0)
    planned(run)
    run.buffers.table["tpot_slo_s"][0] = 9e9
    run.advance(steps=1)
    assert run.engine.seats.evicted[: int(run.engine.plan.evicted[0])].tolist() == evicted


def test_a_step_planned_twice_changes_nothing_and_counts_once() -> None:
    run = instance([200, 500, 30, 80], [0.3, 9.0, 0.1, 0.2])
    while run.advance(steps=1) == 1:
        plan_is_pure(run)
    found = run.policy.findings(run.engine.scratch)
    assert sum(found[name] for name in FINDINGS[:5]) == run.records.counters["steps"][0]


# ── what became of the queue ─────────────────────────────────────────────────────────


def regime(queue: Queue, now: float) -> str:
    """How the latest step was counted."""
    queue.ranked(now)
    (name,) = [name for name, count in zip(FINDINGS[:5], queue.scratch.counts[0], strict=False) if count]
    return name


def test_the_order_that_decided_is_that_of_the_group_where_the_step_ends() -> None:
    queue = Queue(20, 40, 300)
    queue.records["ttft_slo_s"] = [0.1, 0.5, 3.0]
    assert regime(queue, 0.0) == "deadline_and_density_steps"  # one is urgent, and there is room for more
    assert regime(altered(queue, order="deadline"), 0.0) == "deadline_steps"
    assert regime(altered(queue, order="density"), 0.0) == "density_steps"
    queue.records["ttft_slo_s"] = 3.0
    assert regime(altered(queue), 0.0) == "all_fit_steps"
    queue.records["ttft_slo_s"] = math.inf
    assert regime(queue, 0.0) == "unbounded_steps"
    assert queue.policy.findings(queue.scratch)["request_steps"] == 3  # planned five times, at one instant


def test_findings_add_up_over_steps() -> None:
    queue = Queue(300, 100, 100, hopeless="last", t_min="all")
    queue.records["ttft_slo_s"][1:] = [1.1, 9.0]
    queue.decode(2, 1, 0.7)
    for now in (0.8, 0.85):
        queue.ranked(now)
    found = queue.policy.findings(queue.scratch)
    assert found["request_steps"] == 6
    assert found["hopeless_request_steps"] == 2
    assert found["urgent_request_steps"] == 4
    assert found["density_steps"] == 2
