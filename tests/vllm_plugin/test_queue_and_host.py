"""The plugin's parts that need no vLLM."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tailrace import hooks, latency, params
from tailrace.errors import UserError
from tailrace.hooks import Policy
from tailrace.registry import POLICIES
from tailrace.rules import EngineRules, merge
from tailrace.schedule.engine import Limits
from tailrace.table import LONG, SHORT
from tailrace.vllm_plugin.asks import Classes, columns
from tailrace.vllm_plugin.honour import HostMemory, host_memory, settle
from tailrace.vllm_plugin.host import Decision, PolicyHost
from tailrace.vllm_plugin.queue import RankedQueue


def _request(name: str) -> Any:
    return SimpleNamespace(request_id=name, num_computed_tokens=0)


def test_a_queue_keeps_the_order_it_is_given() -> None:
    queue = RankedQueue()
    a, b, c, d = (_request(name) for name in "abcd")
    for request in (a, b, c, d):
        queue.add_request(request)
    pages = [[b], [d], []]
    queue.order([c, a], lambda: pages.pop(0))
    assert queue.peek_request() is c
    assert [queue.pop_request() for _ in range(4)] == [c, a, b, d]
    assert not queue
    with pytest.raises(IndexError):
        queue.peek_request()
    queue.prepend_request(c)
    queue.prepend_requests([b, a])
    assert [r.request_id for r in queue] == ["c", "b", "a"]
    queue.remove_request(c)
    queue.remove_requests([c, a])
    assert len(queue) == 1
    assert b in queue
    assert a not in queue
    assert _request("b") not in queue  # another of the same name
    with pytest.raises(ValueError, match="does not wait"):
        queue.remove_request(a)


def test_a_request_put_back_waits_for_the_next_order() -> None:
    queue = RankedQueue()
    a, b, c = (_request(name) for name in "abc")
    for request in (a, b):
        queue.add_request(request)
    queue.order([a, b])
    assert queue.pop_request() is a
    queue.prepend_request(c)
    assert queue.peek_request() is b
    queue.order([a])  # gone meanwhile: those that nobody ranked come in order of coming
    assert queue.peek_request() is b


def test_a_barred_request_is_not_seen() -> None:
    queue = RankedQueue()
    a, b = _request("a"), _request("b")
    queue.add_request(a)
    queue.add_request(b)
    queue.order([a, b])
    queue.bar(["a"])
    assert len(queue) == 2
    assert queue.pop_request() is b
    assert not queue
    with pytest.raises(IndexError):
        queue.peek_request()
    queue.bar([])
    assert queue.peek_request() is a


def test_a_bounded_queue_seems_empty_once_no_more_may_be_taken() -> None:
    queue, left = RankedQueue(), 2
    for name in "abc":
        queue.add_request(_request(name))
    queue.bound(lambda: left - len(queue.taken))
    queue.order([])
    taken = []
    while queue:
        taken.append(queue.pop_request().request_id)
    assert taken == ["a", "b"]
    assert len(queue) == 1
    queue.order([])  # the next step
    assert queue


FREE_STEPS = "piecewise:constant_s=0,per_token_s=0"


def _host(
    name: str, capacity: int = 64, blocks: int = 1000, seqs: int = 8, latency_text: str = FREE_STEPS, **given: Any
) -> PolicyHost:
    cls = POLICIES.get(name)
    values = params.build(cls.Params, given, name)
    honoured, _ = settle(cls, values)
    cost = latency.build(latency_text).cost
    rules = merge(EngineRules(), honoured, name)
    return PolicyHost(cls, values, cost, Limits(256, seqs, blocks * 16), rules, capacity)


def _arrive(host: PolicyHost, name: str, arrival_s: float, length: int = SHORT, **more: float) -> None:
    given = {"arrival_s": arrival_s, "prompt_tokens": 10, "predicted_class": length, **more}
    host.arrive(_request(name), given, 100, arrival_s)


def _names(requests: list[Any] | None) -> list[str]:
    return [request.request_id for request in requests or ()]


def _decide(host: PolicyHost, running: Iterable[str], free: int, now: float) -> Decision:
    return host.decide([host.requests[host.rows[name]] for name in running], free, now)


def _waiting(host: PolicyHost, now: float, running: Iterable[str] = (), free: int = 1000) -> list[str]:
    """All of the waiting, in order."""
    found = _decide(host, running, free, now).front
    while page := host.more(now):
        found += page
    return _names(found)


@pytest.mark.plain
def test_a_host_ranks_as_the_policy_says() -> None:
    host = _host("psf")
    for name, arrival, length in (("l1", 0.0, LONG), ("s1", 1.0, SHORT), ("l2", 2.0, LONG), ("s2", 3.0, SHORT)):
        _arrive(host, name, arrival, length)
    assert _waiting(host, 4.0) == ["s1", "s2", "l1", "l2"]
    assert _waiting(host, 4.0, free=0) == ["s1", "s2", "l1", "l2"]  # asking changes nothing


@pytest.mark.plain
def test_a_host_ranks_many_rows_as_python_does() -> None:
    host = _host("sjf", capacity=1000, seqs=300)
    rng = np.random.default_rng(3)
    sizes = {f"r{i}": int(rng.integers(1, 50)) for i in range(700)}
    for i, (name, size) in enumerate(sizes.items()):
        _arrive(host, name, float(i), prompt_tokens=size)
    in_order = sorted(sizes, key=lambda name: (sizes[name], int(name[1:])))
    assert _waiting(host, 1000.0) == in_order
    started = list(sizes)[::3]
    host.note(dict.fromkeys(started, 1), dict.fromkeys(started, 0), [], 1000.0)
    order = _names(_decide(host, started, 1000, 1001.0).running)
    assert order == [name for name in in_order if name in started]
    assert _waiting(host, 1001.0, started) == [name for name in in_order if name not in started]


@pytest.mark.plain
def test_rows_are_used_again_and_a_full_table_loses_nobody() -> None:
    host = _host("psf", capacity=2)
    for name in ("a", "b", "c", "d", "e"):
        _arrive(host, name, float(ord(name)))
    assert _waiting(host, 200.0) == ["a", "b"]  # the queue has the others, behind them
    host.remove("d", hooks.ABORTED, 200.0)
    host.remove("a", hooks.ABORTED, 200.0)
    assert _waiting(host, 201.0) == ["b", "c"]  # the first that found no row gets the free one
    step = host.note({"b": 10, "e": 10}, {"b": 0, "e": 0}, [], 201.0)  # e runs unranked, to its end
    assert _names(host.requests_of(step)) == ["b"]
    host.remove("b", hooks.ABORTED, 202.0)
    host.remove("c", hooks.ABORTED, 202.0)
    assert host.rows == {}
    with pytest.raises(UserError, match="capacity=0"):
        _host("psf", capacity=0)


@pytest.mark.plain
def test_a_request_that_may_run_for_ever() -> None:
    host = _host("srpt", capacity=2)
    host.arrive(_request("a"), {"arrival_s": 0.0, "prompt_tokens": 5}, 10**30, 0.0)
    assert host._rows_state["output_tokens"][host.rows["a"]] == 2**31


@pytest.mark.plain
def test_a_preemption_that_was_planned_and_not_made() -> None:
    """KV pressure in the plan, none in the engine: the engine's account counts, and the mirror follows."""
    host = _host("srpt", blocks=10, seqs=4)
    for name in ("a", "b"):
        _arrive(host, name, 0.0, prompt_tokens=16)
        host.complete(host.note({name: 16}, {name: 0}, [], 0.0), [1], [16], [False], 1.0)
    decision = _decide(host, ["a", "b"], 0, 2.0)
    assert decision.displaced == []
    host.commit(decision, {"a": 1}, {}, [])
    running = [host.requests[host.rows[name]] for name in ("a", "b")]
    assert host.records["preemptions"].sum() == 0
    assert _names(host.decide(running, 9, 3.0).running) in ([], ["a", "b"], ["b", "a"])


