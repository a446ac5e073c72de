"""When a request's next token is due, by its SLOs."""

from __future__ import annotations

from typing import Annotated, Any, Final

from .._jit import kernel
from ..params import P

__all__ = ["FIRST_TOKEN", "SLO", "DueFrom", "due_s"]

SLO: Final = 0
FIRST_TOKEN: Final = 1

DueFrom = Annotated[
    int,
    P(
        "later tokens are due so many TPOT SLOs after the TTFT SLO, or (as in xLLM) after the first token came",
        choices=("slo", "first_token"),
    ),
]


@kernel
def due_s(table: Any, row: int, due_from: int) -> float:
    """Deadline of the row's next token, seconds on the host's clock; infinite without the SLOs it takes.

    With j tokens delivered: arrival + TTFT_SLO + j·TPOT_SLO, or first token + j·TPOT_SLO from j = 1 on.
    """
    start_s, made = table.arrival_s[row] + table.ttft_slo_s[row], table.generated_tokens[row]
    if made == 0:
        return start_s
    if due_from == FIRST_TOKEN:
        start_s = table.first_token_s[row]
    return start_s + made * table.tpot_slo_s[row]
