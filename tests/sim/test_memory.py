"""What an engine's blocks are under its rules, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.config import EngineConfig, engine
from tailrace.errors import UserError
from tailrace.latency import Latency, PiecewiseParams, build
from tailrace.policies.predicted import SWAP
from tailrace.registry import POLICIES
from tailrace.rules import managed
from tailrace.schedule.blocks import Blocks, Counted
from tailrace.schedule.host import HostKV
from tailrace.schedule.managed import ManagedKV
from tailrace.schedule.tiered import Tiered
from tailrace.schedule.transfer import IN, OUT
from tailrace.sim import memory
from tailrace.sim.run import Instance, settle
from tailrace.workloads.workload import Workload

NO_BYTES = Latency("plain", PiecewiseParams(), None, "")
LLAMA = build("llama-3-8b-a100-derived")
W = Workload.of([0.0, 1.0], [30, 30], [4, 4], name="two")


def config(**overrides: Any) -> EngineConfig:
    return engine("vllm_v1", {"kv_tokens": 256, **overrides})


def blocks(latency: Latency = LLAMA, **overrides: Any) -> Any:
    fcfs = POLICIES.get("fcfs")
    assert fcfs.Params is not None
    return Instance(W, fcfs, fcfs.Params(), config(**overrides), latency).engine.blocks


def test_each_rule_has_its_kind_of_blocks() -> None:
    assert isinstance(blocks(), Counted)
    assert isinstance(blocks(prefix_cache=True), Blocks)
    assert isinstance(blocks(evict="swap", host_kv_tokens=1000), HostKV)
    assert isinstance(blocks(evict="swap", host_kv_tokens=1000, prefix_cache=True), Tiered)
    for name, value in (("swap_out", "ahead"), ("reload", "layerwise"), ("copy_budget", "adaptive")):
        asked: dict[str, Any] = {name: value}
        assert isinstance(blocks(evict="swap", host_kv_tokens=1000, **asked), ManagedKV)


def test_the_layers_are_the_models_and_lighter_classes_are_copied_more_often() -> None:
    how: dict[str, Any] = {"evict": "swap", "host_kv_tokens": 1000, "swap_out": "ahead", "offload_blocks": 6}
    assert blocks(**how).offload.layers[0] == 1
    assert blocks(**how, reload="layerwise").offload.layers[0] == 32
    assert blocks(**how, reload="layerwise", layers=4).offload.layers[0] == 4
    named: dict[str, Any] = {"class_names": ("a", "b", "c"), "class_weights": (4.0, 2.0, 0.1), "class_id": [0, 1, 2]}
    w = Workload.of([0.0] * 3, [5] * 3, [5] * 3, name="three", **named)
    fcfs = POLICIES.get("fcfs")
    assert fcfs.Params is not None
    run = Instance(w, fcfs, fcfs.Params(), config(**how), LLAMA)
    assert run.engine.blocks.orders.every_blocks.tolist() == [6, 3, 1]


def test_speed_and_size_of_host_memory() -> None:
    """131,072 bytes a token (2·32 layers·8 heads·128·2 bytes): 2 MiB a block of 16."""
    held = blocks(evict="swap", host_kv_tokens=1000, swap_out_gb_per_s=20, swap_in_gb_per_s="25")
    assert (held.host.total_blocks[0], held.host.free_blocks[0]) == (62, 62)
    assert held.lanes.block_s[OUT] == pytest.approx(16 * 131_072 / 20e9)
    assert held.lanes.block_s[IN] == pytest.approx(16 * 131_072 / 25e9)
    given = blocks(NO_BYTES, evict="swap", host_kv_tokens=1000, kv_bytes_per_token=1000)
    assert given.lanes.block_s[IN] == pytest.approx(16_000 / 25e9)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({}, "evict=swap needs host memory.*give host_kv_tokens="),
        ({"host_kv_tokens": 15}, "give host_kv_tokens="),
        ({"host_kv_tokens": 1000}, "latency 'plain' does not say; give kv_bytes_per_token="),
        ({"prefix_cache": True}, "evict=swap needs host memory.*give host_kv_tokens="),
        ({"prefix_cache": True, "admit": "prompt"}, "prefix_cache needs admit=chunk and kv_limit=enforced"),
        (
            {"host_kv_tokens": 1000, "prefix_cache": True, "swap_out": "when_needed"},
            "swap_out=when_needed does not go with prefix_cache=true",
        ),
        (
            {"host_kv_tokens": 1000, "prefix_cache": True, "copy_budget": "adaptive"},
            "copy_budget=adaptive does not go with prefix_cache=true yet: use copy_budget=all",
        ),
        (
            {"host_kv_tokens": 1000, "kv_bytes_per_token": 1000, "reload": "layerwise"},
            "reload=layerwise needs the model's layers, and latency 'plain' does not say; give layers=",
        ),
        ({"partial_copy_beta": 1.0}, "partial_copy_beta=1.0 must be 0 or a number above 1"),
        ({"offload_blocks": 0}, "offload_blocks=0 must be a whole number of at least 1"),
        ({"host_kv_tokens": -1}, "host_kv_tokens=-1 must be a whole number of at least 0"),
        ({"swap_in_gb_per_s": 0}, "swap_in_gb_per_s=0 must be a number above 0"),
        ({"swap_out_gb_per_s": "fast"}, "swap_out_gb_per_s='fast' must be a number above 0"),
    ],
)
def test_what_is_refused(overrides: dict[str, Any], message: str) -> None:
    fcfs = POLICIES.get("fcfs")
    with pytest.raises(UserError, match=message):
        settle(fcfs, None, config(evict="swap", **overrides), NO_BYTES)


def test_a_policy_that_recomputes_needs_no_host_memory() -> None:
    sarathi = POLICIES.get("sarathi")
    rules, _ = settle(sarathi, None, config(evict="swap"), NO_BYTES)
    assert rules.evict == "recompute"
    rules, _ = settle(sarathi, None, config(evict="swap", swap_out="when_needed"), NO_BYTES)
    assert (rules.evict, rules.swap_out) == ("recompute", "at_once")
    rules, _ = settle(sarathi, None, config(evict="swap", swap_out="ahead", reload="layerwise"), NO_BYTES)
    assert managed(rules) == []


def test_when_to_copy_out_is_said_of_who_swaps() -> None:
    fcfs, trail = POLICIES.get("fcfs"), POLICIES.get("trail")
    with pytest.raises(UserError, match=r"^rule swap_out=when_needed needs evict=swap$"):
        settle(fcfs, None, config(swap_out="when_needed"), LLAMA)
    with pytest.raises(UserError, match=r"^rule copy_budget=adaptive needs evict=swap$"):
        settle(fcfs, None, config(copy_budget="adaptive"), LLAMA)
    assert trail.Params is not None
    params = trail.Params()._replace(rule=SWAP)
    rules, _ = settle(trail, params, config(swap_out="when_needed", host_kv_tokens=1000), LLAMA)
    assert (rules.evict, rules.swap_out) == ("swap", "when_needed")


def test_without_host_memory_a_result_says_nothing_of_it() -> None:
    rules = config().rules
    assert memory.swap_counts(blocks()) == {}
    assert memory.swap_summary({"busy_s": 1.0}, {}, 16) == {}
    assert memory.swap_settings(rules, config(), NO_BYTES) == {}