def test_the_mirror_settles_what_it_did_not_see() -> None:
    host = _host("fcfs")
    for name in ("a", "b"):
        _arrive(host, name, 0.0, prompt_tokens=16)
    requests = [host.requests[host.rows[name]] for name in ("a", "b")]
    for request in requests:
        request.num_computed_tokens = 16
    assert host.decide(requests, 9, 1.0).front == []  # both run already, says the engine
    assert host.records["phase"][[host.rows["a"], host.rows["b"]]].tolist() == [3, 3]


@pytest.mark.plain
def test_a_row_that_changed_hands_while_its_step_ran() -> None:
    host = _host("srpt", capacity=1)
    _arrive(host, "a", 0.0)
    step = host.note({"a": 10}, {"a": 0}, [], 0.0)
    host.remove("a", hooks.ABORTED, 0.5)
    _arrive(host, "b", 0.6, prompt_tokens=30)
    host.complete(step, [1], [10], [True], 1.0)
    assert list(host.rows) == ["b"]
    assert host.records["generated_tokens"][0] == 0
    assert _waiting(host, 2.0) == ["b"]


@pytest.mark.plain
def test_a_request_that_left_while_its_step_ran() -> None:
    host = _host("srpt")
    _arrive(host, "a", 0.0)
    step = host.note({"a": 10}, {"a": 0}, [], 0.0)
    host.remove("a", hooks.ABORTED, 0.5)
    assert [request.request_id for request in host.requests_of(step)] == [""]
    host.complete(step, [1], [10], [True], 1.0)
    assert host.rows == {}
    assert len(host._free) == 64


