"""A policy beside a live engine that is made up."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tailrace import hooks
from tailrace.errors import UserError
from tailrace.table import LONG, SHORT
from tailrace.vllm_plugin.host import PolicyHost

from .hosts import arrive, decide, fake, make_host, names, waiting


@pytest.mark.plain
def test_a_host_ranks_as_the_policy_says() -> None:
    host = make_host("psf")
    for name, arrival, length in (("l1", 0.0, LONG), ("s1", 1.0, SHORT), ("l2", 2.0, LONG), ("s2", 3.0, SHORT)):
        arrive(host, name, arrival, length)
    assert waiting(host, 4.0) == ["s1", "s2", "l1", "l2"]
    assert waiting(host, 4.0, free=0) == ["s1", "s2", "l1", "l2"]  # asking changes nothing


@pytest.mark.plain
def test_a_host_ranks_many_rows_as_python_does() -> None:
    host = make_host("sjf", capacity=1000, seqs=300)
    rng = np.random.default_rng(3)
    sizes = {f"r{i}": int(rng.integers(1, 50)) for i in range(700)}
    for i, (name, size) in enumerate(sizes.items()):
        arrive(host, name, float(i), prompt_tokens=size)
    in_order = sorted(sizes, key=lambda name: (sizes[name], int(name[1:])))
    assert waiting(host, 1000.0) == in_order
    started = list(sizes)[::3]
    host.note(dict.fromkeys(started, 1), dict.fromkeys(started, 0), [], 1000.0)
    order = names(decide(host, started, 1000, 1001.0).running)
    assert order == [name for name in in_order if name in started]
    assert waiting(host, 1001.0, started) == [name for name in in_order if name not in started]


@pytest.mark.plain
def test_rows_are_used_again_and_a_full_table_loses_nobody() -> None:
    host = make_host("psf", capacity=2)
    for name in ("a", "b", "c", "d", "e"):
        arrive(host, name, float(ord(name)))
    assert waiting(host, 200.0) == ["a", "b"]  # the queue has the others, behind them
    host.remove("d", hooks.ABORTED, 200.0)
    host.remove("a", hooks.ABORTED, 200.0)
    assert waiting(host, 201.0) == ["b", "c"]  # the first that found no row gets the free one
    step = host.note({"b": 10, "e": 10}, {"b": 0, "e": 0}, [], 201.0)  # e runs unranked, to its end
    assert names(host.requests_of(step)) == ["b"]
    host.remove("b", hooks.ABORTED, 202.0)
    host.remove("c", hooks.ABORTED, 202.0)
    assert host.rows == {}
    with pytest.raises(UserError, match="capacity=0"):
        make_host("psf", capacity=0)


@pytest.mark.plain
def test_a_request_that_may_run_for_ever() -> None:
    host = make_host("srpt", capacity=2)
    host.arrive(fake("a"), {"arrival_s": 0.0, "prompt_tokens": 5}, 10**30, 0.0)
    assert host._rows_state["output_tokens"][host.rows["a"]] == 2**31


@pytest.mark.plain
def test_a_preemption_that_was_planned_and_not_made() -> None:
    """KV pressure in the plan, none in the engine: the engine's account counts, and the mirror follows."""
    host = make_host("srpt", blocks=10, seqs=4)
    for name in ("a", "b"):
        arrive(host, name, 0.0, prompt_tokens=16)
        host.complete(host.note({name: 16}, {name: 0}, [], 0.0), [1], [16], [False], 1.0)
    decision = decide(host, ["a", "b"], 0, 2.0)
    assert decision.displaced == []
    host.commit(decision, {"a": 1}, {}, [])
    running = [host.requests[host.rows[name]] for name in ("a", "b")]
    assert host.records["preemptions"].sum() == 0
    assert names(host.decide(running, 9, 3.0).running) in ([], ["a", "b"], ["b", "a"])


def test_the_mirror_settles_what_it_did_not_see() -> None:
    host = make_host("fcfs")
    for name in ("a", "b"):
        arrive(host, name, 0.0, prompt_tokens=16)
    requests = [host.requests[host.rows[name]] for name in ("a", "b")]
    for request in requests:
        request.num_computed_tokens = 16
    assert host.decide(requests, 9, 1.0).front == []  # both run already, says the engine
    assert host.records["phase"][[host.rows["a"], host.rows["b"]]].tolist() == [3, 3]


