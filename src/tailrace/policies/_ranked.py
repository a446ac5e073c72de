"""What policies that rank the running and the waiting alike have in common."""

from __future__ import annotations

from typing import Annotated, Any, Final

from .._jit import kernel
from ..params import P

__all__ = ["OUTPUT", "RANKED_RULES", "RECOMPUTE_RULES", "TOTAL", "Work", "remaining_tokens"]

RANKED_RULES: Final = {
    "order_scope": "all",
    "phase_order": "ranked",
    "continuation_first": False,
    "victim": "tail",
    "may_preempt_at_cap": True,
    "may_preempt_for_kv": True,
}
"""Plain preemptive rank order: whoever ranks first runs, the worst ranked yields."""
RECOMPUTE_RULES: Final = {**RANKED_RULES, "evict": "recompute"}

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