def test_a_promotion_survives_a_preemption_in_the_host() -> None:
    """QBA's quota through the host's calls, as vLLM makes them."""
    host = _host("qba", k=1, min_samples=1, aging_quantile=0.0)
    _arrive(host, "l0", 0.0, LONG)
    assert _waiting(host, 0.0) == ["l0"]
    host.complete(host.note({"l0": 10}, {"l0": 0}, [], 0.0), [1], [10], [False], 1.0)
    _arrive(host, "l1", 1.0, LONG)
    _arrive(host, "s1", 2.0)
    assert _waiting(host, 3.0, ("l0",)) == ["s1", "l1"]
    step = host.note({"s1": 10}, {"s1": 0}, [], 3.0)
    host.complete(step, [1], [10], [True], 4.0)  # one short prefill done: a debt
    _arrive(host, "s2", 4.0)
    assert _waiting(host, 5.0, ("l0",)) == ["l1", "s2"]
    host.note({"l1": 5}, {"l1": 0}, [], 5.0)
    host.note({}, {}, ["l1"], 6.0)
    assert _waiting(host, 7.0, ("l0",)) == ["l1", "s2"]


def _crowd(**given: Any) -> PolicyHost:
    """Two places, held by requests with 30 and 90 prompt tokens."""
    host = _host("sjf", seqs=2, **given)
    for name, size in (("middle", 30), ("large", 90)):
        _arrive(host, name, 0.0, prompt_tokens=size)
        host.complete(host.note({name: size}, {name: 0}, [], 1.0), [1], [size], [False], 2.0)
    return host


@pytest.mark.plain
def test_a_shorter_request_displaces_the_longest_at_the_cap() -> None:
    host = _crowd()
    _arrive(host, "small", 3.0, prompt_tokens=5)
    decision = _decide(host, ["middle", "large"], 900, 3.0)
    assert _names(decision.displaced) == ["large"]
    assert _names(decision.gaining) == _names(decision.front) == ["small"]
    assert decision.running is None  # they are in order
    host.protect("large", 1)
    assert _names(_decide(host, ["middle", "large"], 900, 3.0).displaced) == ["middle"]
    host.protect("middle", 1)
    assert _names(_decide(host, ["middle", "large"], 900, 3.0).displaced) == []


@pytest.mark.plain
def test_equals_never_displace_each_other() -> None:
    host = _crowd()
    _arrive(host, "same", 3.0, prompt_tokens=90)
    assert _names(_decide(host, ["middle", "large"], 900, 3.0).displaced) == []


