"""Order of arrival: fcfs, and the two engines whose whole policy is their rules."""

from __future__ import annotations

from typing import Any

from .. import hooks
from ..hooks import Policy, policy
from ..rules import VLLM_V1


@policy("fcfs", source="baseline; QBA §III-A1")
class FCFS(Policy):
    """First come, first served: waiting requests in order of arrival, the newest yields."""

    keys = hooks.STATIC

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        return {"order_scope": "waiting", "victim": "tail"}


@policy("vllm_fcfs", source="vLLM V1 scheduler, policy fcfs")
class VllmFCFS(Policy):
    """vLLM's default: running requests first, then the waiting as added; the last admitted yields."""

    keys = hooks.STATIC

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        return {**VLLM_V1, "victim": "tail"}


@policy("sarathi", source="Sarathi-Serve (arXiv 2403.02310) §4; vLLM-FCFS's stall-free batching")
class Sarathi(Policy):
    """Stall-free batching: decodes, begun prefills, then whole prompts that fit; the latest arrival yields."""

    keys = hooks.STATIC
    rules_alone = True

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        return {
            "order_scope": "waiting",
            "phase_order": "decode_first",
            "continuation_first": True,
            "admit": "prompt",
            "watermark": 0.01,
            "blocked_head": "stop",
            "victim": "hook",
            "evict": "recompute",
            "kv_short": "preempt",
        }

    @staticmethod
    def victim(
        table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any
    ) -> tuple[bool, float]:
        return False, -table.arrival_s[row]
