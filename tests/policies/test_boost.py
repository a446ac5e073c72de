"""γ-Boost, DistBoost, UniBoost-Base and MemGuard: the formula, the hooks by hand, and two schedules of the article."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace import hooks, params
from tailrace.config import engine
from tailrace.latency import Latency, PiecewiseParams
from tailrace.policies._boosting import NO_MODEL_S, boost_s, seconds_per_token
from tailrace.policies._guarded import milestone_tokens
from tailrace.registry import POLICIES
from tailrace.sim.instance import DRAINED
from tailrace.sim.run import Instance
from tailrace.studies.reproduce.uniboost.toys import SCHEDULES
from tailrace.workloads.workload import Workload

from .hand import Hand

SECOND = Latency("a step a second", PiecewiseParams(constant_s=1.0, per_token_s=0.0), None, "")


def exact(work_s: float, gamma: float) -> float:
    """b_γ(w) with as many digits as it takes."""
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 800, -(10**9), 10**9
        x = Decimal(gamma) * Decimal(work_s)
        return float(-(1 - (-x).exp()).ln() / Decimal(gamma))


@settings(max_examples=60, deadline=None)
@given(st.floats(-200, 200), st.floats(-300, 2.5))
def test_the_boost_is_exact_at_any_gamma_and_work(log_gamma: float, log_x: float) -> None:
    gamma, work = 10.0**log_gamma, 10.0 ** (log_x - log_gamma)
    if work == 0.0 or math.isinf(work):
        return
    assert boost_s(work, gamma) == pytest.approx(exact(work, gamma), rel=1e-12, abs=0.0)


@given(st.floats(1e-6, 1e6), st.floats(1e-9, 1e6), st.floats(1.0, 1e3))
def test_the_boost_falls_with_work_and_is_convex(gamma: float, work: float, factor: float) -> None:
    near, middle, far = (boost_s(w, gamma) for w in (work, work * (1 + factor) / 2, work * factor))
    assert near >= middle >= far >= 0.0
    assert middle <= (near + far) / 2 * (1 + 1e-12)


def test_the_boost_at_its_ends() -> None:
    assert boost_s(0.0, 1.0) == math.inf
    assert boost_s(1e300, 1e300) == 0.0
    assert boost_s(math.log(2), 1.0) == pytest.approx(math.log(2))


def test_seconds_per_token() -> None:
    cost = PiecewiseParams(constant_s=0.064, per_token_s=0.001, knee_tokens=0)
    assert seconds_per_token(0.25, cost) == 0.25
    assert seconds_per_token(0.0, cost) == pytest.approx((0.064 / 512 + 0.001 + 0.064 / 64 + 0.001) / 2)
    assert seconds_per_token(0.0, PiecewiseParams(constant_s=0.0, per_token_s=0.0)) == NO_MODEL_S


# ── two schedules of the article (§3): one request at a time, a step a second ────────
# A blocks four shorter ones in the first, and is overtaken by a burst in the second.

CONVOY, BURST = SCHEDULES["convoy"], SCHEDULES["burst"]


def latencies(name: str, jobs: list[tuple[int, int]], **given: Any) -> np.ndarray:
    arrival, size = zip(*jobs, strict=True)
    workload = Workload.of(list(map(float, arrival)), 1, list(size), name="toy", predicted_output_tokens=list(size))
    policy = POLICIES.get(name)
    config = engine("vllm_v1", {"max_seqs": 1, "kv_tokens": 4096, "token_budget": 64})
    run = Instance(workload, policy, params.build(policy.Params, given, name), config, SECOND)
    assert run.advance() == DRAINED
    return np.asarray(run.records.out["finish_s"] - workload.arrival_s)


SOFT = {"seconds_per_token": 1.0}
FIRST_COME = [("fcfs", {}), ("gamma_boost", {"gamma_per_s": 100.0, **SOFT})]
LEAST_SERVED = [("las", {}), ("gamma_boost", {"gamma_per_s": 0.01, **SOFT})]


@pytest.mark.parametrize(("name", "given"), FIRST_COME)
def test_first_come_loses_the_mean_to_a_convoy(name: str, given: dict[str, Any]) -> None:
    assert latencies(name, CONVOY, **given).mean() == 9.0
    assert latencies(name, BURST, **given).max() == 9.0


@pytest.mark.parametrize(("name", "given"), [*LEAST_SERVED, ("srpt", {"work": "output"})])
def test_least_served_loses_the_tail_to_a_burst(name: str, given: dict[str, Any]) -> None:
    assert latencies(name, CONVOY, **given).mean() == 8.6
    burst = latencies(name, BURST, **given)
    assert burst.max() == 11.0
    assert name == "srpt" or burst.mean() == latencies("fcfs", BURST).mean() == 6.2


@pytest.mark.parametrize("jobs", [CONVOY, BURST])
def test_gamma_slides_from_one_to_the_other(jobs: list[tuple[int, int]]) -> None:
    first, boosted = (latencies(name, jobs, **given) for name, given in FIRST_COME)
    np.testing.assert_array_equal(first, boosted)
    least, boosted = (latencies(name, jobs, **given) for name, given in LEAST_SERVED)
    assert (least.mean(), least.max()) == (boosted.mean(), boosted.max())  # equals change places


# ── hooks by hand ────────────────────────────────────────────────────────────────────


def test_signals() -> None:
    given: dict[str, Any] = {"gamma_per_s": 0.5, "seconds_per_token": 0.1}
    for signal, work in (("size", 20), ("prompt", 10)):
        hand = Hand("gamma_boost", 2, signal=signal, **given)
        assert hand.key(1) == 1.0 - boost_s(work * 0.1, 0.5)
    hand = Hand("gamma_boost", 2, **given)
    assert hand.key(1) == 1.0 - boost_s(0.1, 0.5)
    hand.progress(1, 7)
    assert hand.key(1) == 1.0 - boost_s(7 * 0.1, 0.5)


def test_dist_boost_serves_decodes_in_the_order_they_came() -> None:
    hand = Hand("dist_boost", 3, [100, 10, 10], gamma_per_s=0.01, seconds_per_token=1.0)
    assert hand.tier_and_key(1)[0] == 1
    assert hand.key(1) < hand.key(2) < hand.key(0)
    for row, now in ((2, 5.0), (0, 6.0)):
        hand.admit(row)
        hand.progress(row, 100)
        assert hand.tier_and_key(row) == (0, math.inf)  # not yet told that it decodes: behind those that do
        hooks.on_prefill_done(hand.table, row, now, hand.state, hand.params)
    assert [hand.tier_and_key(row) for row in (2, 0)] == [(0, 5.0), (0, 6.0)]
    hand.preempt(2)
    assert hand.tier_and_key(2) == (1, 2.0 - boost_s(10, 0.01))


def test_dist_boosts_caps_are_rules_only_where_given() -> None:
    assert not {"decode_cap", "chunk_cap"} & set(Hand("dist_boost", 1).policy.rules(Hand("dist_boost", 1).params))
    hand = Hand("dist_boost", 1, decodes=9, chunk_tokens=256)
    rules = hand.policy.rules(hand.params)
    assert (rules["decode_cap"], rules["chunk_cap"], rules["phase_order"]) == (9, 256, "decode_first")


def test_base_takes_the_larger_of_prompt_and_service_and_favours_the_running() -> None:
    hand = Hand("uniboost_base", 2, 100, gamma_per_s=0.01, hysteresis_s=3.0, seconds_per_token=0.5)
    assert hand.key(1) == 1.0 - boost_s(50, 0.01)
    hand.admit(1)
    assert hand.key(1) == 1.0 - boost_s(50, 0.01) - 3.0
    hand.progress(1, 60)
    assert hand.key(1) == 1.0 - boost_s(50, 0.01) - 3.0
    hand.progress(1, 140)
    assert hand.key(1) == 1.0 - boost_s(70, 0.01) - 3.0
    hand.preempt(1)
    assert hand.key(1) == 1.0 - boost_s(70, 0.01)


def test_cached_tokens_are_no_work_and_are_told_once() -> None:
    """max(w, prompt − cached), where what a later admission finds may be the request's own."""
    hand = Hand("uniboost_base", 1, 100, gamma_per_s=0.01, hysteresis_s=0.0, seconds_per_token=1.0)
    hand.admit(0, cached=64)
    hand.progress(0, 80)
    assert hand.key(0) == -boost_s(36, 0.01)
    hand.progress(0, 110)
    assert hand.key(0) == -boost_s(46, 0.01)
    hand.preempt(0)
    hand.admit(0, cached=96)
    hand.progress(0, 120)
    assert hand.key(0) == -boost_s(56, 0.01)


