"""By the deadline of the next token: EDF, and FairBatching's order and time budget.

Both are baselines of ProServe (arXiv 2512.12928) §5. Slack is deadline − now; what counts is tokens
delivered, so with two steps in flight a decode's next deadline is that of the token under way.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Final, NamedTuple

from .. import hooks
from ..hooks import Policy, policy
from ..params import P
from ..table import DECODE, F8, Columns, allocate
from ._deadlines import SLO, DueFrom, due_s
from ._ranked import RANKED_RULES, Preemptive

KV: Final = 0
PLACE: Final = 1
NOTHING: Final = 2


class EDFParams(NamedTuple):
    """Parameters of edf."""

    due_from: DueFrom = SLO
    displaces: Annotated[
        int,
        P(
            "what a waiting request takes from running ones due later: KV (as in xLLM), places too, or nothing",
            choices=("kv", "place", "nothing"),
        ),
    ] = KV


@policy("edf", source="ProServe (arXiv 2512.12928) §3.2 and §5; earliest deadline first")
class EDF(Preemptive):
    """Earliest deadline first: one order of prefills and decodes by when their next token is due.

    The first token is due TTFT_SLO after arrival, token j (from 0) j·TPOT_SLO later: see ``due_from``.
    Without these SLOs a deadline is infinite: such requests come last, in order of arrival.
    """

    Params = EDFParams
    keys = hooks.ON_PROGRESS

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        place, kv = params.displaces == PLACE, params.displaces != NOTHING
        return {**RANKED_RULES, "may_preempt_at_cap": place, "may_preempt_for_kv": kv}

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        return 0, due_s(table, row, params.due_from)


class Budget(Columns):
    """What a step's order and limit need of the running decodes: one row."""

    seconds: F8
    """max(least slack, least TPOT SLO); infinite without a decode that has a deadline."""
    urgent_s: F8
    """Slack below which a decode is urgent: ``seconds`` and the least TPOT SLO."""


class FairScratch(NamedTuple):
    """Computed anew each step."""

    budget: Any


URGENT: Final = 0
PREFILLS: Final = 1
PATIENT: Final = 2


@policy("fairbatching", source="FairBatching (arXiv 2510.14392), as in ProServe (arXiv 2512.12928) §5")
class FairBatching(Policy):
    """Decodes that are nearly due, then prefills, then the other decodes, each by slack; in a budget of time.

    A step may take max(least slack, least TPOT SLO) of the running decodes, its constant time
    included; a decode is nearly due if its slack is below that budget and the least TPOT SLO. Prefills are all
    that compute known tokens, and the waiting. Nobody is displaced for a waiting request. Give the engine a
    ``token_budget`` that does not bind. Without SLOs slack is infinite: prefills before decodes, each
    in order of arrival, in steps of any length.
    """

    keys = hooks.EVERY_STEP  # slack shrinks as time passes, and the budget with it

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        return {**RANKED_RULES, "may_preempt_at_cap": False, "may_preempt_for_kv": False}

    @staticmethod
    def make_scratch(params: Any, capacity: int) -> FairScratch:
        return FairScratch(allocate(Budget, 1)[1])

    @staticmethod
    def prepare(table: Any, live: Any, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> None:
        slack_s = tpot_s = math.inf
        for row in live:
            if table.phase[row] == DECODE:
                slack_s = min(slack_s, due_s(table, row, SLO) - now)
                tpot_s = min(tpot_s, table.tpot_slo_s[row])
        scratch.budget.seconds[0] = max(slack_s, tpot_s)
        scratch.budget.urgent_s[0] = scratch.budget.seconds[0] + tpot_s

    @staticmethod
    def step_limits(
        table: Any, live: Any, now: float, state: Any, scratch: Any, cost: Any, params: Any
    ) -> tuple[int, int, float]:
        seconds = max(scratch.budget.seconds[0] - hooks.constant_s(cost), 0.0)
        return hooks.NO_LIMIT, hooks.NO_LIMIT, seconds

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        due = due_s(table, row, SLO)
        if table.phase[row] != DECODE:
            return PREFILLS, due
        return (URGENT if due - now < scratch.budget.urgent_s[0] else PATIENT), due