@pytest.mark.plain
def test_nobody_is_displaced_for_a_request_that_would_not_start() -> None:
    """It outranks the one with 6 blocks; with that, 8 are free, and it may need 7 or 9."""
    for prompt, displaced in ((110, ["large"]), (130, [])):
        host = _crowd()
        host.records["predicted_output_tokens"][host.rows["large"]] = 1000
        _arrive(host, "deep", 3.0, prompt_tokens=prompt)
        assert _names(_decide(host, ["middle", "large"], 2, 3.0).displaced) == displaced


def test_warming_up_leaves_no_trace() -> None:
    for name in ("qba", "vllm_priority", "uniboost"):
        host, fresh = _host(name), _host(name)
        host.warm()
        assert host.rows == {}
        assert len(host._free) == 64
        assert repr(host.engine.state) == repr(fresh.engine.state)
        np.testing.assert_array_equal(host.records, fresh.records)
        _arrive(host, "a", 1.0)
        assert _waiting(host, 1.0) == ["a"]


def test_what_a_client_sends() -> None:
    classes = Classes({"gold": {"weight": 4, "ttft_slo_ms": 500}, "basic": {}})
    told = {"tailrace_predicted_output_tokens": 12, "tailrace_predicted_class": "long", "tailrace_class": "basic"}
    found = columns({**told, "tailrace_tpot_slo_ms": 50}, 99, classes)
    assert (found["predicted_output_tokens"], found["predicted_class"], found["class_id"]) == (12, LONG, 1)
    assert (found["weight"], found["ttft_slo_s"], found["tpot_slo_s"]) == (1.0, math.inf, 0.05)
    absent = columns({}, 99, classes)
    assert (absent["predicted_output_tokens"], absent["predicted_class"], absent["weight"]) == (99, SHORT, 4.0)
    assert absent["ttft_slo_s"] == 0.5


@pytest.mark.parametrize("value", ["abc", -1, 0, True, [1], {}, float("nan"), float("inf"), 10**400])
def test_nothing_a_client_sends_stops_the_engine(value: Any) -> None:
    fields = ("predicted_output_tokens", "predicted_class", "class", "ttft_slo_ms", "tpot_slo_ms")
    found = columns({f"tailrace_{field}": value for field in fields}, 99, Classes())
    assert found == columns({}, 99, Classes())


def test_mistakes_in_classes() -> None:
    for given, message in (
        ({"a": {"wieght": 1}}, "did you mean 'weight'"),
        ({"a": {"weight": 0}}, "must be a number above 0"),
        ({"a": 3}, "must be an object"),
        ([], "tailrace.classes must be"),
    ):
        with pytest.raises(UserError, match=message):
            Classes(given)


def test_rules_honoured_and_refused() -> None:
    srpt = POLICIES.get("srpt")
    honoured, refused = settle(srpt, params.build(srpt.Params, {}, "srpt"))
    assert honoured["order_scope"] == "all"
    assert "phase_order" in refused
    swapping = type("Swapping", (Policy,), {"rules": staticmethod(lambda params: {"evict": "swap", "victim": "tail"})})
    assert settle(swapping, None) == ({"victim": "tail"}, {"evict": "swap"})  # vLLM V1 recomputes
    sarathi = POLICIES.get("sarathi")
    with pytest.raises(UserError, match="engine rules alone"):
        settle(sarathi, params.build(sarathi.Params, {}, "sarathi"))


def _transfer(connector: str | None, **extra: Any) -> Any:
    return SimpleNamespace(kv_connector=connector, kv_connector_extra_config=extra)


