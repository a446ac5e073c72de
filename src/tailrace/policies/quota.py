"""Predicted-short first, and two ways to age the long ones: PSF, AA and QBA.

Source: Quota-Based Aging (arXiv 2610.17795) §III. A predicted-long request is **aged** once
it has waited longer than θ, the γ-quantile of a reference sample of waits (§III-A4).

    PSF   predicted short, then predicted long (§III-A3).
    AA    every aged long, then short, then the other long ones (§III-A5).
    QBA   as PSF, but after every k completed short prefills one **promotion debt** is
          pending, which lets the oldest aged long request go first (§III-A6).

All three rank the waiting only, and the newest running request yields KV: ranking the
running would make long decodes the victims of short prefills, which is not the paper.
What the paper leaves open is an option of `AAParams` or `QBAParams`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, NamedTuple

import numpy as np

from .. import hooks
from .._jit import kernel
from ..errors import UserError
from ..hooks import Policy, policy
from ..params import P
from ..table import F8, I8, LONG, SHORT, WAITING, Columns, allocate
from ._samples import Cursor, Recent, insert, observe, quantile

HISTORY_LONG: Final = 0
HISTORY_ALL: Final = 1
QUEUE: Final = 2
FROZEN: Final = 0

MOST_SAMPLES: Final = 65536
"""Waits kept when the window is unbounded."""

RULES: Final = {"order_scope": "waiting", "victim": "tail"}

Quantile = Annotated[
    float, P("γ: quantile of the reference waits past which a long request is aged", low=0.0, high=1.0)
]
Reference = Annotated[
    int,
    P(
        "reference sample: waits of started predicted-long requests, of all started, or of the waiting now",
        choices=("history_long", "history_all", "queue"),
    ),
]
Window = Annotated[
    int, P("latest starts kept in the history; 0 = all (up to 65,536)", unit="requests", low=0, high=65536)
]
Samples = Annotated[int, P("with fewer samples nobody is aged", unit="requests", low=1)]


class AAParams(NamedTuple):
    """Parameters of aggressive aging."""

    aging_quantile: Quantile = 0.8
    reference: Reference = HISTORY_LONG
    window: Window = 200
    min_samples: Samples = 20


class QBAParams(NamedTuple):
    """Parameters of quota-based aging."""

    k: Annotated[int, P("completed predicted-short prefills that earn one promotion", unit="requests", low=1)] = 5
    aging_quantile: Quantile = 0.8
    reference: Reference = HISTORY_LONG
    window: Window = 200
    min_samples: Samples = 20
    debts: Annotated[
        int,
        P("while a debt is pending the counter is frozen at k, or debts accumulate", choices=("frozen", "accumulate")),
    ] = FROZEN


class Aging(Cursor):
    """Scalars: one row. The window holds the waits of started requests."""

    threshold_s: F8
    """θ; infinite with too few samples."""
    shorts: I8
    """QBA's counter of completed short prefills."""
    debts: I8
    """Promotions owed."""
    started: I8
    """Predicted-long requests that have started."""
    ahead: I8
    """Of them, those that went first because they were aged."""


class Promoted(Columns):
    """One row a request."""

    paid: I8
    """1 if its admission paid a debt."""
    counted: I8
    """1 once its prefill was completed: a recompute does not count again."""


class Ranking(Columns):
    """What ranking a step needs of the queue: one row."""

    threshold_s: F8
    promotable: I8
    """Row that the pending debt puts first, or -1."""


class Waits(Columns):
    """The queue's waits, ascending."""

    wait_s: F8


class AgingState(NamedTuple):
    """Kept from step to step."""

    history: Any
    aging: Any
    promoted: Any


class AgingScratch(NamedTuple):
    """Computed anew each step."""

    ranking: Any
    waits: Any


def _make_state(params: Any, capacity: int) -> AgingState:
    if 0 < params.window < params.min_samples:
        raise UserError(f"window={params.window} is below min_samples={params.min_samples}: nobody would ever be aged")
    window = params.window or min(max(capacity, 1), MOST_SAMPLES)
    records, aging = allocate(Aging, 1)
    records["threshold_s"] = np.inf
    return AgingState(allocate(Recent, window)[1], aging, allocate(Promoted, capacity)[1])


def _make_scratch(params: Any, capacity: int) -> AgingScratch:
    waits = capacity if params.reference == QUEUE else 1
    return AgingScratch(allocate(Ranking, 1)[1], allocate(Waits, waits)[1])


@kernel
def _observe(state: Any, wait_s: float, params: Any) -> None:
    """Add a started request's wait to the history and move θ."""
    held = observe(state.history, state.aging, wait_s)
    if held >= params.min_samples:
        state.aging.threshold_s[0] = quantile(state.history.ranked_s, held, params.aging_quantile)


@kernel
def _set_threshold(table: Any, live: Any, now: float, state: Any, scratch: Any, params: Any) -> None:
    """θ of this step: from the history, or from the waits of the queue."""
    theta, waits = scratch.ranking.threshold_s, scratch.waits.wait_s
    theta[0] = state.aging.threshold_s[0]
    if params.reference != QUEUE:
        return
    count = 0
    for row in live:
        if table.phase[row] == WAITING:
            insert(waits, count, now - table.arrival_s[row])
            count += 1
    theta[0] = np.inf
    if count >= params.min_samples:
        theta[0] = quantile(waits, count, params.aging_quantile)


@kernel
def _is_aged(table: Any, row: int, now: float, scratch: Any) -> bool:
    return table.predicted_class[row] == LONG and now - table.arrival_s[row] > scratch.ranking.threshold_s[0]


