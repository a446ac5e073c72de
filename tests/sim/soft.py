"""The boost policies, those by attained service and those with starvation rules, once more from the
papers' prose (UniBoost §4 and §5, FastServe, LTR, TRAIL), for the reference."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .model import INF, Oracle, Req
from .oracles import Keyed, shortest_left
from .reference import Reference


def boost(work_s: float, gamma: float) -> float:
    """(1/γ)·ln(1/(1 − e^{−γw})), with ``log1p`` as γw is never tiny in a drawn case."""
    return -math.log1p(-math.exp(-gamma * work_s)) / gamma if work_s else INF


class GammaBoost(Oracle):
    preemptive = True

    def __init__(self, gamma_per_s: float, seconds_per_token: float, signal: str = "attained") -> None:
        self.gamma, self.token_s, self.signal = gamma_per_s, seconds_per_token, signal

    def key(self, r: Req, now: float) -> tuple[int, float]:
        work = {"attained": max(r.attained, 1), "size": r.prompt + r.predicted, "prompt": r.prompt}[self.signal]
        return 0, r.arrival - boost(work * self.token_s, self.gamma)

    def may_preempt(self, waiting: Req, running: Req) -> bool:
        return self.preemptive


class DistBoost(GammaBoost):
    """Decodes in order of entering decode, then prefills by boosted arrival. A decode is who decodes now, or
    entered decode and has kept its KV since, on the device or off it."""

    preemptive = False

    def __init__(self, gamma_per_s: float, seconds_per_token: float, **caps: int) -> None:
        super().__init__(gamma_per_s, seconds_per_token, "prompt")
        self.entered: dict[Req, float] = {}

    def prepare(self, sim: Reference, now: float) -> None:
        self.sim = sim

    def key(self, r: Req, now: float) -> tuple[int, float]:
        decodes = (r.decoding and r.where == "running") or r in self.entered
        return (0, self.entered.get(r, INF)) if decodes else (1, super().key(r, now)[1])

    def on_prefill_done(self, r: Req) -> None:
        self.entered[r] = self.sim.clock

    def on_preempt(self, r: Req) -> None:
        if not r.host:
            self.entered.pop(r, None)


class Base(GammaBoost):
    """One order; who runs has a head start."""

    def __init__(self, hysteresis_s: float, **boosting: Any) -> None:
        super().__init__(**boosting)
        self.delta = hysteresis_s
        self.spared: dict[Req, int] = {}

    def boosted(self, r: Req) -> float:
        return r.arrival - boost(self.work(r) * self.token_s, self.gamma)

    def work(self, r: Req) -> int:
        """Without what the prefix cache spared it at first."""
        return max(r.attained, r.prompt) - self.spared.get(r, 0)

    def key(self, r: Req, now: float) -> tuple[int, float]:
        return 0, self.boosted(r) - (self.delta if r.where == "running" else 0.0)

    def note(self, r: Req) -> bool:
        """Whether it is news that the cache spared it something."""
        if r in self.spared:
            return False
        self.spared[r] = r.cached
        return r.cached > 0

    def on_progress(self, r: Req, tokens: int) -> None:
        self.note(r)

    def on_preempt(self, r: Req) -> None:
        self.note(r)


class Guard(Base):
    """Keys are revised at milestones; nobody is evicted before the next, if there is a choice."""

    def __init__(self, k_tokens: int, lock: str, victim: str, order: str = "", **base: float) -> None:
        super().__init__(**base)
        self.k, self.lock, self.by = k_tokens, lock, victim
        self.frozen: dict[Req, tuple[int, float]] = {}
        self.safe: dict[Req, int] = {}

    def milestone(self, r: Req) -> int:
        return int(self.k * 2 ** math.floor(math.log2(max(self.work(r), self.k) / self.k)))

    def revise(self, r: Req) -> bool:
        if r in self.frozen and self.frozen[r][0] == self.milestone(r):
            return False
        self.frozen[r] = self.milestone(r), self.gamma
        return True

    def boosted(self, r: Req) -> float:
        tokens, gamma = self.frozen[r]
        return r.arrival - boost(tokens * self.token_s, gamma)

    def locked(self, r: Req) -> bool:
        return self.work(r) < self.safe.get(r, 0)

    def may_preempt(self, waiting: Req, running: Req) -> bool:
        return not self.locked(running)

    def victim(self, r: Req) -> tuple[bool, float]:
        return self.locked(r), r.blocks if self.by == "kv" else -self.key(r, 0.0)[1]

    def on_arrival(self, r: Req, now: float) -> None:
        self.revise(r)

    def on_admit(self, r: Req, first: bool, tier: int, now: float) -> None:
        if self.lock != "none":
            self.safe[r] = 2 * self.milestone(r)

    def on_progress(self, r: Req, tokens: int) -> None:
        news = self.note(r)
        if (not self.revise(r) and self.lock == "milestone") or (news and self.lock == "admission"):
            self.safe[r] = 2 * self.milestone(r)

    def on_preempt(self, r: Req) -> None:
        self.note(r)
        self.revise(r)


class Adaptive(Guard):
    """γ follows the tail of response times."""

    rekeyed = False

    def __init__(self, fitting: dict[str, float], **guard: Any) -> None:
        super().__init__(**guard)
        self.fitting, self.fitted = fitting, -INF
        self.times: list[float] = []

    def prepare(self, sim: Reference, now: float) -> None:
        self.sim = sim

    def on_remove(self, r: Req, reason: str) -> None:
        self.times.append(self.sim.clock - r.arrival)

    def after_step(self, planned: list[Req], now: float) -> None:
        f = self.fitting
        recent = self.times[-int(f["window"]) :]
        if len(recent) < f["min_samples"] or now - self.fitted < f["refit_s"]:
            return
        self.fitted = now
        t95, t99 = np.quantile(recent, [0.95, 0.99])
        found = -(math.log(0.01) - math.log(0.05)) / (t99 - t95) if t99 > t95 else f["gamma_max_per_s"]
        mean = (1 - f["ema"]) * self.gamma + f["ema"] * found
        self.gamma = float(min(max(mean, f["gamma_min_per_s"]), f["gamma_max_per_s"]))

    def boosted(self, r: Req) -> float:
        tokens, gamma = self.frozen[r]
        return r.arrival - boost(tokens * self.token_s, self.gamma if self.rekeyed else gamma)


class Rekeyed(Adaptive):
    rekeyed = True


class MLFQ(Oracle):
    """Queues with quanta; who waits too long begins anew in the first."""

    def __init__(self, quantum_tokens: int, ratio: int, queues: int, join: str, starve_s: float) -> None:
        self.quanta = [quantum_tokens * ratio**i for i in range(queues)]
        self.by_prompt, self.starve_s = join == "prompt", starve_s
        self.base: dict[Req, int] = {}

    def starved(self, r: Req, now: float) -> bool:
        return self.starve_s > 0 and now - r.since > self.starve_s

    def key(self, r: Req, now: float) -> tuple[int, float]:
        if r.where == "waiting" and self.starved(r, now):
            return 0, 0.0
        last = len(self.quanta) - 1
        first = next((i for i, q in enumerate(self.quanta) if q >= r.prompt), last)
        if r in self.base or not self.by_prompt:
            first = 0
        ends = np.cumsum(self.quanta[first:])
        used = r.attained - self.base.get(r, 0)
        return min(first + int(np.searchsorted(ends, used, side="right")), last), 0.0

    def may_preempt(self, waiting: Req, running: Req) -> bool:
        return True

    def on_admit(self, r: Req, first: bool, tier: int, now: float) -> None:
        if self.starved(r, now):
            self.base[r] = r.attained


class LTR(Oracle):
    """By predicted length; who was idle for many steps goes first for some."""

    def __init__(self, work: str, idle_steps: int, quantum_steps: int) -> None:
        self.work, self.idle_steps, self.quantum = work, idle_steps, quantum_steps
        self.steps = 0
        self.served: dict[Req, int] = {}
        self.left: dict[Req, int] = {}

    def idle(self, r: Req) -> bool:
        return self.idle_steps > 0 and self.steps - self.served[r] >= self.idle_steps

    def key(self, r: Req, now: float) -> tuple[int, float]:
        first = self.left.get(r, 0) > 0 or self.idle(r)
        return int(not first), r.predicted + (r.prompt if self.work == "total" else 0)

    def may_preempt(self, waiting: Req, running: Req) -> bool:
        return True

    def on_arrival(self, r: Req, now: float) -> None:
        self.served[r] = self.steps

    def after_step(self, planned: list[Req], now: float) -> None:
        for r in planned:
            if r.where == "done":
                continue
            if not self.left.get(r) and self.idle(r):
                self.left[r] = self.quantum
            if self.left.get(r):
                self.left[r] -= 1
            self.served[r] = self.steps + 1
        self.steps += 1


class TRAIL(Oracle):
    """Shortest predicted remaining work; with a share c of its output made nobody is displaced."""

    def __init__(self, work: str, c: float, rule: str) -> None:
        self.work, self.c = work, c

    def key(self, r: Req, now: float) -> tuple[int, float]:
        return shortest_left(r) if self.work == "total" else (0, max(r.predicted - r.delivered, 1))

    def late(self, r: Req) -> bool:
        return self.c < 1 and r.delivered >= self.c * r.predicted

    def may_preempt(self, waiting: Req, running: Req) -> bool:
        return not self.late(running)

    def victim(self, r: Req) -> tuple[bool, float]:
        return self.late(r), -self.key(r, 0.0)[1]


def adaptive(cls: type[Adaptive]) -> Callable[..., Oracle]:
    """``cls`` from a policy's parameters."""
    names = ("gamma_min_per_s", "gamma_max_per_s", "refit_s", "ema", "window", "min_samples")

    def build(**values: Any) -> Oracle:
        fitting = {name: values.pop(name) for name in names}
        return cls(fitting, **values)

    return build


SOFT: dict[str, Callable[..., Oracle]] = {
    "gamma_boost": GammaBoost,
    "dist_boost": DistBoost,
    "uniboost_base": Base,
    "memguard": Guard,
    "uniboost": adaptive(Adaptive),
    "uniboost_rekeyed": adaptive(Rekeyed),
    "las": lambda: Keyed(lambda r: (0, r.attained), preemptive=True),
    "mlfq": MLFQ,
    "spf": lambda: Keyed(lambda r: (0, r.prompt)),
    "ltr": LTR,
    "trail": TRAIL,
}
"""By policy, from its parameters as a user writes them."""
