"""Frozen priorities: keys that are revised at few milestones, and locks between them.

Source: UniBoost (arXiv 2606.18431) §5.3, MemGuard. Effective work is cut to the milestones
ŵ = k·2^⌊log2(max(w̃, k)/k)⌋; a key a − b_γ(ŵ) is revised only at a milestone, with the γ of that
moment, so a request of S tokens has at most 1 + max(0, ⌊log2(S/k)⌋) keys. (With a prefix cache, one
more: how much of the prompt is cached becomes known when it first runs.)
"""

from __future__ import annotations

from typing import Annotated, Any, Final, NamedTuple

import numpy as np

from .. import hooks
from .._jit import kernel
from ..hooks import Policy
from ..params import P
from ..table import F8, I8, Columns, allocate
from ._boosting import Found, boosted_s, effective_tokens, note_found, resident_s
from ._ranked import RANKED_RULES
from ._samples import Cursor, Recent

__all__ = ["ADMISSION", "RANK", "RANKED", "GuardState", "Guarded", "Lock", "Milestone", "Order", "Victim"]
__all__ += ["guarded_key_s", "guarded_victim", "make_state", "milestone_tokens"]

ADMISSION: Final = 0
MILESTONE: Final = 1
NEVER: Final = 2
RANK: Final = 0
KV: Final = 1
RANKED: Final = 0
DECODE_FIRST: Final = 1

Milestone = Annotated[int, P("k: the first milestone; each next one is twice as far", unit="tokens", low=1)]
Lock = Annotated[
    int,
    P(
        "a request is not evicted before its next milestone: once admitted, all the time but at a milestone, or it is",
        choices=("admission", "milestone", "none"),
    ),
]
Victim = Annotated[
    int, P("of those that may be evicted: the worst ranked, or who holds least KV", choices=("rank", "kv"))
]
Order = Annotated[
    int, P("who takes a step's budget first: whoever ranks first, or decodes", choices=("ranked", "decode_first"))
]


class Guard(Found):
    """One row a request."""

    milestone_tokens: I8
    """ŵ of its key."""
    gamma_per_s: F8
    """γ of its key."""
    safe_until_tokens: I8
    """Effective work below which it may not be evicted."""
    revisions: I8
    """How often it was given a key."""


class Control(Cursor):
    """Scalars: one row. The window holds response times."""

    gamma_per_s: F8
    refitted_s: F8
    fits: I8
    revisions: I8
    """Keys given to all requests."""
    early: I8
    """Requests that lost their KV before their next milestone, as nobody else could yield."""


class Path(Columns):
    """Latest values of γ, a ring."""

    time_s: F8
    gamma_per_s: F8


class GuardState(NamedTuple):
    """Kept from step to step."""

    guard: Any
    control: Any
    recent: Any
    path: Any


def make_state(capacity: int, gamma_per_s: float, window: int, path: int) -> GuardState:
    """For ``capacity`` rows; rings of ``window`` response times and of ``path`` values of γ."""
    records, control = allocate(Control, 1)
    records["gamma_per_s"], records["refitted_s"] = gamma_per_s, -np.inf
    return GuardState(allocate(Guard, capacity)[1], control, allocate(Recent, window)[1], allocate(Path, path)[1])


@kernel
def milestone_tokens(work_tokens: int, k_tokens: int) -> int:
    """ŵ = k·2^⌊log2(max(w, k)/k)⌋, tokens."""
    milestone = k_tokens
    while 2 * milestone <= work_tokens:
        milestone *= 2
    return milestone


@kernel
def _revise(table: Any, row: int, state: Any, params: Any) -> bool:
    """Give the row a new key if its effective work is past its next milestone; whether it is.

    A row that was just evicted is asked before it is queued, so its key does not change while it waits.
    """
    guard, control = state.guard, state.control
    milestone = milestone_tokens(effective_tokens(table, row, guard.found_tokens), params.k_tokens)
    if milestone == guard.milestone_tokens[row]:
        return False
    guard.milestone_tokens[row], guard.gamma_per_s[row] = milestone, control.gamma_per_s[0]
    guard.revisions[row] += 1
    control.revisions[0] += 1
    return True


@kernel
def is_locked(table: Any, row: int, state: Any) -> bool:
    """Whether it has yet to reach the milestone up to which it is safe from eviction."""
    return bool(effective_tokens(table, row, state.guard.found_tokens) < state.guard.safe_until_tokens[row])


@kernel
def guarded_key_s(table: Any, row: int, gamma_per_s: float, state: Any, cost: Any, params: Any) -> float:
    """The key a − b_γ(ŵ), seconds, less δ for the running."""
    tokens = state.guard.milestone_tokens[row]
    boosted = boosted_s(table.arrival_s[row], tokens, gamma_per_s, params.seconds_per_token, cost)
    return boosted - resident_s(table, row, params.hysteresis_s)


@kernel
def guarded_victim(table: Any, row: int, gamma_per_s: float, state: Any, cost: Any, params: Any) -> tuple[bool, float]:
    """``(protected, cost)`` of its KV: the locked are protected; then the worst key, or the least KV, costs least."""
    locked = is_locked(table, row, state)
    if params.victim == KV:
        return locked, float(table.kv_blocks[row])
    return locked, -guarded_key_s(table, row, gamma_per_s, state, cost, params)


class Guarded(Policy):
    """The hooks of policies whose keys are revised at milestones; theirs are ``Params`` and ``make_state``."""

    keys = hooks.ON_PROGRESS

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        order = "decode_first" if params.order == DECODE_FIRST else "ranked"
        return {**RANKED_RULES, "phase_order": order, "victim": "hook"}

    @staticmethod
    def tallies(state: Any) -> dict[str, float]:
        return {"key_revisions": int(state.control.revisions[0]), "early_evictions": int(state.control.early[0])}

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        return 0, guarded_key_s(table, row, state.guard.gamma_per_s[row], state, cost, params)

    @staticmethod
    def may_preempt(
        table: Any, waiting_row: int, running_row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any
    ) -> bool:
        return not is_locked(table, running_row, state)

    @staticmethod
    def victim(
        table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any
    ) -> tuple[bool, float]:
        return guarded_victim(table, row, state.guard.gamma_per_s[row], state, cost, params)

    @staticmethod
    def on_arrival(table: Any, row: int, now: float, state: Any, params: Any) -> None:
        guard = state.guard
        guard.found_tokens[row] = guard.milestone_tokens[row] = 0
        guard.safe_until_tokens[row] = guard.revisions[row] = 0
        _revise(table, row, state, params)

    @staticmethod
    def on_admit(table: Any, row: int, first: bool, tier: int, now: float, state: Any, params: Any) -> None:
        if params.lock != NEVER:
            state.guard.safe_until_tokens[row] = 2 * state.guard.milestone_tokens[row]

    @staticmethod
    def on_progress(table: Any, row: int, tokens: int, now: float, state: Any, params: Any) -> None:
        less = note_found(table, row, state.guard.found_tokens) and table.cached_tokens[row] > 0
        revised = _revise(table, row, state, params)
        if (less and params.lock == ADMISSION) or (params.lock == MILESTONE and not revised):
            state.guard.safe_until_tokens[row] = 2 * state.guard.milestone_tokens[row]

    @staticmethod
    def on_preempt(table: Any, row: int, now: float, state: Any, params: Any) -> None:
        note_found(table, row, state.guard.found_tokens)
        if is_locked(table, row, state):
            state.control.early[0] += 1
        _revise(table, row, state, params)
