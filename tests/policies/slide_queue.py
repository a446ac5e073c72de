"""A queue before slide, its requests put in any state."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tailrace import hooks, params
from tailrace.latency import PiecewiseParams
from tailrace.table import DECODE

from .hand import Hand

STARVING, URGENT, PROMOTED, LATER_URGENT, NORMAL, HOPELESS = range(6)
SLOW = PiecewiseParams(constant_s=0.01, per_token_s=0.001, knee_tokens=0)
"""10 ms a step and 1 ms a token, in prefill and decode alike."""


class Queue(Hand):
    """Requests that all arrived at 0, with TTFT_SLO 1 s and TPOT_SLO 50 ms."""

    cost = SLOW

    def __init__(self, *prompts: int, **given: Any) -> None:
        super().__init__("slide", len(prompts), list(prompts), **given)
        self.records["arrival_s"] = self.state.served.at_s[:] = 0.0
        self.records["weight"], self.records["ttft_slo_s"], self.records["tpot_slo_s"] = 1.0, 1.0, 0.05
        self.records["first_token_s"] = math.nan

    def decode(self, row: int, made: int, first_s: float) -> None:
        """``made`` output tokens are delivered, the first one at ``first_s``."""
        record = self.records[row : row + 1]
        record["phase"], record["generated_tokens"], record["first_token_s"] = DECODE, made, first_s
        record["computed_tokens"] = record["prompt_tokens"] + made - 1

    def ranked(self, now: float) -> list[tuple[int, Any]]:
        """(tier, key) of each row in a step at ``now``."""
        live = np.arange(len(self.records))
        hooks.prepare(self.table, live, now, self.state, self.scratch, self.cost, self.params)
        return [self.tier_and_key(row, now) for row in range(len(live))]

    def tiers(self, now: float) -> list[int]:
        return [tier for tier, _ in self.ranked(now)]

    def load(self, now: float) -> tuple[Any, Any]:
        """``(t_budget, φ)``"""
        self.ranked(now)
        return float(self.scratch.load.budget_s[0]), float(self.scratch.load.drain_s[0])

    def seconds(self, now: float) -> float:
        """What a step may take beside the constant."""
        self.ranked(now)
        live, args = np.arange(len(self.records)), (self.state, self.scratch, self.cost, self.params)
        return float(hooks.step_limits(self.table, live, now, *args)[2])


def altered(queue: Queue, **given: Any) -> Queue:
    """The same queue under other options."""
    queue.params = params.build(queue.policy.Params, given, "slide")
    return queue