@pytest.mark.parametrize(
    ("transfer", "kept", "said"),
    [
        (None, HostMemory(), "--kv-transfer-config"),
        (_transfer("NixlConnector"), HostMemory(), "no KV offloading connector"),
        (_transfer("OffloadingConnector"), HostMemory("OffloadingConnector"), '"offload_prompt_only": false'),
        (
            _transfer("OffloadingConnector", offload_prompt_only=False),
            HostMemory("OffloadingConnector", whole=True),
            "OffloadingConnector loads their full blocks",
        ),
        (_transfer("LMCacheConnectorV1"), HostMemory("LMCacheConnectorV1"), "LMCacheConnectorV1 loads back what"),
        (
            _transfer(
                "MultiConnector",
                connectors=[
                    {"kv_connector": "NixlConnector"},
                    {
                        "kv_connector": "OffloadingConnector",
                        "kv_connector_extra_config": {"offload_prompt_only": False},
                    },
                ],
            ),
            HostMemory("OffloadingConnector", whole=True),
            "OffloadingConnector loads their full blocks",
        ),
    ],
)
def test_what_a_connector_keeps(transfer: Any, kept: HostMemory, said: str) -> None:
    assert host_memory(transfer) == kept
    assert said in str(kept)


def test_swap_is_honoured_where_all_of_a_request_is_kept() -> None:
    trail = POLICIES.get("trail")
    chosen = params.build(trail.Params, {"rule": "swap"}, "trail")
    for memory in (HostMemory(), HostMemory("OffloadingConnector"), HostMemory("OffloadingConnector", whole=True)):
        honoured, refused = settle(trail, chosen, memory)
        assert honoured.get("evict") == ("swap" if memory.whole else None)
        assert refused.get("evict") == (None if memory.whole else "swap")
    stock = POLICIES.get("vllm_fcfs")  # asks for recompute, and more is no harm
    assert settle(stock, params.build(stock.Params, {}, ""), HostMemory("x", whole=True))[1] == {}


ORDERING = ("order_scope", "victim", "may_preempt_at_cap", "may_preempt_for_kv")


@pytest.mark.parametrize(
    ("name", "given", "refused"),
    [
        ("las", {}, {"phase_order", "continuation_first"}),
        ("mlfq", {}, {"phase_order", "continuation_first"}),
        ("spf", {}, set()),
        ("ltr", {}, {"phase_order", "continuation_first"}),
        ("trail", {}, {"phase_order", "continuation_first"}),
        ("trail", {"rule": "swap"}, {"phase_order", "continuation_first", "evict"}),
        ("trail", {"rule": "decode_first"}, {"phase_order", "continuation_first"}),
        ("gamma_boost", {}, {"phase_order", "continuation_first"}),
        ("dist_boost", {"decodes": 64}, {"phase_order", "continuation_first", "decode_cap"}),
        ("uniboost_base", {}, {"phase_order", "continuation_first"}),
        ("memguard", {}, {"phase_order", "continuation_first"}),
        ("uniboost", {}, {"phase_order", "continuation_first"}),
        ("uniboost_rekeyed", {}, {"phase_order", "continuation_first"}),
        ("slide", {}, {"phase_order", "continuation_first"}),
        (
            "slide",
            {"preset": "xllm", "misfit": "skip"},
            {"phase_order", "continuation_first", "misfit", "min_last_chunk"},
        ),
        ("edf", {}, {"phase_order", "continuation_first"}),
        ("fairbatching", {}, {"phase_order", "continuation_first"}),
        ("vtc", {}, set()),
        ("sarathi_priority", {}, {"phase_order", "admit", "watermark"}),
        ("sarathi_priority", {"begun": "ranked"}, {"phase_order", "continuation_first", "admit", "watermark"}),
    ],
)
def test_what_vllm_carries_of_each_policy(name: str, given: dict[str, Any], refused: set[str]) -> None:
    """Order, victims and displacing always; a step's phases, caps and swapping are vLLM's own."""
    policy = POLICIES.get(name)
    chosen = params.build(policy.Params, given, name)
    honoured, dropped = settle(policy, chosen)
    assert set(dropped) == refused
    assert set(honoured) == set(policy.rules(chosen)) - refused
    assert {rule for rule in policy.rules(chosen) if rule in ORDERING} <= set(honoured)


@pytest.mark.parametrize("name", ["sarathi", "prefill_first"])
def test_an_engine_of_its_own_is_refused_by_name(name: str) -> None:
    policy = POLICIES.get(name)
    with pytest.raises(UserError, match=f"policy {name} is engine rules alone.*phase_order"):
        settle(policy, params.build(policy.Params, {}, name))


