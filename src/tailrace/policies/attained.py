"""Least attained service first, and its discrete form with queues; nobody predicts anything.

Source: LAS is foreground-background scheduling; MLFQ that of FastServe (arXiv 2305.05920) §4.1.
Both are preemptive. Attained service is the most tokens ever computed for a request, prompt
and output (`RequestTable.attained_tokens`): a recompute is no further service.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, NamedTuple

from .. import hooks
from .._jit import kernel
from ..hooks import policy
from ..params import P
from ..table import I8, WAITING, Columns, allocate
from ._ranked import Preemptive

PROMPT: Final = 0


@policy("las", source="baseline; foreground-background, UniBoost (arXiv 2606.18431) §3")
class LAS(Preemptive):
    """Least attained service: whoever has had the fewest tokens computed runs, equals by arrival.

    Under preemption by recompute and a full engine it takes turns token by token, and most of the
    work is recomputation: `mlfq` is the form for use.
    """

    keys = hooks.ON_PROGRESS

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        return 0, float(table.attained_tokens[row])


class MLFQParams(NamedTuple):
    """Parameters of mlfq. Queue i has a quantum of quantum_tokens · ratio^i."""

    quantum_tokens: Annotated[int, P("service that the first queue gives", unit="tokens", low=1, high=1 << 30)] = 256
    ratio: Annotated[int, P("how many times longer each next queue's quantum is", low=2, high=64)] = 2
    queues: Annotated[int, P("how many there are; the last has no quantum", unit="queues", low=1, high=32)] = 8
    join: Annotated[
        int,
        P("queue of a new request: the first whose quantum holds its prompt, or the first", choices=("prompt", "top")),
    ] = PROMPT
    starve_s: Annotated[
        float, P("a request that has waited longer goes back to the first queue; 0 = never", unit="s", low=0.0)
    ] = 0.0


class Level(Columns):
    """One row a request."""

    base_tokens: I8
    """Attained service when it joined its queues: at arrival 0, or at its last promotion."""
    promoted: I8
    """How often it went back to the first queue; it then starts there whatever its prompt."""


class Promotions(Columns):
    """Scalars: one row."""

    total: I8


class MLFQState(NamedTuple):
    """Kept from step to step."""

    level: Any
    promotions: Any


@kernel
def _starved(table: Any, row: int, now: float, params: Any) -> bool:
    return bool(
        params.starve_s > 0.0 and table.phase[row] == WAITING and now - table.waiting_since_s[row] > params.starve_s
    )


@kernel
def _queue(table: Any, row: int, state: Any, params: Any) -> int:
    """The queue that the row is in: it leaves each when it has used that one's quantum."""
    queue, quantum, last = 0, params.quantum_tokens, params.queues - 1
    if params.join == PROMPT and state.level.promoted[row] == 0:
        while queue < last and quantum < table.prompt_tokens[row]:
            queue += 1
            quantum *= params.ratio
    used = table.attained_tokens[row] - state.level.base_tokens[row]
    while queue < last and used >= quantum:
        used -= quantum
        queue += 1
        quantum *= params.ratio
    return queue


@policy("mlfq", source="FastServe (arXiv 2305.05920) §4.1, skip-join MLFQ")
class MLFQ(Preemptive):
    """Multi-level feedback queue: lower queues first, order of arrival within one.

    A request joins the first queue whose quantum holds its prompt and moves down one queue each
    time it has used a quantum. One that has waited ``starve_s`` since its arrival or last
    preemption goes back to the first queue, with that queue's quantum anew.
    """

    Params = MLFQParams
    keys = hooks.EVERY_STEP  # waiting too long changes a key

    @staticmethod
    def make_state(params: Any, capacity: int) -> MLFQState:
        return MLFQState(allocate(Level, capacity)[1], allocate(Promotions, 1)[1])

    @staticmethod
    def tallies(state: Any) -> dict[str, float]:
        return {"starvation_promotions": int(state.promotions.total[0])}

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        if _starved(table, row, now, params):
            return 0, 0.0
        return _queue(table, row, state, params), 0.0

    @staticmethod
    def on_arrival(table: Any, row: int, now: float, state: Any, params: Any) -> None:
        state.level.base_tokens[row] = state.level.promoted[row] = 0

    @staticmethod
    def on_admit(table: Any, row: int, first: bool, tier: int, now: float, state: Any, params: Any) -> None:
        """Who is admitted as starved keeps the first queue for a quantum."""
        if params.starve_s > 0.0 and now - table.waiting_since_s[row] > params.starve_s:
            state.level.base_tokens[row] = table.attained_tokens[row]
            state.level.promoted[row] += 1
            state.promotions.total[0] += 1
