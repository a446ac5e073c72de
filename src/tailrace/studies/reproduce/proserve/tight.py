"""Tight memory: the KV size at which prefill-first serving preempts so many times a request, by bisection.

Half a time a request would be the natural measure. Whole prompts are admitted only where they fit, so with
prompts that are long and outputs that are short nobody is preempted that often, however little KV there is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from .... import latency
from ..points import column, sample
from .plan import TIGHT_LOAD, TIGHT_MIX, Scope
from .settings import MODELS, POLICIES, Setting, of, point

__all__ = ["PREEMPTIONS", "SEEDS", "tight_kv_tokens"]

PREEMPTIONS: Final = 0.1
"""No size reaches more than 0.3; there prefill-first serving meets next to no SLO."""
SEEDS: Final = 3
STEP_TOKENS: Final = 1024
"""To which the size is found."""
LEAST_TOKENS: Final = 65_536
"""Below, the longest requests would hardly fit."""


def tight_kv_tokens(
    scope: Scope, workers: int = 0, cache: bool = True, done: Callable[[int], None] = lambda runs: None
) -> int:
    """KV tokens, a multiple of `STEP_TOKENS`: the least with which `PREEMPTIONS` a request are not passed.

    At `TIGHT_LOAD` on `TIGHT_MIX`, in the mean of `SEEDS` seeds; never below `LEAST_TOKENS`.
    """
    setting = Setting(mix=TIGHT_MIX)
    traffic = of(setting, TIGHT_LOAD, scope.seeds, scope.shorter)

    def preempted(steps: int) -> float:
        at = point(setting, POLICIES["prefill_first"], traffic, kv_tokens=steps * STEP_TOKENS)
        found = sample([at], min(SEEDS, scope.seeds), workers, cache, done)
        return float(np.nanmean(column(found, at, "preemptions_per_request")))

    device = latency.build(MODELS[setting.model].memory_of).kv_tokens or 0
    low, high = LEAST_TOKENS // STEP_TOKENS, device // STEP_TOKENS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if preempted(middle) <= PREEMPTIONS else (middle, high)
    return high * STEP_TOKENS
