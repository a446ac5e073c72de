"""What policies that rank the running and the waiting alike have in common."""

from __future__ import annotations

from typing import Annotated, Any, Final

from .._jit import kernel
from ..hooks import Policy
from ..params import P

__all__ = ["DECODES_STAY_RULES", "OUTPUT", "RANKED_RULES", "TOTAL", "Preemptive", "Work", "remaining_tokens"]

RANKED_RULES: Final = {
    "order_scope": "all",
    "phase_order": "ranked",
    "continuation_first": False,
    "victim": "tail",
    "may_preempt_at_cap": True,
    "may_preempt_for_kv": True,
}
"""Plain preemptive rank order: whoever ranks first runs, the worst ranked yields."""
DECODES_STAY_RULES: Final = {
    **RANKED_RULES,
    "phase_order": "decode_first",
    "may_preempt_at_cap": False,
    "may_preempt_for_kv": False,
}
"""Running decodes come first and nobody takes their places; the order is that of prefills."""


class Preemptive(Policy):
    """Rank order alone decides who runs: any waiting request may take the place of one it outranks."""

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        return RANKED_RULES

    @staticmethod
    def may_preempt(
        table: Any, waiting_row: int, running_row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any
    ) -> bool:
        return True


TOTAL: Final = 0
OUTPUT: Final = 1
Work = Annotated[int, P("what counts as work: all tokens, or output tokens alone", choices=("total", "output"))]


@kernel
def remaining_tokens(table: Any, row: int, work: int) -> float:
    """Prompt and predicted output tokens not yet computed once; past the prediction, one output token."""
    output = max(table.predicted_output_tokens[row] - table.generated_tokens[row], 1)
    if work == OUTPUT:
        return float(output)
    return float(max(table.prompt_tokens[row] - table.attained_tokens[row], 0) + output)