@given(st.integers(0, 1 << 40), st.integers(1, 5000))
def test_milestones(work: int, k: int) -> None:
    milestone = milestone_tokens(work, k)
    doublings = round(math.log2(milestone / k))
    assert milestone == k * 2**doublings
    assert milestone <= max(work, k) < 2 * milestone


def guarded(prompt: int = 10, **given: Any) -> Hand:
    fixed = {"gamma_per_s": 0.01, "k_tokens": 16, "hysteresis_s": 0.0, "seconds_per_token": 1.0}
    return Hand("memguard", 2, prompt, **{**fixed, **given})


def test_a_key_is_revised_at_milestones_only() -> None:
    hand = guarded()
    keys = []
    hand.admit(0)
    for attained in range(1, 130):
        hand.progress(0, attained)
        keys.append(hand.key(0))
    assert keys == [-boost_s(milestone_tokens(w, 16), 0.01) for w in range(1, 130)]
    assert len(set(keys)) == 4  # 16, 32, 64, 128
    assert hand.state.guard.revisions[0] == 1 + int(math.log2(129 / 16))


@pytest.mark.parametrize(
    ("lock", "free"),
    [("admission", set(range(32, 80))), ("milestone", {32, 64}), ("none", set(range(1, 80)))],
)
def test_when_a_running_request_may_be_evicted(lock: str, free: set[int]) -> None:
    hand = guarded(lock=lock)
    hand.admit(0)
    found = set()
    for attained in range(1, 80):
        hand.progress(0, attained)
        assert hand.victim(0)[0] != hand.may_preempt(0)
        if hand.may_preempt(0):
            found.add(attained)
    assert found == free


