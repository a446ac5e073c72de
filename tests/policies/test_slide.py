"""SlideBatching by hand: work and deadlines, the step's budget, the boundary and the order on its sides (a to d)."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tailrace.table import PREFILL

from .slide_queue import HOPELESS, LATER_URGENT, NORMAL, URGENT, Queue, altered

pytestmark = pytest.mark.plain


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
    assert math.isinf(Queue.load(altered(queue, all_late="unbounded"), 2.0)[0])
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
    assert Queue.tiers(altered(queue, coeff=0.9), 0.5) == [URGENT, NORMAL, NORMAL]
    assert Queue.tiers(altered(queue, order="density"), 0.5) == [URGENT] * 3
    assert Queue.tiers(altered(queue, order="deadline"), 0.5) == [NORMAL] * 3


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
        tiers, keys = zip(*altered(queue, order=order).ranked(0.75), strict=True)
        assert (tiers[:2], keys[:2]) == ((NORMAL, NORMAL), (math.inf, math.inf))
        assert (tiers[2], tiers[3]) == (HOPELESS, NORMAL if order == "deadline" else URGENT)
