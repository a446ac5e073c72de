"""Priority by number, as vLLM takes it: lower runs sooner."""

from __future__ import annotations

from typing import Any

from .. import hooks
from ..hooks import Policy, policy
from ..rules import VLLM_V1


@policy("priority", source="baseline")
class Priority(Policy):
    """Strict priority over all requests: a lower number displaces a higher one, running or not."""

    keys = hooks.STATIC

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        return {
            "order_scope": "all",
            "phase_order": "ranked",
            "victim": "tail",
            "may_preempt_at_cap": True,
            "may_preempt_for_kv": True,
        }

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        return table.priority[row], 0.0

    @staticmethod
    def may_preempt(
        table: Any, waiting_row: int, running_row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any
    ) -> bool:
        return True


@policy("vllm_priority", source="vLLM V1 scheduler, policy priority")
class VllmPriority(Policy):
    """vLLM's priority: running requests in order of admission, the waiting by (priority,
    arrival); the largest (priority, arrival) yields KV."""

    keys = hooks.STATIC

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        return {**VLLM_V1, "victim": "hook"}

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        return table.priority[row], 0.0

    @staticmethod
    def victim(
        table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any
    ) -> tuple[bool, float]:
        return False, -float(table.priority[row])