@pytest.mark.plain
def test_edf_in_the_host_goes_by_deadlines_and_displaces_for_kv() -> None:
    host = _host("edf", seqs=2, blocks=8)
    _arrive(host, "a", 0.0, prompt_tokens=100, ttft_slo_s=90.0, tpot_slo_s=5.0)
    host.complete(host.note({"a": 100}, {"a": 0}, [], 0.0), [1], [100], [False], 1.0)
    _arrive(host, "b", 1.0, prompt_tokens=64, ttft_slo_s=95.5, tpot_slo_s=5.0)
    assert _names(_decide(host, ["a"], 1, 1.0).displaced) == []  # a is due at 95, b at 96.5
    _arrive(host, "c", 2.0, prompt_tokens=64, ttft_slo_s=10.0, tpot_slo_s=5.0)
    decision = _decide(host, ["a"], 1, 2.0)
    assert _names(decision.displaced) == ["a"]
    assert _names(decision.front)[:1] == ["c"]


@pytest.mark.plain
def test_fairbatchings_seconds_reach_the_host_as_tokens() -> None:
    host = _host("fairbatching", latency_text="piecewise:constant_s=0.5,per_token_s=0.125,knee_tokens=0")
    _arrive(host, "a", 0.0, prompt_tokens=10, ttft_slo_s=6.0, tpot_slo_s=1.0)
    assert _decide(host, [], 900, 0.0).most_tokens is None  # no decodes: any length
    host.complete(host.note({"a": 10}, {"a": 0}, [], 0.0), [1], [10], [False], 2.0)
    _arrive(host, "b", 2.0, prompt_tokens=200, ttft_slo_s=6.0, tpot_slo_s=1.0)
    assert _decide(host, ["a"], 900, 2.0).most_tokens == 36  # due at 7: 5 s, less 0.5, at 8 tokens a second
    assert _decide(host, ["a"], 900, 6.5).most_tokens == 4  # no less than the TPOT SLO


@pytest.mark.plain
def test_vtc_in_the_host_serves_who_had_least() -> None:
    host = _host("vtc", seqs=1)
    for number, (name, class_id, weight) in enumerate([("a", 0, 1.0), ("b", 0, 1.0), ("c", 1, 4.0), ("d", 1, 4.0)]):
        _arrive(host, name, float(number), class_id=class_id, weight=weight)
    host.complete(host.note({"a": 10}, {"a": 0}, [], 4.0), [1], [10], [True], 5.0)
    # Class 0 has had 10 + 2. Class 1 nothing, 2.5 with c, and less than that again with d.
    decision = _decide(host, [], 900, 5.0)
    assert _names(decision.front + host.more(5.0))[:3] == ["c", "d", "b"]


def test_a_locked_request_is_not_displaced_in_the_host() -> None:
    """memguard through the host's calls: it yields at a milestone, and not a token later."""
    given: dict[str, Any] = {
        "k_tokens": 16,
        "lock": "milestone",
        "gamma_per_s": 0.001,
        "hysteresis_s": 0.0,
        "seconds_per_token": 1.0,
    }
    host = _host("memguard", seqs=1, **given)
    _arrive(host, "a", 0.0, prompt_tokens=60)
    host.complete(host.note({"a": 60}, {"a": 0}, [], 0.0), [1], [60], [False], 1.0)
    _arrive(host, "b", 1.0, prompt_tokens=10)
    assert _names(_decide(host, ["a"], 900, 1.0).displaced) == []  # 60 of 64 tokens
    host.complete(host.note({"a": 4}, {}, [], 1.0), [5], [64], [False], 2.0)
    assert _names(_decide(host, ["a"], 900, 2.0).displaced) == ["a"]
    host.complete(host.note({"a": 1}, {}, [], 2.0), [6], [65], [False], 3.0)
    assert _names(_decide(host, ["a"], 900, 3.0).displaced) == []


def test_the_plugin_is_light() -> None:
    text = "import tailrace.vllm_plugin, tailrace.vllm_plugin.host, tailrace.vllm_plugin.queue, sys;"
    text += "print(sorted({'vllm', 'torch', 'tailrace.sim.run'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout == "[]\n"
