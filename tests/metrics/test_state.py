"""Load states and starvation of runs whose load is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tailrace import metrics
from tailrace.metrics import Requests

from .made_up import queued


def served(arrival_s: Any, service_s: Any, first: Any = None) -> Requests:
    """One server, in order of ``first`` (of arrival by default), never preempted; work = 1,000 a second."""
    arrival, service = np.asarray(arrival_s, dtype=float), np.asarray(service_s, dtype=float)
    rank = np.arange(len(arrival)) if first is None else np.asarray(first)
    waiting: list[int] = []
    started, clock, due = np.zeros(len(arrival)), 0.0, 0
    while waiting or due < len(arrival):
        while due < len(arrival) and (arrival[due] <= clock or not waiting):
            clock = max(clock, arrival[due])
            waiting.append(due)
            due += 1
        row = min(waiting, key=lambda i: (rank[i], i))
        waiting.remove(row)
        started[row] = clock
        clock += service[row]
    return queued(arrival, started, (1000 * service).astype(np.int64) + 1)


def poisson(load: float, n: int = 2000, seed: int = 0) -> tuple[Any, Any]:
    draws = np.random.default_rng(seed)
    return np.cumsum(draws.exponential(1.0, n)), draws.exponential(load, n)


@pytest.mark.parametrize("shortest_first", [False, True], ids=["fcfs", "sjf"])
@pytest.mark.parametrize(("load", "state"), [(0.6, "STABLE"), (0.8, "STABLE"), (1.3, "OVERLOADED"), (2, "OVERLOADED")])
def test_the_state_is_the_loads_whatever_the_order(load: float, state: str, shortest_first: bool) -> None:
    for seed in range(3):
        arrival, service = poisson(load, seed=seed)
        r = served(arrival, service, service if shortest_first else None)
        assert metrics.load_state(r) == state


def test_a_burst_is_a_backlog_and_no_overload() -> None:
    arrival, service = poisson(0.5)
    arrival[800:1000] = arrival[800] + np.arange(200) * 1e-3
    assert metrics.load_state(served(arrival, service)) == "BACKLOGGED"


def test_a_longer_run_at_the_same_load_keeps_its_state() -> None:
    states = {metrics.load_state(served(*poisson(1.25, n))) for n in (1000, 2000, 4000)}
    assert states == {"OVERLOADED"}
    assert metrics.load_state(served(*poisson(1.25, 300))) != "STABLE"  # a short run may not tell
    states = {metrics.load_state(served(*poisson(0.7, n))) for n in (1000, 4000)}
    assert states == {"STABLE"}


def test_where_nobody_waits_there_is_no_queueing() -> None:
    r = queued(np.arange(9.0), np.arange(9.0) + 1e-9)
    assert not metrics.queueing(r)
    assert metrics.load_state(r) == "STABLE"
    assert metrics.queueing(queued(np.arange(9.0), np.arange(9.0) + 0.002))


def test_all_at_once_is_an_overload() -> None:
    assert metrics.load_state(queued(np.zeros(9), np.arange(9.0))) == "OVERLOADED"


def test_shortest_first_starves_and_first_come_does_not() -> None:
    arrival, service = poisson(0.97)
    fcfs, sjf = (metrics.starvation(served(arrival, service, first)) for first in (None, service))
    assert fcfs["requests"] == 0
    assert fcfs["longest_wait_s"] == pytest.approx(fcfs["fcfs_longest_wait_s"])
    assert sjf["requests"] > 0
    assert sjf["longest_wait_s"] > 2 * sjf["fcfs_longest_wait_s"]
    assert sjf["fcfs_longest_wait_s"] == pytest.approx(fcfs["longest_wait_s"], rel=0.2)


def test_short_waits_are_no_starvation_and_nobody_is_none() -> None:
    arrival, service = poisson(0.97)
    quick = served(arrival / 1000, service / 1000, service)
    assert metrics.starvation(quick)["requests"] == 0
    nobody = queued(np.zeros(3), np.full(3, np.nan))
    assert metrics.starvation(nobody) == {
        "requests": 0,
        "share": None,
        "longest_wait_s": None,
        "fcfs_longest_wait_s": None,
    }
    assert metrics.load_state(nobody) == "STABLE"