@pytest.mark.plain
def test_a_row_that_changed_hands_while_its_step_ran() -> None:
    host = make_host("srpt", capacity=1)
    arrive(host, "a", 0.0)
    step = host.note({"a": 10}, {"a": 0}, [], 0.0)
    host.remove("a", hooks.ABORTED, 0.5)
    arrive(host, "b", 0.6, prompt_tokens=30)
    host.complete(step, [1], [10], [True], 1.0)
    assert list(host.rows) == ["b"]
    assert host.records["generated_tokens"][0] == 0
    assert waiting(host, 2.0) == ["b"]


@pytest.mark.plain
def test_a_request_that_left_while_its_step_ran() -> None:
    host = make_host("srpt")
    arrive(host, "a", 0.0)
    step = host.note({"a": 10}, {"a": 0}, [], 0.0)
    host.remove("a", hooks.ABORTED, 0.5)
    assert [request.request_id for request in host.requests_of(step)] == [""]
    host.complete(step, [1], [10], [True], 1.0)
    assert host.rows == {}
    assert len(host._free) == 64


def test_a_promotion_survives_a_preemption_in_the_host() -> None:
    """QBA's quota through the host's calls, as vLLM makes them."""
    host = make_host("qba", k=1, min_samples=1, aging_quantile=0.0)
    arrive(host, "l0", 0.0, LONG)
    assert waiting(host, 0.0) == ["l0"]
    host.complete(host.note({"l0": 10}, {"l0": 0}, [], 0.0), [1], [10], [False], 1.0)
    arrive(host, "l1", 1.0, LONG)
    arrive(host, "s1", 2.0)
    assert waiting(host, 3.0, ("l0",)) == ["s1", "l1"]
    step = host.note({"s1": 10}, {"s1": 0}, [], 3.0)
    host.complete(step, [1], [10], [True], 4.0)  # one short prefill done: a debt
    arrive(host, "s2", 4.0)
    assert waiting(host, 5.0, ("l0",)) == ["l1", "s2"]
    host.note({"l1": 5}, {"l1": 0}, [], 5.0)
    host.note({}, {}, ["l1"], 6.0)
    assert waiting(host, 7.0, ("l0",)) == ["l1", "s2"]


def _crowd(**given: Any) -> PolicyHost:
    """Two places, held by requests with 30 and 90 prompt tokens."""
    host = make_host("sjf", seqs=2, **given)
    for name, size in (("middle", 30), ("large", 90)):
        arrive(host, name, 0.0, prompt_tokens=size)
        host.complete(host.note({name: size}, {name: 0}, [], 1.0), [1], [size], [False], 2.0)
    return host


@pytest.mark.plain
def test_a_shorter_request_displaces_the_longest_at_the_cap() -> None:
    host = _crowd()
    arrive(host, "small", 3.0, prompt_tokens=5)
    decision = decide(host, ["middle", "large"], 900, 3.0)
    assert names(decision.displaced) == ["large"]
    assert names(decision.gaining) == names(decision.front) == ["small"]
    assert decision.running is None  # they are in order
    host.protect("large", 1)
    assert names(decide(host, ["middle", "large"], 900, 3.0).displaced) == ["middle"]
    host.protect("middle", 1)
    assert names(decide(host, ["middle", "large"], 900, 3.0).displaced) == []


@pytest.mark.plain
def test_equals_never_displace_each_other() -> None:
    host = _crowd()
    arrive(host, "same", 3.0, prompt_tokens=90)
    assert names(decide(host, ["middle", "large"], 900, 3.0).displaced) == []


@pytest.mark.plain
def test_nobody_is_displaced_for_a_request_that_would_not_start() -> None:
    """It outranks the one with 6 blocks; with that, 8 are free, and it may need 7 or 9."""
    for prompt, displaced in ((110, ["large"]), (130, [])):
        host = _crowd()
        host.records["predicted_output_tokens"][host.rows["large"]] = 1000
        arrive(host, "deep", 3.0, prompt_tokens=prompt)
        assert names(decide(host, ["middle", "large"], 2, 3.0).displaced) == displaced


def test_warming_up_leaves_no_trace() -> None:
    for name in ("qba", "vllm_priority", "uniboost"):
        host, fresh = make_host(name), make_host(name)
        host.warm()
        assert host.rows == {}
        assert len(host._free) == 64
        assert repr(host.engine.state) == repr(fresh.engine.state)
        np.testing.assert_array_equal(host.records, fresh.records)
        arrive(host, "a", 1.0)
        assert waiting(host, 1.0) == ["a"]


def test_the_plugin_is_light() -> None:
    text = "import tailrace.vllm_plugin, tailrace.vllm_plugin.host, tailrace.vllm_plugin.queue, sys;"
    text += "print(sorted({'vllm', 'torch', 'tailrace.sim.run'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout == "[]\n"
