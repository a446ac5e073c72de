"""What a policy adds to vLLM's schedule(): its time against stock's, step by step in turn.

Two real Schedulers, stock's and the one with the policy, are fed the same requests and kept
at the same crowd: so many running, so many waiting. Their schedule() calls alternate, the
first of each pair changing, so that whatever the machine does meets both alike.
"""

from __future__ import annotations

import gc
import statistics
import time
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..vllm_plugin.offline import OfflineScheduler, Settings

__all__ = ["CROWDS", "Overhead", "measure"]

CROWDS: Final = ((64, 100), (256, 1000))
"""(running, waiting)."""
OUTPUT_TOKENS: Final = 120


@dataclass(frozen=True)
class Overhead:
    """One policy at one crowd."""

    policy: str
    running: int
    waiting: int
    pairs: int
    stock_us: float
    """Median of stock's schedule(), microseconds."""
    policy_us: float
    ratio: float
    """Median of the pairs' ratios."""
    low: float
    high: float
    """Quartiles of the ratios."""


class _Crowd:
    """A Scheduler kept at ``waiting`` requests beyond those that run."""

    def __init__(self, policy: str | None, running: int, waiting: int) -> None:
        settings = Settings(
            token_budget=2048,
            max_seqs=running,
            blocks=running * 40,
            tailrace={"policy": policy} if policy else None,
        )
        self.offline, self.waiting, self.added = OfflineScheduler(settings), waiting, 0
        self._rng = np.random.default_rng(1)

    def fill(self) -> None:
        """New requests in place of those that have finished."""
        scheduler = self.offline.scheduler
        while len(scheduler.waiting) < self.waiting or len(scheduler.requests) < self.waiting + 8:
            prompt, length = int(self._rng.integers(64, 256)), int(self._rng.integers(0, 2))
            told = {
                "tailrace_predicted_output_tokens": OUTPUT_TOKENS * (1 + 2 * length),
                "tailrace_predicted_class": ("short", "long")[length],
            }
            output = int(self._rng.integers(OUTPUT_TOKENS // 2, OUTPUT_TOKENS * 2))
            self.offline.now += 0.01
            self.offline.add(self.added, [1] * prompt, output, self.offline.now, 0, told)
            self.added += 1

    def timed_step(self) -> float:
        """Seconds of one schedule()."""
        self.fill()
        self.offline.now += 0.01
        scheduler: Any = self.offline.scheduler
        gc.disable()
        begin = time.thread_time()
        output = scheduler.schedule()
        took = time.thread_time() - begin
        gc.enable()
        self.offline.begun(output)
        self.offline.complete()
        return took


def measure(policy: str, running: int, waiting: int, pairs: int) -> Overhead:
    """Time ``pairs`` pairs after a warm-up in which the places fill."""
    stock, ours = _Crowd(None, running, waiting), _Crowd(policy, running, waiting)
    for _ in range(60):
        stock.timed_step()
        ours.timed_step()
    seconds = []
    for i in range(pairs):
        first, second = (stock, ours) if i % 2 else (ours, stock)
        a, b = first.timed_step(), second.timed_step()
        seconds.append((a, b) if first is stock else (b, a))
    ratios = [b / a for a, b in seconds]
    low, middle, high = statistics.quantiles(ratios, n=4)
    us = [1e6 * statistics.median(column) for column in zip(*seconds, strict=True)]
    return Overhead(policy, running, waiting, pairs, us[0], us[1], middle, low, high)