def test_a_resumed_request_is_safe_up_to_a_milestone_of_all_its_tokens() -> None:
    hand = guarded()
    hand.admit(0)
    hand.progress(0, 40)
    assert hand.may_preempt(0)
    hand.preempt(0)
    assert hand.policy.tallies(hand.state)["early_evictions"] == 0
    hand.admit(0)
    hand.progress(0, 63)
    assert not hand.may_preempt(0)
    hand.preempt(0)
    assert hand.policy.tallies(hand.state)["early_evictions"] == 1
    hand.admit(0)
    hand.progress(0, 64)
    assert hand.may_preempt(0)


def test_the_victim_is_the_worst_ranked_or_holds_least() -> None:
    for victim, first in (("rank", 1), ("kv", 0)):
        hand = guarded(victim=victim, lock="none")
        hand.records["kv_blocks"] = [3, 5]
        assert min((0, 1), key=lambda row: hand.victim(row)[1]) == first


def test_a_row_used_again_begins_anew() -> None:
    for name in ("memguard", "uniboost_base", "dist_boost"):
        hand, fresh = Hand(name, 2), Hand(name, 2)
        hand.admit(0, cached=4)
        hand.progress(0, 600)
        hand.preempt(0)
        hand.records[:] = fresh.records
        hooks.on_arrival(hand.table, 0, 0.0, hand.state, hand.params)
        assert hand.tier_and_key(0) == fresh.tier_and_key(0)
        assert hand.victim(0) == fresh.victim(0)


