"""The plugin's parts that need no vLLM."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tailrace import hooks, latency, params
from tailrace.errors import UserError
from tailrace.registry import POLICIES
from tailrace.vllm_plugin.honour import settle
from tailrace.vllm_plugin.host import PolicyHost
from tailrace.vllm_plugin.queue import RankedQueue


def _request(name: str) -> Any:
    return SimpleNamespace(request_id=name)


def test_a_queue_keeps_the_order_it_is_given() -> None:
    queue = RankedQueue()
    a, b, c = (_request(name) for name in "abc")
    for request in (a, b, c):
        queue.add_request(request)
    queue.reorder(["c", "a", "b"])
    assert [r.request_id for r in queue] == ["c", "a", "b"]
    assert queue.peek_request() is c
    assert queue.pop_request() is c
    queue.prepend_request(c)
    queue.prepend_requests([b])
    assert [r.request_id for r in queue] == ["b", "c", "a"]
    queue.remove_request(c)
    queue.remove_requests([c, a])
    assert len(queue) == 1
    assert b in queue
    assert a not in queue
    with pytest.raises(ValueError, match="does not wait"):
        queue.remove_request(a)
    with pytest.raises(ValueError, match="does not name every"):
        queue.reorder([])
    queue.pop_request()
    assert not queue
    with pytest.raises(IndexError):
        queue.peek_request()


def _host(name: str, capacity: int = 64, **given: Any) -> PolicyHost:
    cls = POLICIES.get(name)
    values = params.build(cls.Params, given, name)
    return PolicyHost(cls, values, latency.build("piecewise:constant_s=0,per_token_s=0").cost, capacity)


def _columns(arrival_s: float, predicted_class: int = 0, **more: float) -> dict[str, float]:
    return {"arrival_s": arrival_s, "prompt_tokens": 10, "predicted_class": predicted_class, **more}


def test_a_host_ranks_as_the_policy_says() -> None:
    host = _host("psf")
    for name, arrival, length in (("l1", 0.0, 1), ("s1", 1.0, 0), ("l2", 2.0, 1), ("s2", 3.0, 0)):
        host.arrive(name, _columns(arrival, length), arrival)
    assert host.rank(["l1", "s1", "l2", "s2"], [], False, 4.0)[0] == ["s1", "s2", "l1", "l2"]


def test_a_host_sorts_many_rows_as_python_does() -> None:
    host = _host("sjf", capacity=1000)
    rng = np.random.default_rng(3)
    sizes = {f"r{i}": int(rng.integers(1, 50)) for i in range(700)}
    for i, (name, size) in enumerate(sizes.items()):
        host.arrive(name, {"arrival_s": float(i), "prompt_tokens": size}, float(i))
    waiting, running = list(sizes)[:500], list(sizes)[500:]
    first, second = host.rank(waiting, running, True, 1000.0)
    assert first == sorted(waiting, key=lambda name: (sizes[name], int(name[1:])))
    assert second == sorted(running, key=lambda name: (sizes[name], int(name[1:])))


def test_rows_are_used_again_and_a_full_table_loses_nobody() -> None:
    host = _host("psf", capacity=2)
    for name in ("a", "b", "c"):
        host.arrive(name, _columns(float(ord(name))), 0.0)
    assert host.unranked == 1
    assert host.rank(["c", "b", "a"], [], False, 1.0)[0] == ["a", "b", "c"]
    host.remove("a", hooks.ABORTED, 1.0)
    host.remove("c", hooks.ABORTED, 1.0)
    host.arrive("d", _columns(5.0, preemptions=0), 5.0)
    assert sorted(host.rows) == ["b", "d"]
    with pytest.raises(UserError, match="capacity=0"):
        _host("psf", capacity=0)


def test_a_promotion_survives_a_preemption_in_the_host() -> None:
    """QBA's quota through the host's calls, as vLLM makes them."""
    host = _host("qba", k=1, min_samples=1, aging_quantile=0.0)
    host.arrive("l0", _columns(0.0, 1), 0.0)
    host.rank(["l0"], [], False, 0.0)
    host.commit([], ["l0"], [("l0", 10, True)], 0.0)
    host.complete([("l0", 10, True, 1, False)], 1.0, 1.0)
    host.arrive("l1", _columns(1.0, 1), 1.0)
    host.arrive("s1", _columns(2.0, 0), 2.0)
    assert host.rank(["l1", "s1"], ["l0"], False, 3.0)[0] == ["s1", "l1"]
    host.commit([], ["s1"], [("s1", 10, True)], 3.0)
    host.complete([("s1", 10, True, 1, True)], 1.0, 4.0)  # one short prefill done: a debt
    host.arrive("s2", _columns(4.0, 0), 4.0)
    assert host.rank(["l1", "s2"], ["l0"], False, 5.0)[0] == ["l1", "s2"]
    host.commit([], ["l1"], [("l1", 5, False)], 5.0)
    host.commit(["l1"], [], [], 6.0)
    assert host.rank(["s2", "l1"], ["l0"], False, 7.0)[0] == ["l1", "s2"]


def test_warming_up_leaves_no_trace() -> None:
    for name in ("qba", "vllm_priority"):
        host, fresh = _host(name), _host(name)
        host.warm()
        assert host.rows == {}
        assert len(host._free) == 64
        for ours, theirs in zip(host.state, fresh.state, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        host.arrive("a", _columns(1.0), 1.0)
        assert host.rank(["a"], [], False, 1.0)[0] == ["a"]


def test_rules_honoured_and_refused() -> None:
    srpt = POLICIES.get("srpt")
    honoured, refused = settle(srpt, params.build(srpt.Params, {}, "srpt"))
    assert honoured["order_scope"] == "all"
    assert "phase_order" in refused
    sarathi = POLICIES.get("sarathi")
    with pytest.raises(UserError, match="engine rules alone"):
        settle(sarathi, params.build(sarathi.Params, {}, "sarathi"))


def test_the_plugin_is_light() -> None:
    text = "import tailrace.vllm_plugin, tailrace.vllm_plugin.host, tailrace.vllm_plugin.queue, sys;"
    text += "print(sorted({'vllm', 'torch', 'tailrace.sim.run'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout == "[]\n"
