"""Order of arrival: fcfs, and the engines whose whole policy is their rules; Sarathi's with classes."""

from __future__ import annotations

from typing import Annotated, Any, Final, NamedTuple

from .. import hooks
from ..hooks import Policy, policy
from ..params import P
from ..rules import VLLM_V1

WHOLE_PROMPTS: Final = {
    "order_scope": "waiting",
    "continuation_first": True,
    "admit": "prompt",
    "watermark": 0.01,
    "blocked_head": "stop",
    "victim": "hook",
    "evict": "recompute",
    "kv_short": "preempt",
}
"""A prompt starts where all its blocks fit above 1 % of the KV, or nobody behind it does."""


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


class WholePrompts(Policy):
    """Who starts keeps its blocks until the latest arrival must yield its own."""

    keys = hooks.STATIC

    @staticmethod
    def victim(
        table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any
    ) -> tuple[bool, float]:
        return False, -table.arrival_s[row]


@policy("sarathi", source="Sarathi-Serve (arXiv 2403.02310) §4; vLLM-FCFS's stall-free batching")
class Sarathi(WholePrompts):
    """Stall-free batching: decodes, begun prefills, then whole prompts that fit; the latest arrival yields."""

    rules_alone = True

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        return {**WHOLE_PROMPTS, "phase_order": "decode_first"}


FIRST: Final = 0
RANKED: Final = 1


class SarathiPriorityParams(NamedTuple):
    """Parameters of sarathi_priority."""

    begun: Annotated[
        int,
        P(
            "prefills that have begun go before new ones, as in Sarathi, or compete with them by class",
            choices=("first", "ranked"),
        ),
    ] = FIRST


@policy("sarathi_priority", source="ProServe (arXiv 2512.12928) §5")
class SarathiPriority(Policy):
    """Sarathi with classes: decodes, then prefills of the heavier class, then by arrival.

    The class counts by its weight. Of the least weight the latest arrival yields KV. The rest as `sarathi`,
    which it is if all weights are equal. Knows no SLOs.
    """

    Params = SarathiPriorityParams
    keys = hooks.STATIC

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        rules = {**WHOLE_PROMPTS, "phase_order": "decode_first"}
        return rules if params.begun == FIRST else {**rules, "order_scope": "all", "continuation_first": False}

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        return 0, -table.weight[row]

    @staticmethod
    def victim(
        table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any
    ) -> tuple[bool, float]:
        return False, table.weight[row]


WAIT: Final = 0


class PrefillFirstParams(NamedTuple):
    """Parameters of prefill_first."""

    decodes: Annotated[
        int,
        P("in a step with prefills decodes wait, or take the tokens left", choices=("wait", "fill")),
    ] = WAIT


@policy("prefill_first", source="vLLM's engine V0; the vLLM-FCFS of ProServe (arXiv 2512.12928) §5")
class PrefillFirst(WholePrompts):
    """Prefills before decodes, in order of arrival; the latest arrival yields its KV and is recomputed.

    New requests start whenever their whole prompt fits, so how many run at once must be bounded: by the
    engine's ``max_seqs`` (256 in `vllm_v1`, as in vLLM). Without a bound they preempt one another. A prompt
    that is longer than what is left of a step's tokens is cut into chunks, which engine V0 did not do.
    """

    Params = PrefillFirstParams
    rules_alone = True

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        return {**WHOLE_PROMPTS, "phase_order": "prefill_alone" if params.decodes == WAIT else "prefill_first"}
