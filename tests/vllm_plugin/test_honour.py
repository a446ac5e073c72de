"""Which rules vLLM honours."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tailrace import params
from tailrace.errors import UserError
from tailrace.hooks import Policy
from tailrace.registry import POLICIES
from tailrace.vllm_plugin.honour import HostMemory, host_memory, settle


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
