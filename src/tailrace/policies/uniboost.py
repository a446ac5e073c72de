"""UniBoost's last stage: a γ that follows the tail of response times, with frozen priorities.

Source: UniBoost (arXiv 2606.18431) §5.4 and Algorithm 1.

    uniboost          a key keeps the γ of its last milestone.
    uniboost_rekeyed  the other reading: each new γ revises all keys at once.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import hooks
from .._jit import kernel
from ..errors import UserError
from ..hooks import policy
from ..params import P
from ._boosting import Hysteresis, SecondsPerToken
from ._guarded import (
    ADMISSION,
    RANK,
    RANKED,
    Guarded,
    GuardState,
    Lock,
    Milestone,
    Order,
    Victim,
    guarded_key_s,
    guarded_victim,
    make_state,
)
from ._samples import observe, quantile

LN_5: Final = math.log(5.0)
PATH: Final = 4096
"""Latest values of γ that are kept."""

Window = Annotated[int, P("latest completions that γ is fitted to", unit="requests", low=2, high=65536)]
Samples = Annotated[int, P("with fewer completions γ stays as it is", unit="requests", low=2)]
Refit = Annotated[float, P("time between two fits of γ; 0 = every step", unit="s", low=0.0)]
Ema = Annotated[float, P("weight of a new fit in the moving average", low=0.0, high=1.0, open_low=True)]
Start = Annotated[float, P("γ before the first fit", unit="1/s", low=0.0, open_low=True)]
Least = Annotated[float, P("γ is at least this", unit="1/s", low=0.0, open_low=True)]
Most = Annotated[float, P("γ is at most this: higher favours the tail, lower time to first token", unit="1/s", low=0.0)]


class UniBoostParams(NamedTuple):
    """Parameters of uniboost."""

    gamma_per_s: Start = 0.005
    gamma_min_per_s: Least = 0.0001
    gamma_max_per_s: Most = 0.006
    refit_s: Refit = 5.0
    ema: Ema = 0.3
    window: Window = 2000
    min_samples: Samples = 200
    k_tokens: Milestone = 256
    hysteresis_s: Hysteresis = 1.0
    lock: Lock = ADMISSION
    victim: Victim = RANK
    order: Order = RANKED
    seconds_per_token: SecondsPerToken = 0.0


class UniBoostRekeyedParams(UniBoostParams):
    """Parameters of uniboost_rekeyed: those of uniboost. A class of its own, as hooks go by it."""

    __slots__ = ()


@kernel
def _refit(state: Any, now: float, params: Any) -> None:
    """γ̂ = −(ln F̄(t99) − ln F̄(t95))/(t99 − t95) = ln 5/(t99 − t95), then average and clip."""
    control, held = state.control, state.control.held[0]
    control.refitted_s[0] = now
    spread_s = quantile(state.recent.ranked_s, held, 0.99) - quantile(state.recent.ranked_s, held, 0.95)
    fitted = LN_5 / spread_s if spread_s > 0.0 else params.gamma_max_per_s
    gamma = (1.0 - params.ema) * control.gamma_per_s[0] + params.ema * fitted
    if gamma > params.gamma_max_per_s:
        gamma = params.gamma_max_per_s
    if gamma < params.gamma_min_per_s:
        gamma = params.gamma_min_per_s
    control.gamma_per_s[0] = gamma
    place = control.fits[0] % state.path.gamma_per_s.shape[0]
    state.path.time_s[place], state.path.gamma_per_s[place] = now, gamma
    control.fits[0] += 1


def gamma_path(state: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``(times, values)`` of γ after each fit, in seconds and 1/s; the latest 4,096 in order of time."""
    fits, times = int(state.control.fits[0]), np.asarray(state.path.time_s)
    kept = np.arange(max(fits - len(times), 0), fits) % len(times)
    return times[kept].copy(), np.asarray(state.path.gamma_per_s)[kept].copy()


@policy("uniboost", source="UniBoost (arXiv 2606.18431) §5.4 and Algorithm 1")
class UniBoost(Guarded):
    """UniBoost: memguard with γ fitted online to the P95–P99 tail of recent response times.

    γ̂ = ln 5/(t99 − t95) over the last ``window`` completions every ``refit_s``, then a moving
    average and a clip. A key keeps the γ of its last milestone. No predictions.
    """

    Params: ClassVar[type[Any] | None] = UniBoostParams

    @staticmethod
    def make_state(params: Any, capacity: int) -> GuardState:
        """Raises UserError for a γ outside its own bounds, and for a window that never fills."""
        if not params.gamma_min_per_s <= params.gamma_per_s <= params.gamma_max_per_s:
            bounds = f"gamma_min_per_s={params.gamma_min_per_s:g} and gamma_max_per_s={params.gamma_max_per_s:g}"
            raise UserError(f"gamma_per_s={params.gamma_per_s:g} must lie between {bounds}: widen them, or move it")
        if params.window < params.min_samples:
            raise UserError(f"window={params.window} is below min_samples={params.min_samples}: γ would stay as it is")
        return make_state(capacity, params.gamma_per_s, params.window, PATH)

    @staticmethod
    def tallies(state: Any) -> dict[str, float]:
        gamma = {"gamma_per_s": float(state.control.gamma_per_s[0]), "gamma_fits": int(state.control.fits[0])}
        return {**Guarded.tallies(state), **gamma}

    @staticmethod
    def paths(state: Any) -> dict[str, tuple[Any, Any]]:
        return {"gamma_per_s": gamma_path(state)}

    @staticmethod
    def on_remove(table: Any, row: int, reason: int, now: float, state: Any, params: Any) -> None:
        if reason == hooks.FINISHED:
            observe(state.recent, state.control, now - table.arrival_s[row])

    @staticmethod
    def after_step(table: Any, planned: Any, step_s: float, now: float, state: Any, params: Any) -> None:
        if state.control.held[0] >= params.min_samples and now - state.control.refitted_s[0] >= params.refit_s:
            _refit(state, now, params)


@policy("uniboost_rekeyed", source="UniBoost (arXiv 2606.18431) §5.4, each γ for all keys")
class UniBoostRekeyed(UniBoost):
    """As uniboost, but each new γ revises every request's key at once, so their number has no bound.

    A policy of its own as keys that anything may change are kept another way: a step costs time for
    each waiting request.
    """

    Params: ClassVar[type[Any] | None] = UniBoostRekeyedParams
    keys = hooks.EVERY_STEP

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        return 0, guarded_key_s(table, row, state.control.gamma_per_s[0], state, cost, params)

    @staticmethod
    def victim(
        table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any
    ) -> tuple[bool, float]:
        return guarded_victim(table, row, state.control.gamma_per_s[0], state, cost, params)
