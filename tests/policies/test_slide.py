"""SlideBatching by hand, stage by stage (a to f)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tailrace import hooks, params
from tailrace.config import engine
from tailrace.errors import UserError
from tailrace.latency import Latency, PiecewiseParams
from tailrace.policies.slide import FINDINGS, _rank
from tailrace.registry import POLICIES
from tailrace.sim.invariants import plan_is_pure
from tailrace.sim.run import Instance
from tailrace.table import DECODE, PREFILL
from tailrace.workloads.workload import Workload

from .hand import Hand

pytestmark = pytest.mark.plain

STARVING, URGENT, PROMOTED, LATER_URGENT, NORMAL, HOPELESS = range(6)
SLOW = PiecewiseParams(constant_s=0.01, per_token_s=0.001, knee_tokens=0)
"""10 ms a step and 1 ms a token, in prefill and decode alike."""


class Queue(Hand):
    """Requests that all arrived at 0, with TTFT_SLO 1 s and TPOT_SLO 50 ms."""

    cost = SLOW

    def __init__(self, *prompts: int, **given: Any) -> None:
        super().__init__("slide", len(prompts), list(prompts), **given)
        self.records["arrival_s"] = self.state.served.at_s[:] = 0.0
        self.records["weight"], self.records["ttft_slo_s"], self.records["tpot_slo_s"] = 1.0, 1.0, 0.05
        self.records["first_token_s"] = math.nan

    def decode(self, row: int, made: int, first_s: float) -> None:
        """``made`` output tokens are delivered, the first one at ``first_s``."""
        record = self.records[row : row + 1]
        record["phase"], record["generated_tokens"], record["first_token_s"] = DECODE, made, first_s
        record["computed_tokens"] = record["prompt_tokens"] + made - 1

    def ranked(self, now: float) -> list[tuple[int, Any]]:
        """(tier, key) of each row in a step at ``now``."""
        live = np.arange(len(self.records))
        hooks.prepare(self.table, live, now, self.state, self.scratch, self.cost, self.params)
        return [self.tier_and_key(row, now) for row in range(len(live))]

    def tiers(self, now: float) -> list[int]:
        return [tier for tier, _ in self.ranked(now)]

    def load(self, now: float) -> tuple[Any, Any]:
        """``(t_budget, φ)``"""
        self.ranked(now)
        return float(self.scratch.load.budget_s[0]), float(self.scratch.load.drain_s[0])

    def seconds(self, now: float) -> float:
        """What a step may take beside the constant."""
        self.ranked(now)
        live, args = np.arange(len(self.records)), (self.state, self.scratch, self.cost, self.params)
        return float(hooks.step_limits(self.table, live, now, *args)[2])


# ── a. work and deadlines ────────────────────────────────────────────────────────────


def test_work_is_the_prefill_that_is_left_or_one_decode() -> None:
    queue = Queue(100, 100, 100, 100)
    queue.records["phase"][1], queue.records["computed_tokens"][1] = PREFILL, 60
    queue.decode(2, 5, 0.1)
    queue.records["generated_tokens"][3] = 20  # preempted by recompute: its output is computed again too
    queue.records["first_token_s"][3] = 0.1
    queue.ranked(0.2)
    assert queue.scratch.ranks.exec_s.tolist() == pytest.approx([0.1, 0.04, 0.001, 0.12])


def test_a_decode_swapped_out_has_a_decode_left() -> None:
    queue = Queue(100)
    queue.decode(0, 5, 0.1)
    queue.records["phase"] = 1
    queue.ranked(0.2)
    assert queue.scratch.ranks.exec_s[0] == pytest.approx(0.001)


@pytest.mark.parametrize(("form", "due"), [("actual", 0.3 + 4 * 0.05), ("tdg", 1.0 + 4 * 0.05)])
def test_the_next_token_is_due_after_the_first_one_came_or_was_due(form: str, due: float) -> None:
    queue = Queue(100, 100, decode_deadline=form)
    queue.decode(1, 4, 0.3)
    queue.ranked(0.25)
    assert queue.scratch.ranks.remain_s.tolist() == pytest.approx([0.75, due - 0.25])


# ── b. the step's budget ─────────────────────────────────────────────────────────────


def test_the_budget_is_the_smallest_remain_but_at_least_eta() -> None:
    queue = Queue(10, 10)
    assert queue.load(0.2)[0] == pytest.approx(0.8)
    queue.decode(1, 1, 0.2)
    assert queue.load(0.2)[0] == pytest.approx(0.05)
    assert queue.load(0.23)[0] == pytest.approx(0.9 * 0.05)
    assert queue.seconds(0.23) == pytest.approx(0.9 * 0.05 - 0.01)


@pytest.mark.parametrize(
    ("given", "share"),
    [({}, 0.9), ({"preset": "paper"}, 0.65), ({"preset": "xllm"}, 0.65), ({"preset": "xllm", "eta": 0.4}, 0.4)],
)
def test_eta_is_the_presets_unless_given(given: dict[str, Any], share: float) -> None:
    queue = Queue(10, 10, **given, t_min="all")
    queue.records["tpot_slo_s"][1] = 0.08  # the smallest counts
    assert queue.load(3.0)[0] == pytest.approx(share * 0.05)


@pytest.mark.parametrize("preset", ["paper", "xllm", "tailrace"])
def test_whose_remain_bounds_the_step(preset: str) -> None:
    """A prompt of 300 tokens can make it with 0.31 s left, and not with 0.2 s."""
    queue = Queue(300, 10, preset=preset)
    queue.records["ttft_slo_s"][1] = 1.4
    assert queue.load(0.6)[0] == pytest.approx(0.4)
    assert queue.load(0.8)[0] == pytest.approx(0.2 if preset == "paper" else 0.6)


def test_with_nobody_who_can_make_it_xllm_leaves_the_step_unbounded() -> None:
    queue = Queue(30, 10, preset="xllm")
    assert queue.load(2.0) == (math.inf, pytest.approx(0.04))
    assert math.isinf(queue.seconds(2.0))


def test_with_nobody_who_can_make_it_eta_bounds_our_step() -> None:
    queue = Queue(30, 10)
    assert queue.load(2.0)[0] == pytest.approx(0.9 * 0.05)
    assert math.isinf(Queue.load(_with(queue, all_late="unbounded"), 2.0)[0])
    queue.records["ttft_slo_s"] = math.inf  # nobody is late then
    assert math.isinf(queue.load(2.0)[0])


def test_a_budget_below_the_constant_binds_nothing() -> None:
    queue = Queue(30, 10, eta=0.1)
    assert queue.load(2.0) == (math.inf, pytest.approx(0.04))
    queue.records["tpot_slo_s"] = math.inf  # nor is there a least budget then
    assert math.isinf(queue.load(2.0)[0])


def test_without_a_latency_budget_only_the_engine_bounds_the_step() -> None:
    queue = Queue(30, 10, latency_budget=False)
    assert math.isinf(queue.seconds(0.5))
    assert queue.load(0.5) == (pytest.approx(0.5), pytest.approx(0.04 * 0.5 / 0.49))


# ── c. and d. the boundary, and the order on its sides ───────────────────────────────


def test_urgent_is_who_has_less_left_than_the_queue_takes_to_drain() -> None:
    """S = 0.6 s and t_budget = 0.5 s at 0.5 s: φ = 0.6·0.5/0.49 = 0.612 s."""
    queue = Queue(200, 200, 200)
    queue.records["ttft_slo_s"] = [1.0, 1.11, 1.12]
    assert queue.load(0.5)[1] == pytest.approx(0.612, abs=3e-4)
    assert queue.tiers(0.5) == [URGENT, URGENT, NORMAL]
    assert Queue.tiers(_with(queue, coeff=0.9), 0.5) == [URGENT, NORMAL, NORMAL]
    assert Queue.tiers(_with(queue, order="density"), 0.5) == [URGENT] * 3
    assert Queue.tiers(_with(queue, order="deadline"), 0.5) == [NORMAL] * 3


def _with(queue: Queue, **given: Any) -> Queue:
    """The same queue under other options."""
    queue.params = params.build(queue.policy.Params, given, "slide")
    return queue


def test_urgent_by_density_and_normal_by_remain() -> None:
    queue = Queue(400, 100, 100, 40, coeff=1.0)
    queue.records["weight"] = [1.0, 1.0, 2.0, 1.0]
    queue.records["ttft_slo_s"] = [1.0, 1.0, 1.1, 1.05]
    tiers, keys = zip(*queue.ranked(0.5), strict=True)
    assert tiers == (URGENT,) * 4
    assert keys == pytest.approx((-2.5, -10.0, -20.0, -25.0))
    tiers, keys = zip(*queue.ranked(0.0), strict=True)
    assert tiers == (NORMAL,) * 4
    assert keys == pytest.approx((1.0, 1.0, 1.1, 1.05))


def test_a_first_tokens_worth_is_an_option() -> None:
    queue = Queue(100, 100, order="density", prefill_weight=5.0)
    queue.decode(1, 3, 0.1)
    assert [key for _, key in queue.ranked(0.2)] == pytest.approx([-50.0, -1000.0])


@pytest.mark.parametrize(
    ("given", "tier"),
    [({}, URGENT), ({"preset": "xllm"}, LATER_URGENT), ({"preset": "xllm", "urgent_decodes_first": "no"}, URGENT)],
)
def test_urgent_decodes_before_urgent_prefills(given: dict[str, Any], tier: int) -> None:
    queue = Queue(300, 300, 300, **given)
    queue.decode(2, 1, 0.4)
    assert queue.tiers(0.44) == [tier, tier, URGENT]


@pytest.mark.parametrize(
    ("given", "tier"),
    [
        ({}, HOPELESS),
        ({"preset": "paper"}, URGENT),
        ({"preset": "xllm"}, LATER_URGENT),
        ({"preset": "paper", "hopeless": "last"}, HOPELESS),
        ({"hopeless": "ranked"}, URGENT),
    ],
)
def test_prefills_that_cannot_make_it_go_last(given: dict[str, Any], tier: int) -> None:
    """300 tokens take 0.31 s with the constant: hopeless from 0.69 s on. A late decode never is."""
    queue = Queue(300, 10, **given, eta=0.5)
    queue.decode(1, 1, 0.1)
    queue.records["first_token_s"][1] = 0.01
    assert queue.tiers(0.68)[0] != HOPELESS
    assert queue.tiers(0.70) == [tier, URGENT]


def test_the_hopeless_go_by_density() -> None:
    queue = Queue(300, 100, 200)
    queue.records["weight"][2] = 4.0
    assert queue.ranked(5.0) == [(HOPELESS, pytest.approx(-w)) for w in (1 / 0.3, 10.0, 20.0)]


def test_a_recompute_is_after_its_next_token() -> None:
    """It has made its first token: never hopeless, and what it does is a prefill."""
    queue = Queue(100, preset="xllm", hopeless="last")
    queue.records["generated_tokens"], queue.records["first_token_s"] = 3, 0.1
    assert queue.tiers(5.0) == [LATER_URGENT]


def test_requests_without_objectives_go_by_arrival_behind_those_with_some() -> None:
    queue = Queue(100, 100, 300, 100)
    queue.records["ttft_slo_s"][:2] = queue.records["tpot_slo_s"][:2] = math.inf
    queue.decode(1, 7, 0.1)
    for order in ("slide", "density", "deadline"):
        tiers, keys = zip(*_with(queue, order=order).ranked(0.75), strict=True)
        assert (tiers[:2], keys[:2]) == ((NORMAL, NORMAL), (math.inf, math.inf))
        assert (tiers[2], tiers[3]) == (HOPELESS, NORMAL if order == "deadline" else URGENT)


# ── e. starvation ────────────────────────────────────────────────────────────────────


def test_the_starving_go_first_in_their_share_of_steps() -> None:
    """A prefill waits since it came, whatever chunks it got; a decode since it was served."""
    queue = Queue(100, 100, 100, starve_s=2.0, starve_share=0.5, promote="head")
    queue.records["ttft_slo_s"] = 100.0
    queue.progress(0, 10, 4.0)
    queue.records["arrival_s"][2] = queue.state.served.at_s[2] = 3.0
    queue.decode(1, 5, 0.1)
    queue.state.served.at_s[1] = 0.5
    seen = []
    for _ in range(4):
        seen.append(queue.tiers(4.5))
        queue.step([2], 4.5)
        queue.state.served.at_s[2] = 3.0
    assert seen[0] == [NORMAL, URGENT, NORMAL]
    assert seen[1] == [STARVING, STARVING, NORMAL]
    assert seen[2:] == seen[:2]
    assert [key for _, key in queue.ranked(4.5)][:2] != [0.0, 0.5]
    queue.step([2], 4.5)
    assert [key for _, key in queue.ranked(4.5)][:2] == [0.0, 0.5]


def test_a_starving_prefill_goes_behind_urgent_decodes_and_before_all_prefills() -> None:
    queue = Queue(100, 50, 100, starve_s=2.0, starve_share=1.0)
    queue.records["ttft_slo_s"][0] = 100.0
    queue.records["arrival_s"][1] = 4.0
    queue.decode(2, 5, 0.1)
    queue.state.served.at_s[2] = 4.4
    assert queue.tiers(4.9) == [PROMOTED, LATER_URGENT, URGENT]


def test_who_nearly_starves_keeps_its_kv_and_else_the_tail_of_the_order_yields_first() -> None:
    """Half of 2 s: the decode was served at 4, the prefills came at 0, 3.5 and 3.9."""
    queue = Queue(100, 50, 60, 70, starve_s=2.0, starve_share=0.0, protect_share=0.5)
    queue.records["arrival_s"] = 0.0, 3.5, 0.0, 3.9
    queue.decode(2, 5, 0.1)
    queue.state.served.at_s[2] = 4.0
    ranked, args = queue.ranked(4.6), (queue.state, queue.scratch, queue.cost, queue.params)
    said = [hooks.victim(queue.table, row, 4.6, *args) for row in range(4)]
    assert [protected for protected, _ in said] == [True, True, False, False]
    last_first = sorted(range(4), key=lambda row: ranked[row], reverse=True)
    assert sorted(range(4), key=lambda row: said[row][1]) == last_first
    assert POLICIES.get("slide").rules(queue.params)["victim"] == "hook"
    assert POLICIES.get("slide").rules(queue.params._replace(starve_s=0.0))["victim"] == "tail"


@pytest.mark.parametrize("keys", [[-math.inf, -1e9, -3.0, 0.0, 1e-9, 5.0, math.inf]])
def test_tier_and_key_are_squeezed_into_one_number_in_order(keys: list[float]) -> None:
    numbers = [_rank(tier, key) for tier in range(3) for key in keys]
    assert numbers == sorted(set(numbers))


def test_steps_are_longer_while_anybody_starves() -> None:
    queue = Queue(10, 10, starve_s=2.0, starve_share=0.0)
    queue.decode(1, 5, 0.1)
    queue.state.served.at_s[1] = 2.0
    assert queue.load(1.9)[0] == pytest.approx(0.9 * 0.05)
    assert queue.load(2.1)[0] == pytest.approx(0.95 * 0.05)
    assert Queue.load(_with(queue, starve_s=0.0), 2.1)[0] == pytest.approx(0.9 * 0.05)
    assert Queue.load(_with(queue, starve_s=2.0, starve_eta=0.5), 2.1)[0] == pytest.approx(0.9 * 0.05)


def test_nobody_starves_unless_asked_for() -> None:
    queue = Queue(100, starve_share=1.0)
    assert STARVING not in queue.tiers(1e6)


# ── f. the step ──────────────────────────────────────────────────────────────────────


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
    assert regime(_with(queue, order="deadline"), 0.0) == "deadline_steps"
    assert regime(_with(queue, order="density"), 0.0) == "density_steps"
    queue.records["ttft_slo_s"] = 3.0
    assert regime(_with(queue), 0.0) == "all_fit_steps"
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
