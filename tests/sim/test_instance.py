"""Runs as a whole: the same bytes every time, with and without the compiler; aborts; what ends a run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tailrace import hooks, params
from tailrace.config import engine
from tailrace.latency import Latency, PiecewiseParams
from tailrace.registry import POLICIES
from tailrace.sim import invariants
from tailrace.sim.instance import DRAINED, PAUSED, STUCK
from tailrace.sim.run import Instance, simulate
from tailrace.table import DECODE, DONE, PREFILL, WAITING
from tailrace.workloads.workload import Workload

from .cases import NAMES, PIECEWISE, draw
from .digest import digest, digests, elsewhere, paper
from .sink import Sink, SinkParams

LATENCY = Latency("paper", PiecewiseParams(), None, "")


def instance(workload: Workload, name: str = "fcfs", **overrides: Any) -> Instance:
    policy = POLICIES.get(name)
    config = engine("vllm_v1", {"token_budget": 32, "max_seqs": 4, "kv_tokens": 256, **overrides})
    return Instance(workload, policy, params.build(policy.Params, {}, name), config, LATENCY)


def some(n: int = 20) -> Workload:
    return Workload.of(np.arange(n) * 0.01, 30 + np.arange(n) % 7, 5 + np.arange(n) % 11, name="some")


def test_the_same_bytes_twice() -> None:
    assert digests("qba", 0, 5) == digests("qba", 0, 5)
    assert paper("qba", 300) == paper("qba", 300)


def test_python_does_what_compiled_code_does() -> None:
    """Every policy, without the compiler in a process of its own."""
    lines = elsewhere(",".join(NAMES), "0", "3", NUMBA_DISABLE_JIT="1")
    assert lines == [line for name in NAMES for line in digests(name, 0, 3)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["qba", "sink"])
def test_nothing_is_read_past_an_arrays_end(name: str, tmp_path: Path) -> None:
    """Compiled again with bounds checks, which raise IndexError."""
    lines = elsewhere(name, "0", "40", NUMBA_BOUNDSCHECK="1", TAILRACE_CACHE_DIR=str(tmp_path))
    assert lines == digests(name, 0, 40)


def test_pausing_changes_nothing() -> None:
    for seed in range(4):
        whole, parts = draw("qba", seed).instance(), draw("qba", seed).instance()
        whole.advance()
        while parts.advance(until_s=float(parts.buffers.core["clock_s"][0]) + 0.05) == PAUSED:
            pass
        assert digest(whole) == digest(parts)


def test_a_run_stops_at_the_first_step_that_passes_the_given_time() -> None:
    run = instance(some())
    assert run.advance(until_s=0.1) == PAUSED
    step_s = PiecewiseParams().constant_s + 32 * PiecewiseParams().per_token_s
    assert 0.1 <= run.buffers.core["clock_s"][0] < 0.1 + step_s
    assert run.advance(until_s=0.1) == PAUSED
    assert run.advance() == DRAINED


@pytest.mark.parametrize("in_flight", [1, 2])
@pytest.mark.parametrize("phase", [WAITING, PREFILL, DECODE])
def test_aborted_requests_leave_all_else_in_order(phase: int, in_flight: int) -> None:
    for name in ("fcfs", "qba", "uniboost", "ltr"):
        run, aborted = instance(some(), name, steps_in_flight=in_flight, kv_tokens=128), 0
        while run.advance(steps=2) == PAUSED:
            rows = np.flatnonzero(run.buffers.table["phase"] == phase)
            if rows.size and aborted < 8:
                assert run.abort(int(rows[-1]))
                assert not run.abort(int(rows[-1]))
                aborted += 1
            invariants.check(run)
        invariants.check(run)
        assert aborted > 2
        assert run.records.counters["aborted"][0] == aborted
        assert run.records.counters["completed"][0] == 20 - aborted
        assert run.buffers.core["free_blocks"][0] == run.buffers.core["total_blocks"][0]


def test_only_the_live_can_be_aborted() -> None:
    run = instance(some())
    assert not run.abort(0)  # not arrived
    run.advance()
    assert not run.abort(0)  # finished
    assert run.records.counters["aborted"][0] == 0


def test_what_never_fits_is_rejected_and_the_rest_goes_on() -> None:
    workload = Workload.of([0.0, 0.0, 0.0], [10, 300, 250], [5, 1, 7], name="large")
    requests = simulate(workload, POLICIES.get("fcfs"), POLICIES.get("fcfs").Params(), engine("vllm_v1", {
        "kv_tokens": 256}), LATENCY).requests  # fmt: skip
    assert requests.reason.tolist() == [hooks.FINISHED + 1, hooks.REJECTED + 1, hooks.FINISHED + 1]
    assert math.isnan(requests.started_s[1])


def test_a_request_that_just_fits_runs_alone() -> None:
    """Prompt and output less the last token, whose KV nobody needs, are the whole KV."""
    workload = Workload.of([0.0, 0.0], [100, 100], [61, 61], name="tight")
    run = instance(workload, kv_tokens=160, block_tokens=16)
    while run.advance(steps=1) == PAUSED:
        invariants.check(run)
    assert run.records.counters["completed"][0] == 2


def test_seconds_too_few_for_any_work_do_not_bind() -> None:
    """Neither while requests run nor on an idle engine."""
    chosen = SinkParams(seconds=1e-9)
    config = engine("vllm_v1", {"token_budget": 32, "max_seqs": 4, "kv_tokens": 256})
    run = Instance(some(), Sink, chosen, config, Latency("ticks", PIECEWISE, None, ""))
    assert run.advance() == DRAINED
    assert run.records.counters["completed"][0] == 20


def test_an_engine_that_can_do_nothing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings lead here; a budget of nothing is put in behind their back."""
    run = instance(some())
    run.buffers.core["token_budget"] = 0
    assert run.advance() == STUCK
    monkeypatch.setattr(Instance, "advance", lambda self, **_: STUCK)
    with pytest.raises(RuntimeError, match="waits for ever"):
        simulate(run.workload, run.policy, run.params, run.config, run.latency)


@pytest.mark.parametrize("in_flight", [1, 2])
def test_a_request_whose_last_token_is_under_way_is_not_evicted_for_a_deadlock(in_flight: int) -> None:
    """With a step under way and nothing to plan, nobody has stalled."""
    workload = Workload.of([0.0, 0.0], 20, 12, name="two")
    run = instance(workload, kv_short="stall", steps_in_flight=in_flight)
    assert run.advance() == DRAINED
    assert run.records.counters["preemptions"][0] == 0


def test_asynchronous_scheduling_hides_the_gap_and_no_more() -> None:
    """Two steps in flight plan on old news: never more tokens, and every request still ends."""
    one, two = instance(some()), instance(some(), steps_in_flight=2)
    for run in (one, two):
        run.advance()
        assert (run.buffers.table["phase"] == DONE).all()
        assert run.buffers.table["generated_tokens"].tolist() == run.workload.output_tokens.tolist()
