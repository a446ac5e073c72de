"""EDF and FairBatching: hooks by hand, and EDF against fcfs; whole runs against the reference are in tests/sim."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tailrace import hooks
from tailrace.latency import Latency, PiecewiseParams
from tailrace.sim.instance import DRAINED, PAUSED
from tailrace.sim.run import Instance
from tailrace.table import DECODE
from tailrace.workloads.workload import Workload

from .hand import Hand, instance

pytestmark = pytest.mark.plain

MODEL = Latency("by the token", PiecewiseParams(constant_s=0.5, per_token_s=0.125, knee_tokens=0), None, "")


def hand(name: str, n: int, **given: Any) -> Hand:
    """Requests with a TTFT SLO of 10 s and a TPOT SLO of 2 s."""
    made = Hand(name, n, **given)
    made.records["ttft_slo_s"], made.records["tpot_slo_s"] = 10.0, 2.0
    return made


def decode(made: Hand, row: int, generated: int, first_token_s: float = 4.0) -> None:
    made.records["phase"][row], made.records["generated_tokens"][row] = DECODE, generated
    made.records["first_token_s"][row] = first_token_s


@pytest.mark.parametrize(("due_from", "third"), [("slo", 1.0 + 10.0 + 3 * 2.0), ("first_token", 4.0 + 3 * 2.0)])
def test_edf_goes_by_when_the_next_token_is_due(due_from: str, third: float) -> None:
    made = hand("edf", 2, due_from=due_from)
    assert made.tier_and_key(1) == (0, 11.0)
    decode(made, 1, 3)
    assert made.tier_and_key(1) == (0, third)
    made.preempt(1)
    assert made.key(1) == third  # it waits again, for the same token


@pytest.mark.parametrize("due_from", ["slo", "first_token"])
def test_without_slos_nothing_is_ever_due(due_from: str) -> None:
    made = Hand("edf", 2, due_from=due_from)
    made.records["ttft_slo_s"] = made.records["tpot_slo_s"] = math.inf
    assert made.key(0) == math.inf
    decode(made, 1, 3)
    assert made.key(1) == math.inf
    made.records["ttft_slo_s"] = 1.0
    assert made.key(0) == 1.0  # and no NaN of 0 · infinity
    assert made.key(1) == math.inf


@pytest.mark.parametrize(("displaces", "place", "kv"), [("kv", 0, 1), ("place", 1, 1), ("nothing", 0, 0)])
def test_what_edf_takes_from_the_running(displaces: str, place: int, kv: int) -> None:
    made = hand("edf", 1, displaces=displaces)
    rules = made.policy.rules(made.params)
    assert (rules["may_preempt_at_cap"], rules["may_preempt_for_kv"]) == (place, kv)


def run(name: str, workload: Workload, config: dict[str, Any], **given: Any) -> Instance:
    made = instance(name, workload, MODEL, {"kv_tokens": 512, **config}, **given)
    assert made.advance() == DRAINED
    return made


def prompts(seed: int, ttft_slo_s: Any, outputs: Any = 1) -> Workload:
    rng = np.random.default_rng(seed)
    arrivals, lengths = np.cumsum(rng.exponential(4.0, 60)), rng.integers(1, 90, 60)
    return Workload.of(arrivals, lengths, outputs, name="prompts", ttft_slo_s=ttft_slo_s, tpot_slo_s=1.0)


@pytest.mark.parametrize("displaces", ["kv", "place", "nothing"])
@pytest.mark.parametrize("config", [{}, {"max_seqs": 2}, {"kv_tokens": 100}])
def test_of_prefills_with_one_slo_edf_is_fcfs(config: dict[str, Any], displaces: str) -> None:
    """Where every request is a prefill, the earliest deadline is the earliest arrival; not so with two SLOs."""
    for seed in range(3):
        equal = prompts(seed, 7.0)
        first = run("fcfs", equal, config)
        edf = run("edf", equal, config, displaces=displaces)
        for column in ("started_s", "first_token_s"):
            np.testing.assert_array_equal(edf.buffers.table[column], first.buffers.table[column])
        two = run("edf", prompts(seed, np.where(np.arange(60) % 2, 7.0, 70.0)), config, displaces=displaces)
        assert not np.array_equal(two.buffers.table["started_s"], first.buffers.table["started_s"])


# ── FairBatching ─────────────────────────────────────────────────────────────────────


def planned(made: Hand, now: float) -> float:
    """The seconds a step may take beyond its constant."""
    live = np.arange(len(made.records))
    args = (made.table, live, now, made.state, made.scratch, made.cost, made.params)
    hooks.prepare(*args)
    tokens, seqs, seconds = hooks.step_limits(*args)
    assert tokens == seqs == hooks.NO_LIMIT
    return float(seconds)


def test_fairbatching_puts_prefills_between_the_urgent_and_the_patient() -> None:
    made = hand("fairbatching", 5)
    for row, generated in ((0, 1), (1, 2), (2, 8)):
        decode(made, row, generated)  # due at 12, 15 and 28
    constant = hooks.constant_s(made.cost)
    assert planned(made, 9.0) == 3.0 - constant  # the least slack
    # Urgent is who has less slack than 3 + 2 seconds.
    assert [made.tier_and_key(row, 9.0) for row in range(5)] == [(0, 12.0), (2, 15.0), (2, 28.0), (1, 13.0), (1, 14.0)]
    assert planned(made, 11.5) == 2.0 - constant  # no less than the TPOT SLO, however late
    assert [made.tier_and_key(row, 11.5)[0] for row in range(5)] == [0, 0, 2, 1, 1]
    made.records["tpot_slo_s"][2] = 0.25
    assert planned(made, 30.0) == 0.25 - constant


def test_a_step_is_never_below_nothing() -> None:
    made = hand("fairbatching", 1)
    made.records["tpot_slo_s"] = 1e-6
    decode(made, 0, 1)
    assert planned(made, 99.0) == 0.0


def test_without_decodes_or_slos_time_is_unlimited_and_prefills_go_first() -> None:
    made = hand("fairbatching", 2)
    assert planned(made, 99.0) == math.inf
    made.records["ttft_slo_s"] = made.records["tpot_slo_s"] = math.inf
    decode(made, 0, 5)
    assert planned(made, 99.0) == math.inf
    assert [made.tier_and_key(row, 99.0) for row in (0, 1)] == [(2, math.inf), (1, math.inf)]


def test_a_request_that_lost_its_kv_is_a_prefill_due_for_its_next_token() -> None:
    made = hand("fairbatching", 2)
    decode(made, 0, 3)
    decode(made, 1, 1)
    made.preempt(0)
    planned(made, 9.0)
    assert made.tier_and_key(0, 9.0) == (1, 16.0)


def overlong_steps(name: str) -> tuple[int, int]:
    """``(steps, those longer than the decodes' SLOs allow)`` of the steps that begin with decodes."""
    steps = overlong = 0
    run = instance(name, prompts(1, 40.0, 12), MODEL, {"kv_tokens": 512, "token_budget": 512})
    table, code = run.buffers.table, PAUSED
    while code == PAUSED:
        begins, decodes = float(run.engine.core.clock_s[0]), table[table["phase"] == DECODE]
        due = decodes["arrival_s"] + decodes["ttft_slo_s"] + decodes["generated_tokens"] * decodes["tpot_slo_s"]
        code = run.advance(steps=1)
        if len(decodes) and code == PAUSED:
            steps += 1
            overlong += bool(run.engine.core.clock_s[0] - begins > max((due - begins).min(), 1.0) + 1e-9)
    return steps, overlong


def test_no_step_is_longer_than_the_decodes_can_wait() -> None:
    """512 tokens take 64.5 s; a decode's slack, or its TPOT SLO of 1 s, allows for less."""
    steps, overlong = overlong_steps("fairbatching")
    assert steps > 100
    assert overlong == 0
    assert overlong_steps("fcfs")[1] > 10
