"""Shortest first: by size at arrival (sjf), by what is left (srpt), by the prompt (spf)."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import hooks
from ..hooks import Policy, policy
from ._ranked import TOTAL, Preemptive, Work, remaining_tokens


@policy("sjf", source="baseline; Schrage & Miller 1966")
class SJF(Preemptive):
    """Shortest job first: prompt plus predicted output, fixed at arrival. No starvation rule."""

    keys = hooks.STATIC

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        return 0, float(table.prompt_tokens[row] + table.predicted_output_tokens[row])


class SRPTParams(NamedTuple):
    """Parameters of srpt."""

    work: Work = TOTAL


@policy("srpt", source="baseline; Schrage & Miller 1966")
class SRPT(Preemptive):
    """Shortest remaining work: prompt and predicted output tokens not yet computed once.

    A request past its prediction counts one output token. Recomputation after a preemption
    is not counted as work left, so a preempted request keeps its place. No starvation or
    age rule.
    """

    Params = SRPTParams
    keys = hooks.ON_PROGRESS

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        return 0, remaining_tokens(table, row, params.work)


@policy("spf", source="baseline; SGLang and vLLM heuristic, UniBoost (arXiv 2606.18431) §2")
class SPF(Policy):
    """Shortest prompt first among the waiting, as a stand-in for the whole length; displaces nobody."""

    keys = hooks.STATIC

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        return {"order_scope": "waiting", "victim": "tail"}

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        return 0, float(table.prompt_tokens[row])
