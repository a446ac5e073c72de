"""SlideBatching: deadlines first while they can be met, gain per second of work once they cannot.

Source: ProServe (arXiv 2512.12928) §3.2, Alg. 1. Each step, over one queue of prefills and decodes:

    e(r)      predicted seconds of r's remaining uncached work; S = Σ e, c = a step's constant
    remain    the deadline of its next token - now
    t_budget  = max(smallest remain, η): the step is filled up to it; at t_budget ≤ c the
              token and sequence limits alone bind
    φ         = S·t_budget / (t_budget - c): the time in which the queue drains
    urgent    remain < coeff·φ

Urgent requests go before normal ones: urgent by density (gain at stake / e) descending, normal by
remain ascending, ties by arrival. As load grows the boundary slides from one order to the other.

Three presets. ``paper`` is the above; ``xllm`` what the first author's open-source scheduler adds to
it; ``tailrace`` puts prefills last that can no longer make their deadline: their gain is lost, and what
runs in their stead still earns its own. Nor does their deadline bound a step, as in xLLM; where all
are late η does, and the waiting displace prefills only. Any other option overrides the preset. No preset
sets decode deadlines (from the first token, as xLLM) or what becomes of the starving; the paper's rule is
``promote=head,starve_share=1,starve_eta=0``.

Requests without SLOs have no deadline: never urgent, in order of arrival behind those with one
(but before hopeless prefills). With no SLO in the queue all go by arrival and no budget binds.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from .. import hooks
from .._jit import kernel
from ..hooks import NO_LIMIT, Policy, policy
from ..table import DECODE, F8, I8, Columns, allocate
from ._deadlines import due_s
from ._ranked import RANKED_RULES
from ._slide_params import (
    ANYBODY,
    DEADLINE,
    DENSITY,
    NOBODY,
    TO_PREFILLS,
    SlideParams,
    bounds_late,
    decodes_first,
    displaces,
    eta,
    feasible_only,
    hopeless_last,
    least_chunk_tokens,
)
from ._sliding import decodes, exec_s, gain

STARVING, URGENT, PROMOTED, LATER_URGENT, NORMAL, HOPELESS = 0, 1, 2, 3, 4, 5
"""Tiers. PROMOTED: starving prefills behind the urgent decodes; LATER_URGENT: urgent prefills behind either."""


class Served(Columns):
    """One row a request."""

    at_s: F8
    """End of the last step that served it, or its arrival."""


class Steps(Columns):
    """Scalars: one row."""

    done: I8


class SlideState(NamedTuple):
    """Kept from step to step."""

    served: Any
    steps: Any


class Ranks(Columns):
    """One row a request: its place in this step."""

    exec_s: F8
    remain_s: F8
    tier: I8
    key: F8


class Load(Columns):
    """Scalars: one row. What a step's queue comes to."""

    now_s: F8
    constant_s: F8
    work_s: F8
    """S."""
    budget_s: F8
    """t_budget; infinite where it would not exceed the constant."""
    drain_s: F8
    """φ"""
    starving: I8
    """Requests that have waited for longer than τ, served first in this step or not."""


UNBOUNDED, ALL_FIT, BY_DEADLINE, BY_BOTH, BY_DENSITY = 0, 1, 2, 3, 4
REQUESTS, AS_URGENT, AS_HOPELESS, AS_STARVING = 5, 6, 7, 8
FINDINGS: Final = (
    *("unbounded_steps", "all_fit_steps", "deadline_steps", "deadline_and_density_steps", "density_steps"),
    *("request_steps", "urgent_request_steps", "hopeless_request_steps", "starving_request_steps"),
)


class SlideScratch(NamedTuple):
    """Computed anew each step, but for the counts."""

    ranks: Any
    load: Any
    counts: Any
    """(2, 9), by `FINDINGS`: the latest planned step's, and those of all before it."""


@kernel
def _waits_since_s(table: Any, row: int, state: Any) -> float:
    """Since when it has waited for its first token, or, with that, for a step that serves it.

    A prefill counts from its arrival: else a chunk that fills up a step would begin its wait anew.
    """
    return table.arrival_s[row] if table.generated_tokens[row] == 0 else state.served.at_s[row]


