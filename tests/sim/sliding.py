"""SlideBatching once more, from the prose of ProServe (SlideBatching, a to f) and of slide's options."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .model import INF, Oracle, Req
from .reference import Reference


class Slide(Oracle):
    """The whole queue in six groups: starving, urgent, starving prefills, urgent prefills if decodes go first, normal,
    hopeless."""

    def __init__(self, preset: str, **options: Any) -> None:
        """Options as `SlideParams` has them; the rules among them are the engine's business."""
        self.o = options
        self.ours, xllm = preset == "tailrace", preset == "xllm"
        self.share = options["eta"] if options["eta"] >= 0 else (0.9 if self.ours else 0.65)
        self.feasible = {"preset": xllm or self.ours, "all": False, "feasible": True}[options["t_min"]]
        self.last = {"preset": self.ours, "last": True, "ranked": False}[options["hopeless"]]
        self.split = {"preset": xllm, "yes": True, "no": False}[options["urgent_decodes_first"]]
        self.steps = 0
        self.served: dict[Req, float] = {}
        self.seconds = INF
        self.keys: dict[Req, tuple[int, float]] = {}

    # a. what a request still costs, and when its next token is due

    def work(self, r: Req) -> float:
        if r.decoding:
            return self.machine.decode_s(1, r.computed)
        return self.machine.chunk_s(r.prompt + r.delivered - r.computed, r.computed)

    def due(self, r: Req) -> float:
        if not r.delivered:
            return r.arrival + r.ttft_slo
        begun = r.arrival + r.ttft_slo if self.o["decode_deadline"] == "tdg" else r.first_token
        assert begun is not None
        return begun + r.delivered * r.tpot_slo

    def prepare(self, sim: Reference, now: float) -> None:
        self.now = now
        self.sim, self.machine, c = sim, sim.machine, sim.machine.constant_s
        queue = sim.waiting + sim.running
        left = {r: self.due(r) - now for r in queue}
        work = {r: self.work(r) for r in queue}
        can = [r for r in queue if left[r] >= work[r] + c]
        # b. the step's budget
        shortest = min((left[r] for r in (can if self.feasible else queue)), default=INF)
        tpot = min((r.tpot_slo for r in queue), default=INF)
        someone = bool(self.o["starve_s"]) and any(now - self.since(r) > self.o["starve_s"] for r in queue)
        share = max(self.share, self.o["starve_eta"]) if someone else self.share
        floor = share * tpot if math.isfinite(tpot) else 0.0
        bound = {"preset": self.ours, "unbounded": False, "eta": True}[self.o["all_late"]]
        late = shortest == INF and min(left.values(), default=INF) < INF
        budget = floor if late and floor and bound else max(shortest, floor)
        unbound = budget <= c or budget == INF
        # c. the time to drain the queue
        total = sum(work.values())
        drain = total if unbound else total * budget / (budget - c)
        self.seconds = INF if unbound or not self.o["latency_budget"] else budget - c
        # d. and e. the groups, each with its order
        starving = [r for r in queue if self.starves(r, now)]
        rest = [r for r in queue if r not in starving]
        hopeless = [r for r in rest if self.last and not r.decoding and not r.delivered and r not in can]
        rest = [r for r in rest if r not in hopeless]
        kind = self.o["order"]
        share = {"slide": self.o["coeff"] * drain, "density": INF, "deadline": -INF}[kind]
        urgent = [r for r in rest if math.isfinite(left[r]) and left[r] < share]
        normal = [r for r in rest if r not in urgent]
        promoted = [r for r in starving if self.o["promote"] == "prefills" and not r.decoding]
        starving = [r for r in starving if r not in promoted]
        split = self.split or (self.o["promote"] == "prefills" and someone and self.promotes())
        behind = [r for r in urgent if split and not r.decoding]
        urgent = [r for r in urgent if r not in behind]

        def thin(r: Req) -> float:
            """Less than nothing of its gain per second of work: the densest first."""
            gain = r.weight * (1.0 if r.delivered else self.o["prefill_weight"])
            return -gain / work[r]

        self.keys = {}
        for tier, (group, by) in enumerate(
            [
                (starving, self.since),
                (urgent, thin),
                (promoted, self.since),
                (behind, thin),
                (normal, left.__getitem__),
                (hopeless, thin),
            ]
        ):
            self.keys |= {r: (tier, by(r)) for r in group}

    def since(self, r: Req) -> float:
        """A prefill waits since it came, one that has tokens since it was served."""
        return self.served[r] if r.delivered else r.arrival

    def promotes(self) -> bool:
        """Whether starving counts in this step: in every step, or in one of four, if it counts at all."""
        share = self.o["starve_share"]
        return bool(self.o["starve_s"]) and (share == 1.0 or self.steps % round(1 / share) == round(1 / share) - 1)

    def starves(self, r: Req, now: float) -> bool:
        return self.promotes() and now - self.since(r) > self.o["starve_s"]

    def key(self, r: Req, now: float) -> tuple[int, float]:
        return self.keys[r]

    # f. the step is filled up to the budget

    def limits(self, sim: Reference) -> tuple[float, float, float]:
        return INF, INF, self.seconds

    def may_preempt(self, waiting: Req, running: Req) -> bool:
        given = self.o["displace"]
        anybody = given == "anybody" or (given == "preset" and not self.ours)
        return anybody or not running.decoding

    def victim(self, r: Req) -> tuple[bool, float]:
        """The tail of the order yields first, but who has waited for nearly as long as makes it starve."""
        near = self.o["protect_share"] * self.o["starve_s"]
        places = sorted(set(self.keys.values()))
        return near > 0 and self.now - self.since(r) > near, -places.index(self.keys[r])

    def on_arrival(self, r: Req, now: float) -> None:
        self.served[r] = r.arrival

    def on_progress(self, r: Req, tokens: int) -> None:
        self.served[r] = self.sim.clock

    def after_step(self, planned: list[Req], now: float) -> None:
        self.steps += 1


SLIDING: dict[str, Callable[..., Oracle]] = {"slide": Slide}
