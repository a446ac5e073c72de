"""Which engine rules vLLM honours, and which a policy must do without there."""

from __future__ import annotations

from typing import Any, Final

from ..errors import UserError
from ..hooks import Policy
from ..rules import VLLM_V1

__all__ = ["FREE_RULES", "settle"]

FREE_RULES: Final = ("order_scope", "victim", "may_preempt_at_cap", "may_preempt_for_kv")
"""Rules that a policy may choose: vLLM's queue and running list take any order, any running
request can be made its victim, and preempted before a step. All others are vLLM's own."""


def settle(policy: type[Policy], params: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """``(honoured, refused)`` of the rules that ``policy`` insists on.

    A rule that asks for what vLLM does anyway is honoured. Raises UserError for a policy
    that is nothing but rules vLLM does not have.
    """
    wanted = policy.rules(params)
    honoured = {k: v for k, v in wanted.items() if k in FREE_RULES or VLLM_V1.get(k) == v}
    refused = {k: v for k, v in wanted.items() if k not in honoured}
    if policy.rules_alone and refused:
        raise UserError(f"policy {policy.name} is engine rules alone, and vLLM has other ones: {', '.join(refused)}")
    return honoured, refused