@kernel
def _measure(table: Any, live: Any, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> None:
    """e and remain of each row; who starves; S, t_budget and φ of the step."""
    ranks, load, constant = scratch.ranks, scratch.load, hooks.constant_s(cost)
    work, soonest, least, tpot = 0.0, math.inf, math.inf, math.inf
    feasible, starving = feasible_only(params), 0
    for row in live:
        e, remain = exec_s(table, row, cost), due_s(table, row, params.decode_deadline) - now
        ranks.exec_s[row], ranks.remain_s[row] = e, remain
        work += e
        if table.tpot_slo_s[row] < tpot:
            tpot = table.tpot_slo_s[row]
        if remain < soonest:
            soonest = remain
        if remain < least and (not feasible or remain >= e + constant):
            least = remain
        if params.starve_s > 0 and now - _waits_since_s(table, row, state) > params.starve_s:
            starving += 1
    share = params.starve_eta if starving > 0 and params.starve_eta > eta(params) else eta(params)
    floor = share * tpot if tpot < math.inf else 0.0
    if math.isinf(least) and soonest < math.inf and floor > 0 and bounds_late(params):
        least = floor
    budget = least if least > floor else floor
    if budget <= constant:
        budget = math.inf
    load.constant_s[0], load.work_s[0], load.budget_s[0], load.starving[0] = constant, work, budget, starving
    load.drain_s[0] = work * budget / (budget - constant) if budget < math.inf else work


@kernel
def _is_urgent(remain: float, scratch: Any, params: Any) -> bool:
    if params.order == DEADLINE or math.isinf(remain):
        return False
    return bool(params.order == DENSITY or remain < params.coeff * scratch.load.drain_s[0])


@kernel
def _place(table: Any, row: int, now: float, promote: bool, state: Any, scratch: Any, params: Any) -> None:
    """The tier and key of one row, and the counts of the step."""
    ranks, counts, e, remain = scratch.ranks, scratch.counts, scratch.ranks.exec_s[row], scratch.ranks.remain_s[row]
    begins = not decodes(table, row)
    counts[0, REQUESTS] += 1
    if promote and now - _waits_since_s(table, row, state) > params.starve_s:
        counts[0, AS_STARVING] += 1
        behind = begins and params.promote == TO_PREFILLS
        ranks.tier[row], ranks.key[row] = PROMOTED if behind else STARVING, _waits_since_s(table, row, state)
        return
    hopeless = begins and table.generated_tokens[row] == 0 and remain < e + scratch.load.constant_s[0]
    if hopeless and hopeless_last(params):
        counts[0, AS_HOPELESS] += 1
        ranks.tier[row] = HOPELESS
    elif _is_urgent(remain, scratch, params):
        counts[0, AS_URGENT] += 1
        later = begins and (decodes_first(params) or (promote and params.promote == TO_PREFILLS))
        ranks.tier[row] = LATER_URGENT if later else URGENT
    else:
        ranks.tier[row], ranks.key[row] = NORMAL, remain
        return
    ranks.key[row] = -gain(table, row, params.prefill_weight) / e if e > 0 else -math.inf


@kernel
def _rank(tier: int, key: float) -> float:
    """One number for (tier, key), in the same order: keys are squeezed to between -1 and 1."""
    if math.isinf(key):
        return 3.0 * tier + (1.0 if key > 0 else -1.0)
    return 3.0 * tier + key / (1.0 + abs(key))


@kernel
def _regime(urgent_s: float, urgent: int, load: Any, params: Any) -> int:
    """Which order decided who is served: that of the group in which the step's seconds end."""
    seconds = load.budget_s[0] - load.constant_s[0]
    if math.isinf(seconds) or not params.latency_budget:
        return UNBOUNDED
    if load.work_s[0] <= seconds:
        return ALL_FIT
    if urgent_s > seconds:
        return BY_DENSITY
    return BY_BOTH if urgent > 0 else BY_DEADLINE


@kernel
def _turn_over(now: float, scratch: Any) -> None:
    """Begin a step's counts. Those of the step before are kept, unless this is that step planned again.

    Again is at the same time: with two steps in flight two that are planned at once count as one.
    """
    counts = scratch.counts
    for i in range(counts.shape[1]):
        if now != scratch.load.now_s[0]:
            counts[1, i] += counts[0, i]
        counts[0, i] = 0
    scratch.load.now_s[0] = now


@kernel
def _promotes(state: Any, params: Any) -> bool:
    """Whether starving requests go first in this step: in so many of n steps as ``starve_share`` of them."""
    done = state.steps.done[0]
    return bool(math.floor((done + 1) * params.starve_share) > math.floor(done * params.starve_share))


@policy("slide", source="ProServe (arXiv 2512.12928) §3.2, Alg. 1; presets: the paper's, xLLM's, ours")
class Slide(Policy):
    """SlideBatching: by deadline while all can be met, by gain per second of work when they cannot.

    The step's seconds follow the tightest deadline, and are at least η. With ``preset=tailrace``, the
    default, prefills that can no longer make theirs go last, do not bound the step, and only prefills
    are displaced. Without SLOs: in order of arrival.
    """

    Params = SlideParams
    keys = hooks.EVERY_STEP

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        takes = displaces(params) != NOBODY
        return {
            **RANKED_RULES,
            "may_preempt_at_cap": takes,
            "may_preempt_for_kv": takes,
            "misfit": ("stop", "skip")[params.misfit],
            "min_last_chunk": least_chunk_tokens(params),
            **({"victim": "hook"} if params.protect_share > 0 and params.starve_s > 0 else {}),
        }

    @staticmethod
    def make_state(params: Any, capacity: int) -> SlideState:
        return SlideState(allocate(Served, capacity)[1], allocate(Steps, 1)[1])

    @staticmethod
    def make_scratch(params: Any, capacity: int) -> SlideScratch:
        return SlideScratch(allocate(Ranks, capacity)[1], allocate(Load, 1)[1], np.zeros((2, len(FINDINGS)), np.int64))

    @staticmethod
    def findings(scratch: Any) -> dict[str, float]:
        """Steps by the order that decided who was served, and request-steps by what they were ranked as."""
        return {name: int(count) for name, count in zip(FINDINGS, scratch.counts.sum(axis=0), strict=True)}

    @staticmethod
    def prepare(table: Any, live: Any, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> None:
        _turn_over(now, scratch)
        _measure(table, live, now, state, scratch, cost, params)
        promote, urgent_s = scratch.load.starving[0] > 0 and _promotes(state, params), 0.0
        for row in live:
            _place(table, row, now, promote, state, scratch, params)
            if scratch.ranks.tier[row] == URGENT or scratch.ranks.tier[row] == LATER_URGENT:
                urgent_s += scratch.ranks.exec_s[row]
        if len(live) > 0:
            scratch.counts[0, _regime(urgent_s, scratch.counts[0, AS_URGENT], scratch.load, params)] += 1

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        return scratch.ranks.tier[row], scratch.ranks.key[row]

    @staticmethod
    def step_limits(
        table: Any, live: Any, now: float, state: Any, scratch: Any, cost: Any, params: Any
    ) -> tuple[int, int, float]:
        if not params.latency_budget:
            return NO_LIMIT, NO_LIMIT, math.inf
        return NO_LIMIT, NO_LIMIT, scratch.load.budget_s[0] - scratch.load.constant_s[0]

    @staticmethod
    def may_preempt(
        table: Any, waiting_row: int, running_row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any
    ) -> bool:
        return bool(displaces(params) == ANYBODY or table.phase[running_row] != DECODE)

    @staticmethod
    def victim(
        table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any
    ) -> tuple[bool, float]:
        near = params.protect_share * params.starve_s
        protected = near > 0 and now - _waits_since_s(table, row, state) > near
        return bool(protected), -_rank(scratch.ranks.tier[row], scratch.ranks.key[row])

    @staticmethod
    def on_arrival(table: Any, row: int, now: float, state: Any, params: Any) -> None:
        state.served.at_s[row] = table.arrival_s[row]

    @staticmethod
    def on_progress(table: Any, row: int, tokens: int, now: float, state: Any, params: Any) -> None:
        state.served.at_s[row] = now

    @staticmethod
    def after_step(table: Any, planned: Any, step_s: float, now: float, state: Any, params: Any) -> None:
        state.steps.done[0] += 1
