"""What a request's next token is worth and what it costs.

Source: ProServe (arXiv 2512.12928) §3.2 and the definitions of its gain; xLLM's MixScheduler, by
its first author, for what the paper leaves open.
"""

from __future__ import annotations

from typing import Any

from .. import hooks
from .._jit import kernel
from ..table import DECODE, WAITING

__all__ = ["decodes", "exec_s", "gain"]


@kernel
def decodes(table: Any, row: int) -> bool:
    """Whether its next tokens are a decode's: it decodes, or waits with its KV kept and nothing else left."""
    if table.phase[row] != WAITING:
        return bool(table.phase[row] == DECODE)
    left = table.prompt_tokens[row] + table.generated_tokens[row] - table.computed_tokens[row]
    return bool(table.computed_tokens[row] > 0 and left <= (1 if table.generated_tokens[row] > 0 else 0))


@kernel
def exec_s(table: Any, row: int, cost: Any) -> float:
    """e(r): predicted seconds of its remaining uncached work: the prefill's, or one decode's."""
    have = table.computed_tokens[row]
    if decodes(table, row):
        return hooks.decode_s(1, have, cost)
    return hooks.chunk_s(table.prompt_tokens[row] + table.generated_tokens[row] - have, have, cost)


@kernel
def gain(table: Any, row: int, prefill_weight: float) -> float:
    """What the next token is worth: the class's weight, times ``prefill_weight`` for the first."""
    return table.weight[row] * (prefill_weight if table.generated_tokens[row] == 0 else 1.0)