@kernel
def _older(table: Any, a: int, b: int) -> bool:
    if table.arrival_s[a] != table.arrival_s[b]:
        return table.arrival_s[a] < table.arrival_s[b]
    return table.seq[a] < table.seq[b]


@kernel
def _note_start(table: Any, row: int, first: bool, tier: int, now: float, state: Any, params: Any) -> None:
    if first and table.predicted_class[row] == LONG:
        state.aging.started[0] += 1
        if tier == 0:
            state.aging.ahead[0] += 1
    if first and (params.reference == HISTORY_ALL or table.predicted_class[row] == LONG):
        _observe(state, now - table.arrival_s[row], params)


def _tallies(state: Any) -> dict[str, float]:
    """φ of arXiv 2610.17795 §III-B is ``promoted`` over ``predicted_long_started``."""
    return {"predicted_long_started": int(state.aging.started[0]), "promoted": int(state.aging.ahead[0])}


@policy("psf", source="arXiv 2610.17795 §III-A3")
class PSF(Policy):
    """Predicted short before predicted long, order of arrival within each."""

    keys = hooks.STATIC

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        return RULES

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        return table.predicted_class[row], 0.0


@policy("aa", source="arXiv 2610.17795 §III-A5")
class AA(Policy):
    """Aggressive aging: every aged predicted-long request first, then as PSF."""

    Params = AAParams
    keys = hooks.LANES
    lanes = 2

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        return RULES

    @staticmethod
    def sees_all(params: Any) -> bool:
        return params.reference == QUEUE

    make_state = staticmethod(_make_state)
    make_scratch = staticmethod(_make_scratch)
    tallies = staticmethod(_tallies)

    @staticmethod
    def lane(table: Any, row: int, state: Any, params: Any) -> int:
        return table.predicted_class[row]

    @staticmethod
    def prepare(table: Any, live: Any, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> None:
        _set_threshold(table, live, now, state, scratch, params)

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        if _is_aged(table, row, now, scratch):
            return 0, 0.0
        return 1 + table.predicted_class[row], 0.0

    @staticmethod
    def on_admit(table: Any, row: int, first: bool, tier: int, now: float, state: Any, params: Any) -> None:
        _note_start(table, row, first, tier, now, state, params)


@policy("qba", source="arXiv 2610.17795 §III-A6")
class QBA(Policy):
    """Quota-based aging: as PSF, with one aged predicted-long request first after every k
    completed predicted-short prefills. With bounded k no aged request waits for ever.

    Until ``min_samples`` reference waits are known nobody is aged and QBA is PSF; with
    ``history_long`` that takes so many predicted-long requests to have started.
    """

    Params = QBAParams
    keys = hooks.LANES
    lanes = 3

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        return RULES

    @staticmethod
    def sees_all(params: Any) -> bool:
        return params.reference == QUEUE

    make_state = staticmethod(_make_state)
    make_scratch = staticmethod(_make_scratch)
    tallies = staticmethod(_tallies)

    @staticmethod
    def lane(table: Any, row: int, state: Any, params: Any) -> int:
        """A promoted request that lost its KV waits in a lane of its own and keeps its place."""
        if state.promoted.paid[row]:
            return 2
        return table.predicted_class[row]

    @staticmethod
    def prepare(table: Any, live: Any, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> None:
        _set_threshold(table, live, now, state, scratch, params)
        scratch.ranking.promotable[0] = -1
        if state.aging.debts[0] == 0:
            return
        best = -1
        for row in live:
            if table.phase[row] != WAITING or state.promoted.paid[row] or not _is_aged(table, row, now, scratch):
                continue
            if best < 0 or _older(table, row, best):
                best = row
        scratch.ranking.promotable[0] = best

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        if row == scratch.ranking.promotable[0] or state.promoted.paid[row]:
            return 0, 0.0
        return 1 + table.predicted_class[row], 0.0

    @staticmethod
    def on_admit(table: Any, row: int, first: bool, tier: int, now: float, state: Any, params: Any) -> None:
        """The debt is cleared only by the admission of the request it promoted."""
        _note_start(table, row, first, tier, now, state, params)
        if tier == 0 and not state.promoted.paid[row]:
            state.promoted.paid[row] = 1
            state.aging.debts[0] -= 1
            if params.debts == FROZEN:
                state.aging.shorts[0] = 0

    @staticmethod
    def on_prefill_done(table: Any, row: int, now: float, state: Any, params: Any) -> None:
        """A short prefill counts when it completes for the first time, not chunk by chunk."""
        if table.predicted_class[row] != SHORT or state.promoted.counted[row]:
            return
        state.promoted.counted[row] = 1
        aging = state.aging
        if params.debts == FROZEN and aging.debts[0] > 0:
            return
        aging.shorts[0] += 1
        if aging.shorts[0] >= params.k:
            aging.debts[0] += 1
            aging.shorts[0] = params.k if params.debts == FROZEN else 0

    @staticmethod
    def on_remove(table: Any, row: int, reason: int, now: float, state: Any, params: Any) -> None:
        """A promoted request aborted before its first token gives its debt back."""
        if state.promoted.paid[row] and reason == hooks.ABORTED and table.generated_tokens[row] == 0:
            if params.debts != FROZEN or state.aging.debts[0] == 0:
                state.aging.debts[0] += 1
            if params.debts == FROZEN:
                state.aging.shorts[0] = params.k
        state.promoted.paid[row] = state.promoted.counted[row] = 0
