"""The policies once more, from the papers' prose (QBA §III, the baselines), for the reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .model import INF, Oracle, Req
from .reference import Reference


class Keyed(Oracle):
    """A policy that is one key."""

    def __init__(self, key: Callable[[Req], tuple[int, float]], preemptive: bool = False) -> None:
        self._key, self.preemptive = key, preemptive

    def key(self, r: Req, now: float) -> tuple[int, float]:
        return self._key(r)

    def may_preempt(self, waiting: Req, running: Req) -> bool:
        return self.preemptive


class LargestPriority(Keyed):
    """vLLM's priority: the largest (priority, arrival) yields."""

    def victim(self, r: Req) -> tuple[bool, float]:
        return False, -r.priority


class Aging(Oracle):
    """What AA and QBA share: a quantile of past (or present) waits makes a long request aged."""

    def __init__(self, gamma: float = 0.8, reference: str = "history_long", window: int = 200, least: int = 20) -> None:
        self.gamma, self.reference, self.window, self.least = gamma, reference, window, least
        self.waits: list[float] = []
        self.theta = INF

    def prepare(self, sim: Reference, now: float) -> None:
        sample = [now - r.arrival for r in sim.waiting] if self.reference == "queue" else self.waits[-self.window :]
        self.theta = float(np.quantile(sample, self.gamma)) if len(sample) >= self.least else INF

    def aged(self, r: Req, now: float) -> bool:
        return r.is_long and now - r.arrival > self.theta

    def on_admit(self, r: Req, first: bool, tier: int, now: float) -> None:
        if first and (r.is_long or self.reference == "history_all"):
            self.waits.append(now - r.arrival)


class AA(Aging):
    """Every aged long request, then short, then the other long ones."""

    def key(self, r: Req, now: float) -> tuple[int, float]:
        return (0 if self.aged(r, now) else 2 if r.is_long else 1), 0.0


class QBA(Aging):
    """After k completed short prefills the oldest aged long request goes first."""

    def __init__(self, k: int = 5, debts: str = "frozen", **aging: object) -> None:
        super().__init__(**aging)  # type: ignore[arg-type]
        self.k, self.accumulate = k, debts == "accumulate"
        self.shorts = self.owed = 0
        self.counted: set[Req] = set()
        self.promoted: set[Req] = set()
        self.next: Req | None = None

    def prepare(self, sim: Reference, now: float) -> None:
        super().prepare(sim, now)
        aged = [r for r in sim.waiting if self.aged(r, now) and r not in self.promoted]
        self.next = min(aged, key=lambda r: (r.arrival, r.row)) if aged and self.owed else None

    def key(self, r: Req, now: float) -> tuple[int, float]:
        return (0 if r is self.next or r in self.promoted else 2 if r.is_long else 1), 0.0

    def on_admit(self, r: Req, first: bool, tier: int, now: float) -> None:
        super().on_admit(r, first, tier, now)
        if r is self.next:
            self.promoted.add(r)
            self.owed -= 1
            if not self.accumulate:
                self.shorts = 0

    def on_prefill_done(self, r: Req) -> None:
        if r.is_long or r in self.counted:
            return
        self.counted.add(r)
        if self.owed and not self.accumulate:
            return
        self.shorts += 1
        if self.shorts == self.k:
            self.owed += 1
            self.shorts = 0 if self.accumulate else self.k


def shortest_left(r: Req) -> tuple[int, float]:
    """srpt: prompt not yet computed once, and predicted output to come (at least one token)."""
    return 0, max(r.prompt - r.attained, 0) + max(r.predicted - r.delivered, 1)


ORACLES: dict[str, Callable[[], Oracle]] = {
    "fcfs": Oracle,
    "vllm_fcfs": Oracle,
    "sarathi": Oracle,
    "psf": lambda: Keyed(lambda r: (int(r.is_long), 0.0)),
    "priority": lambda: Keyed(lambda r: (r.priority, 0.0), preemptive=True),
    "vllm_priority": lambda: LargestPriority(lambda r: (r.priority, 0.0)),
    "sjf": lambda: Keyed(lambda r: (0, r.prompt + r.predicted), preemptive=True),
    "srpt": lambda: Keyed(shortest_left, preemptive=True),
    "aa": AA,
    "qba": QBA,
}
