"""Shortest first, preemptive: by size at arrival (sjf) or by what is left (srpt)."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from .. import hooks
from ..hooks import Policy, policy
from ..params import P

RANKED_RULES = {
    "order_scope": "all",
    "phase_order": "ranked",
    "continuation_first": False,
    "victim": "tail",
    "may_preempt_at_cap": True,
    "may_preempt_for_kv": True,
}
"""Plain preemptive rank order: whoever ranks first runs, the worst ranked yields."""


@policy("sjf", source="baseline; Schrage & Miller 1966")
class SJF(Policy):
    """Shortest job first: prompt plus predicted output, fixed at arrival. No starvation rule."""

    keys = hooks.STATIC

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        return RANKED_RULES

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        return 0, float(table.prompt_tokens[row] + table.predicted_output_tokens[row])

    @staticmethod
    def may_preempt(
        table: Any, waiting_row: int, running_row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any
    ) -> bool:
        return True


class SRPTParams(NamedTuple):
    """Parameters of srpt."""

    work: Annotated[int, P("what is left to do: all tokens, or output tokens alone", choices=("total", "output"))] = 0


@policy("srpt", source="baseline; Schrage & Miller 1966")
class SRPT(Policy):
    """Shortest remaining work: prompt and predicted output tokens not yet computed once.

    A request past its prediction counts one output token. Recomputation after a preemption
    is not counted as work left, so a preempted request keeps its place. No starvation or
    age rule.
    """

    Params = SRPTParams
    keys = hooks.ON_PROGRESS

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        return RANKED_RULES

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        output = max(table.predicted_output_tokens[row] - table.generated_tokens[row], 1)
        if params.work == 1:
            return 0, float(output)
        return 0, float(max(table.prompt_tokens[row] - table.attained_tokens[row], 0) + output)

    @staticmethod
    def may_preempt(
        table: Any, waiting_row: int, running_row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any
    ) -> bool:
        return True
