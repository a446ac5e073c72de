"""VTC: hooks by hand, and the shares of whole runs; step by step against the reference in tests/sim."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tailrace import hooks
from tailrace.latency import Latency, PiecewiseParams
from tailrace.sim.run import Instance
from tailrace.table import PREFILL
from tailrace.workloads.workload import Workload

from .hand import Hand, instance

pytestmark = pytest.mark.plain

SECOND = Latency("a step a second", PiecewiseParams(constant_s=1.0, per_token_s=0.0), None, "")


def hand(classes: list[int], weights: tuple[float, ...] = (1.0, 1.0, 1.0), **given: Any) -> Hand:
    """Requests of these classes, with prompts of 10 tokens, which have arrived."""
    made = Hand("vtc", len(classes), **given)
    made.records["class_id"] = made.records["tenant"] = classes
    made.records["weight"] = np.array(weights)[classes]
    made.records["started_s"] = np.nan
    made.state = made.policy.make_state(made.params, len(classes))
    return made


def arrive(made: Hand, *rows: int) -> None:
    for row in rows:
        hooks.on_arrival(made.table, row, 0.0, made.state, made.params)


def start(made: Hand, row: int, now: float = 0.0) -> None:
    first = bool(np.isnan(made.records["started_s"][row]))
    made.records["phase"][row], made.records["started_s"][row] = PREFILL, now
    hooks.on_admit(made.table, row, first, 0, now, made.state, made.params)


def deliver(made: Hand, row: int, tokens: int) -> None:
    made.records["generated_tokens"][row] += tokens
    made.step([row])


def counters(made: Hand, clients: int = 3) -> list[float]:
    return [float(c) for c in made.state.client.counter[:clients]]


def keys(made: Hand) -> list[float]:
    live = np.arange(len(made.records))
    hooks.prepare(made.table, live, 0.0, made.state, made.scratch, made.cost, made.params)
    return [made.key(int(row)) for row in live]


def test_prompts_are_charged_at_the_start_and_tokens_when_they_come() -> None:
    made = hand([0, 1], (1.0, 4.0))
    arrive(made, 0, 1)
    start(made, 0)
    start(made, 1)
    assert counters(made) == [10.0, 2.5, 0.0]
    deliver(made, 0, 3)
    deliver(made, 1, 2)
    assert counters(made) == [16.0, 3.5, 0.0]
    made.records["generated_tokens"][1] += 1
    made.finish(1, 9.0)  # the last token of a request that has left
    assert counters(made) == [16.0, 4.0, 0.0]
    assert made.policy.tallies(made.state) == {"counter_lifts": 0, "most_service_tokens": 16.0}


def test_a_preempted_request_is_not_charged_again() -> None:
    made = hand([0, 1])
    arrive(made, 0, 1)
    start(made, 0)
    deliver(made, 0, 1)
    made.preempt(0)
    assert keys(made) == [12.0, 0.0]
    start(made, 0)
    deliver(made, 0, 1)
    assert counters(made)[0] == 14.0


def test_the_queue_is_served_as_if_each_start_were_charged_at_once() -> None:
    made = hand([0, 0, 1, 0, 1, 2], (1.0, 2.0, 0.5))
    arrive(made, *range(6))
    assert keys(made) == [0.0, 10.0, 0.0, 20.0, 5.0, 0.0]
    start(made, 1)
    assert keys(made) == [10.0, 10.0, 0.0, 20.0, 5.0, 0.0]


def test_requests_are_queued_by_arrival_whenever_they_come_back() -> None:
    made = hand([0, 0, 0])
    arrive(made, 0, 1, 2)
    start(made, 1)
    start(made, 0)
    made.preempt(1)
    made.preempt(0)
    assert keys(made) == [20.0, 20.0, 20.0]  # paid already; the third has nobody's prompt before it
    made.records["started_s"][:2] = np.nan
    assert keys(made) == [20.0, 30.0, 40.0]


def test_who_was_idle_is_lifted_to_the_least_of_those_who_wait() -> None:
    made = hand([0, 1, 0, 2, 1])
    arrive(made, 0, 1)
    start(made, 0)
    start(made, 1)
    deliver(made, 0, 20)
    deliver(made, 1, 40)
    assert counters(made) == [50.0, 90.0, 0.0]
    arrive(made, 2)  # nobody waits: to the counter of class 1, whose request was the last to leave the queue
    assert counters(made) == [90.0, 90.0, 0.0]
    deliver(made, 0, 5)
    arrive(made, 3)  # class 0 waits, with 100
    assert counters(made) == [100.0, 90.0, 100.0]
    arrive(made, 4)
    assert counters(made) == [100.0, 100.0, 100.0]
    assert made.policy.tallies(made.state)["counter_lifts"] == 3


def test_who_waits_already_is_not_lifted() -> None:
    made = hand([0, 1, 1])
    arrive(made, 0, 1)
    deliver(made, 0, 7)
    arrive(made, 2)
    assert counters(made) == [14.0, 0.0, 0.0]


def test_a_client_is_a_class_or_a_tenant() -> None:
    for client, want in (("class", [10.0, 0.0]), ("tenant", [0.0, 10.0])):
        made = hand([0], client=client)
        made.records["tenant"] = 1
        arrive(made, 0)
        start(made, 0)
        assert counters(made, 2) == want


def test_who_gives_up_leaves_the_queue() -> None:
    made = hand([0, 0, 1])
    arrive(made, 0, 1, 2)
    for row in (1, 0, 2):
        hooks.on_remove(made.table, row, hooks.ABORTED, 0.0, made.state, made.params)
    assert counters(made) == [0.0, 0.0, 0.0]
    assert (int(made.state.ends.first[0]), int(made.state.ends.last[0])) == (-1, -1)


def test_a_row_used_again_begins_anew() -> None:
    made = hand([0, 0])
    arrive(made, 0)
    start(made, 0)
    deliver(made, 0, 5)
    made.finish(0, 1.0)
    made.records["generated_tokens"][0], made.records["started_s"][0] = 0, np.nan
    arrive(made, 1, 0)  # the row's new request is the older one
    assert keys(made) == [20.0, 30.0]
    start(made, 0)
    deliver(made, 0, 1)
    assert counters(made)[0] == 32.0


def backlogged(weights: tuple[float, float], outputs: tuple[int, int]) -> Instance:
    """Two classes of which there are always requests waiting."""
    rng, n = np.random.default_rng(3), 360
    class_id = np.arange(n) % 2
    workload = Workload.of(
        np.zeros(n),
        rng.integers(5, 40, n),
        np.array(outputs)[class_id],
        name="backlogged",
        class_id=class_id,
        class_names=("a", "b"),
        class_weights=weights,
    )
    return instance("vtc", workload, SECOND, {"token_budget": 64})


def service(run: Instance) -> np.ndarray[Any, Any]:
    """Prompt + 2 · output tokens so far, by class."""
    table = run.buffers.table
    waits = np.isnan(table["started_s"])
    done = np.where(waits, 0, table["prompt_tokens"]) + 2 * table["generated_tokens"]
    classes = [table["class_id"] == each for each in (0, 1)]
    assert all((waits & of).any() for of in classes)
    return np.array([done[of].sum() for of in classes], dtype=float)


@pytest.mark.parametrize("weights", [(1.0, 1.0), (2.0, 1.0), (1.0, 4.0), (3.0, 2.0)])
@pytest.mark.parametrize("outputs", [(20, 20), (8, 40)])
def test_backlogged_classes_are_served_by_weight(weights: tuple[float, float], outputs: tuple[int, int]) -> None:
    """Service by weight differs by no more than what runs at once may cost, however long they are backlogged."""
    run = backlogged(weights, outputs)
    for _ in range(6):
        run.advance(steps=50)
        got = service(run)
        running = 8 * (40 + 2 * max(outputs)) / min(weights)
        assert abs(got[0] / weights[0] - got[1] / weights[1]) < running
    assert got[0] / got[1] == pytest.approx(weights[0] / weights[1], rel=0.06)
