"""Which engine rules vLLM honours, and which a policy must do without there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..errors import UserError
from ..hooks import Policy
from ..rules import VLLM_V1

__all__ = ["FREE_RULES", "HostMemory", "host_memory", "settle"]

FREE_RULES: Final = ("order_scope", "victim", "may_preempt_at_cap", "may_preempt_for_kv")
"""Rules that a policy may choose: vLLM's queue and running list take any order, any running
request can be made its victim, and preempted before a step. All others are vLLM's own."""

NATIVE: Final = "OffloadingConnector"
"""vLLM's own (``--kv-offloading-size`` selects it too)."""
OTHERS: Final = ("SimpleCPUOffloadConnector", "LMCacheConnectorV1", "LMCacheMPConnector")
"""They keep KV in host memory too; how much of it, their own settings say."""
SWAPS: Final = (
    '--kv-transfer-config \'{"kv_connector": "OffloadingConnector", "kv_role": "kv_both", '
    '"kv_connector_extra_config": {"cpu_bytes_to_use": BYTES, "offload_prompt_only": false}}\''
)


@dataclass(frozen=True)
class HostMemory:
    """What a KV connector of vLLM's keeps of a request that is preempted."""

    connector: str = ""
    """Its name; empty: there is none, and the request is computed again."""
    whole: bool = False
    """Output as well as prompt. Full blocks only: what is in the last one is computed again."""

    def __str__(self) -> str:
        if not self.connector:
            return f"computed again, as no KV offloading connector is configured ({SWAPS} would swap them)"
        if self.whole:
            return f"swapped: {self.connector} loads their full blocks back from host memory"
        if self.connector == NATIVE:
            more = 'computed again ("offload_prompt_only": false in kv_connector_extra_config would keep it too)'
            return f"swapped in part: {NATIVE} loads their prompt's full blocks back from host memory, output is {more}"
        return f"swapped in part: {self.connector} loads back what its own settings keep, the rest is computed again"


def host_memory(transfer: Any) -> HostMemory:
    """Of vLLM's ``kv_transfer_config`` (None: no connector)."""
    for name, extra in _connectors(getattr(transfer, "kv_connector", None), _extra(transfer)):
        if name == NATIVE:
            return HostMemory(name, whole=not extra.get("offload_prompt_only", True))
        if name in OTHERS:
            return HostMemory(name)
    return HostMemory()


def _extra(transfer: Any) -> Mapping[str, Any]:
    return getattr(transfer, "kv_connector_extra_config", None) or {}


def _connectors(name: str | None, extra: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The connector, or those that a MultiConnector is made of, each with its settings."""
    if name == "MultiConnector":
        for part in extra.get("connectors", ()):
            yield from _connectors(part.get("kv_connector"), part.get("kv_connector_extra_config") or {})
    elif name:
        yield name, extra


def settle(
    policy: type[Policy], params: Any, memory: HostMemory = HostMemory()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """``(honoured, refused)`` of the rules that ``policy`` insists on.

    A rule that asks for what vLLM does anyway is honoured, and ``evict=swap`` where ``memory`` keeps
    all of a preempted request. Raises UserError for a policy that is nothing but rules vLLM does
    not have.
    """
    wanted = policy.rules(params)
    does = {*VLLM_V1.items()} | ({("evict", "swap")} if memory.whole else set())
    honoured = {k: v for k, v in wanted.items() if k in FREE_RULES or (k, v) in does}
    refused = {k: v for k, v in wanted.items() if k not in honoured}
    if policy.rules_alone and refused:
        raise UserError(f"policy {policy.name} is engine rules alone, and vLLM has other ones: {', '.join(refused)}")
    return honoured, refused