# ── whole runs ───────────────────────────────────────────────────────────────────────


def crowded(name: str, config: dict[str, Any], n: int = 30, /, **given: Any) -> Instance:
    rng = np.random.default_rng(5)
    outputs = np.where(rng.random(n) < 0.3, rng.integers(60, 120, n), rng.integers(1, 20, n))
    workload = Workload.of(
        np.cumsum(rng.exponential(4.0, n)),
        rng.integers(4, 60, n),
        outputs,
        name="crowded",
        predicted_output_tokens=outputs,
    )
    policy = POLICIES.get(name)
    whole = engine("vllm_v1", {"token_budget": 32, "max_seqs": 4, "kv_tokens": 256, "block_tokens": 4, **config})
    return Instance(workload, policy, params.build(policy.Params, given, name), whole, SECOND)


@pytest.mark.parametrize("k", [4, 16, 1 << 20])
def test_no_request_has_more_keys_than_milestones(k: int) -> None:
    run = crowded("memguard", {}, k_tokens=k, hysteresis_s=0.0, gamma_per_s=0.02, seconds_per_token=1.0)
    assert run.advance() == DRAINED
    size = run.workload.prompt_tokens + run.workload.output_tokens
    bound = 1 + np.maximum(0, np.floor(np.log2(size / k)))
    revisions = np.asarray(run.engine.state.guard.revisions)
    assert (revisions <= bound).all()
    assert revisions.max() > 3 or k > 16
    table = run.buffers.table
    assert (table["preemptions"] <= bound).all() or run.records.counters["escapes"][0] > 0


@pytest.mark.parametrize("order", ["ranked", "decode_first"])
def test_with_all_locked_and_memory_full_somebody_still_goes_on(order: str) -> None:
    """Nobody ever reaches a milestone, and four residents outgrow the KV: only the escape is left."""
    run = crowded("memguard", {"reserve_full_isl": False}, k_tokens=1 << 20, order=order)
    assert run.advance(steps=20_000) == DRAINED
    tallies = run.policy.tallies(run.engine.state)
    assert tallies["early_evictions"] == run.records.counters["escapes"][0] > 0
    assert tallies["early_evictions"] == run.buffers.table["preemptions"].sum()


def finish_s(name: str, **more: Any) -> np.ndarray:
    run = crowded(name, {"max_seqs": 1}, **more)
    assert run.advance() == DRAINED
    return np.asarray(run.records.out["finish_s"])


def test_a_tiny_gamma_is_las_and_a_huge_one_first_come() -> None:
    least = finish_s("gamma_boost", gamma_per_s=1e-18, seconds_per_token=1.0)
    np.testing.assert_array_equal(least, finish_s("las"))
    first = finish_s("gamma_boost", gamma_per_s=1e18, seconds_per_token=1.0)
    np.testing.assert_array_equal(first, finish_s("fcfs"))
    assert not np.array_equal(least, first)


def test_hysteresis_and_milestones_spare_evictions() -> None:
    given: dict[str, Any] = {"gamma_per_s": 0.02, "seconds_per_token": 1.0}
    counts = []
    for name, more in (
        ("uniboost_base", {"hysteresis_s": 0.0}),
        ("uniboost_base", {"hysteresis_s": 30.0}),
        ("memguard", {"hysteresis_s": 0.0, "k_tokens": 64}),
    ):
        run = crowded(name, {"max_seqs": 2, "kv_tokens": 4096}, **given, **more)
        assert run.advance() == DRAINED
        counts.append(int(run.buffers.table["preemptions"].sum()))
    assert counts[0] > 2 * counts[1]
    assert counts[0] > 2 * counts[2]
