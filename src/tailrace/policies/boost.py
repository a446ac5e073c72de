"""Soft priorities by boosted arrival: γ-Boost, and UniBoost's stages with a fixed γ.

Source: UniBoost (Beyond Prediction: Tail-Aware Scheduling, arXiv 2606.18431). A request's key is
its arrival less a boost that shrinks as it is served, a − b_γ(w) (Yu & Scully 2024):

    gamma_boost     w is attained service, size or prompt.
    dist_boost      decodes in order of entering decode; then prefills by a − b_γ(prompt).
    uniboost_base   one order of all: w̃ = max(w, prompt), with hysteresis δ for the running.
    memguard        keys revised at milestones only, and locks between them (`_guarded`).

The last stage, γ fitted online, is in `uniboost`.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Final, NamedTuple

from .. import hooks
from ..hooks import Policy, policy
from ..params import P
from ..table import DECODE, F8, Columns, allocate
from ._boosting import Found, Gamma, Hysteresis, SecondsPerToken, boosted_s, effective_tokens, note_found, resident_s
from ._guarded import ADMISSION, RANK, RANKED, Guarded, GuardState, Lock, Milestone, Order, Victim, make_state
from ._ranked import DECODES_STAY_RULES, Preemptive

ATTAINED: Final = 0
SIZE: Final = 1
PROMPT: Final = 2


class GammaBoostParams(NamedTuple):
    """Parameters of gamma_boost."""

    gamma_per_s: Gamma = 0.005
    signal: Annotated[
        int,
        P("work w: attained service, prompt and predicted output, or prompt", choices=("attained", "size", "prompt")),
    ] = ATTAINED
    seconds_per_token: SecondsPerToken = 0.0


@policy("gamma_boost", source="Yu & Scully 2024; UniBoost (arXiv 2606.18431) §4.1")
class GammaBoost(Preemptive):
    """γ-Boost: by arrival less b_γ(w), preemptive. From least attained service (γ → 0) to FCFS (γ → ∞).

    b_γ(w) = (1/γ)·ln(1/(1 − e^{−γw})). With ``signal=attained`` a request that was never served
    counts its first token, as with an infinite boost γ → ∞ would not be FCFS. ``signal=size`` acts on
    predictions: it is the case that the theory of tail optimality is about.
    """

    Params = GammaBoostParams
    keys = hooks.ON_PROGRESS

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        tokens = max(table.attained_tokens[row], 1)
        if params.signal == SIZE:
            tokens = table.prompt_tokens[row] + table.predicted_output_tokens[row]
        elif params.signal == PROMPT:
            tokens = table.prompt_tokens[row]
        return 0, boosted_s(table.arrival_s[row], tokens, params.gamma_per_s, params.seconds_per_token, cost)


class DistBoostParams(NamedTuple):
    """Parameters of dist_boost."""

    gamma_per_s: Gamma = 0.005
    decodes: Annotated[
        int, P("B_max: most decodes in a step; 0 = as many as the engine allows", unit="requests", low=0)
    ] = 0
    chunk_tokens: Annotated[
        int, P("C: most prefill tokens of one request in a step; 0 = as the engine has it", unit="tokens", low=0)
    ] = 0
    seconds_per_token: SecondsPerToken = 0.0


class Entered(Columns):
    """One row a request."""

    decode_s: F8
    """When it entered decode; infinite until then."""


class DistBoostState(NamedTuple):
    """Kept from step to step."""

    entered: Any


@policy("dist_boost", source="UniBoost (arXiv 2606.18431) §5.1, DistBoost")
class DistBoost(Policy):
    """Two queues: decodes first, in order of entering decode; then prefills by a − b_γ(prompt).

    The paper's strawman: no request is displaced for another, so decodes can hold prefills up. One
    that loses its KV goes back to the prefills, and enters decode anew; one that is swapped out
    keeps its place among the decodes.
    """

    Params = DistBoostParams
    keys = hooks.ON_PROGRESS

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        caps = {"decode_cap": params.decodes, "chunk_cap": params.chunk_tokens}
        return {**DECODES_STAY_RULES, **{rule: cap for rule, cap in caps.items() if cap}}

    @staticmethod
    def make_state(params: Any, capacity: int) -> DistBoostState:
        records, entered = allocate(Entered, capacity)
        records["decode_s"] = math.inf
        return DistBoostState(entered)

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        if table.phase[row] == DECODE or state.entered.decode_s[row] < math.inf:
            return 0, state.entered.decode_s[row]
        return 1, boosted_s(
            table.arrival_s[row], table.prompt_tokens[row], params.gamma_per_s, params.seconds_per_token, cost
        )

    @staticmethod
    def on_arrival(table: Any, row: int, now: float, state: Any, params: Any) -> None:
        state.entered.decode_s[row] = math.inf

    @staticmethod
    def on_prefill_done(table: Any, row: int, now: float, state: Any, params: Any) -> None:
        state.entered.decode_s[row] = now

    @staticmethod
    def on_preempt(table: Any, row: int, now: float, state: Any, params: Any) -> None:
        if table.computed_tokens[row] == 0:
            state.entered.decode_s[row] = math.inf


class UniBoostBaseParams(NamedTuple):
    """Parameters of uniboost_base."""

    gamma_per_s: Gamma = 0.005
    hysteresis_s: Hysteresis = 1.0
    seconds_per_token: SecondsPerToken = 0.0


class UniBoostBaseState(NamedTuple):
    """Kept from step to step."""

    found: Any


@policy("uniboost_base", source="UniBoost (arXiv 2606.18431) §5.2, UniBoost-Base")
class UniBoostBase(Preemptive):
    """One order of prefills and decodes by a − b_γ(max(attained, prompt)); the running have a head start δ.

    With a prefix cache the prompt and the attained service count without the tokens found in it.
    Keys follow every token: `memguard` is the same with few revisions.
    """

    Params = UniBoostBaseParams
    keys = hooks.ON_PROGRESS

    @staticmethod
    def make_state(params: Any, capacity: int) -> UniBoostBaseState:
        return UniBoostBaseState(allocate(Found, capacity)[1])

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        tokens = effective_tokens(table, row, state.found.found_tokens)
        boosted = boosted_s(table.arrival_s[row], tokens, params.gamma_per_s, params.seconds_per_token, cost)
        return 0, boosted - resident_s(table, row, params.hysteresis_s)

    @staticmethod
    def on_arrival(table: Any, row: int, now: float, state: Any, params: Any) -> None:
        state.found.found_tokens[row] = 0

    @staticmethod
    def on_progress(table: Any, row: int, tokens: int, now: float, state: Any, params: Any) -> None:
        note_found(table, row, state.found.found_tokens)

    @staticmethod
    def on_preempt(table: Any, row: int, now: float, state: Any, params: Any) -> None:
        note_found(table, row, state.found.found_tokens)


class MemGuardParams(NamedTuple):
    """Parameters of memguard."""

    gamma_per_s: Gamma = 0.005
    k_tokens: Milestone = 256
    hysteresis_s: Hysteresis = 1.0
    lock: Lock = ADMISSION
    victim: Victim = RANK
    order: Order = RANKED
    seconds_per_token: SecondsPerToken = 0.0


@policy("memguard", source="UniBoost (arXiv 2606.18431) §5.3, MemGuard")
class MemGuard(Guarded):
    """As uniboost_base, with keys revised only at k, 2k, 4k, … tokens, and no eviction in between.

    If all the running are locked and one of them needs KV, a locked one yields all the same: a
    counted escape, without which nobody could go on.
    """

    Params = MemGuardParams

    @staticmethod
    def make_state(params: Any, capacity: int) -> GuardState:
        return make_state(capacity, params.gamma_per_s, 1, 1)
