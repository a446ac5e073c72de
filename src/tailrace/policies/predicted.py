"""Published rankings by predicted length, each with its own rule against starving: LTR and TRAIL.

With perfect predictions these are the LTR+ and TRAIL+ of the UniBoost study (arXiv 2606.18431
§6); with ``--predictions noise:cv=…`` what its argument is about.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, NamedTuple

from .. import hooks
from .._jit import kernel
from ..hooks import Policy, policy
from ..params import P
from ..table import DONE, FREE, I8, Columns, allocate
from ._ranked import DECODES_STAY_RULES, OUTPUT, RANKED_RULES, TOTAL, Preemptive, Work, remaining_tokens

RECOMPUTE: Final = 0
SWAP: Final = 1
DECODE_FIRST: Final = 2


class LTRParams(NamedTuple):
    """Parameters of ltr."""

    work: Work = OUTPUT
    idle_steps: Annotated[
        int, P("steps without service after which a request ranks first; 0 = never", unit="steps", low=0)
    ] = 200
    quantum_steps: Annotated[int, P("steps of service for which it then does", unit="steps", low=1)] = 10


class Service(Columns):
    """One row a request."""

    last_step: I8
    """Number of the last step that served it, or of the one before its arrival."""
    left_steps: I8
    """Steps of service for which it still ranks first."""


class Steps(Columns):
    """Scalars: one row."""

    done: I8
    promotions: I8


class LTRState(NamedTuple):
    """Kept from step to step."""

    service: Any
    steps: Any


@kernel
def _idle(row: int, state: Any, params: Any) -> bool:
    return bool(params.idle_steps > 0 and state.steps.done[0] - state.service.last_step[row] >= params.idle_steps)


@policy("ltr", source="Learning to Rank (arXiv 2408.15792) §4")
class LTR(Preemptive):
    """Learning to rank: by the length predicted at arrival, preemptive; who was idle for long goes first.

    A request that no step has served for ``idle_steps`` steps ranks before all others until it
    has been served in ``quantum_steps`` steps. Under preemption by recompute these must suffice to
    compute its tokens again, or requests that starve can displace one another for ever.
    """

    Params = LTRParams
    keys = hooks.EVERY_STEP  # idle steps change a key

    @staticmethod
    def make_state(params: Any, capacity: int) -> LTRState:
        return LTRState(allocate(Service, capacity)[1], allocate(Steps, 1)[1])

    @staticmethod
    def tallies(state: Any) -> dict[str, float]:
        return {"starvation_promotions": int(state.steps.promotions[0])}

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        tokens = table.predicted_output_tokens[row]
        if params.work == TOTAL:
            tokens += table.prompt_tokens[row]
        first = state.service.left_steps[row] > 0 or _idle(row, state, params)
        return (0 if first else 1), float(tokens)

    @staticmethod
    def on_arrival(table: Any, row: int, now: float, state: Any, params: Any) -> None:
        state.service.last_step[row], state.service.left_steps[row] = state.steps.done[0], 0

    @staticmethod
    def after_step(table: Any, planned: Any, step_s: float, now: float, state: Any, params: Any) -> None:
        service, steps = state.service, state.steps
        for row in planned:
            if table.phase[row] == DONE or table.phase[row] == FREE:
                continue
            if service.left_steps[row] == 0 and _idle(row, state, params):
                service.left_steps[row] = params.quantum_steps
                steps.promotions[0] += 1
            if service.left_steps[row] > 0:
                service.left_steps[row] -= 1
            service.last_step[row] = steps.done[0] + 1
        steps.done[0] += 1


class TRAILParams(NamedTuple):
    """Parameters of trail."""

    work: Work = TOTAL
    c: Annotated[
        float,
        P(
            "age limit: with this share of its predicted output made a request is not displaced; 1 = no limit",
            low=0.0,
            high=1.0,
        ),
    ] = 0.8
    rule: Annotated[
        int,
        P(
            "engine: preemptive, with recompute or swap; or running decodes keep their places",
            choices=("recompute", "swap", "decode_first"),
        ),
    ] = RECOMPUTE


@kernel
def _past_limit(table: Any, row: int, params: Any) -> bool:
    return bool(params.c < 1.0 and table.generated_tokens[row] >= params.c * table.predicted_output_tokens[row])


@policy("trail", source="TRAIL (arXiv 2410.01035) §3")
class TRAIL(Policy):
    """Shortest predicted remaining work, preemptive up to an age limit. With c = 1 it is srpt.

    Past the limit a request yields KV only if all others are past it too (a counted escape).
    ``rule=decode_first``: decodes run first and keep their places; the order applies to the
    waiting and to prefills.
    """

    Params = TRAILParams
    keys = hooks.ON_PROGRESS

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        if params.rule == DECODE_FIRST:
            return {**DECODES_STAY_RULES, "victim": "hook", "evict": "recompute"}
        return {**RANKED_RULES, "victim": "hook", "evict": "swap" if params.rule == SWAP else "recompute"}

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        return 0, remaining_tokens(table, row, params.work)

    @staticmethod
    def may_preempt(
        table: Any, waiting_row: int, running_row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any
    ) -> bool:
        return not _past_limit(table, running_row, params)

    @staticmethod
    def victim(
        table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any
    ) -> tuple[bool, float]:
        return _past_limit(table, row, params), -remaining_tokens(table, row, params.work)
