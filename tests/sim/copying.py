"""ProServe's block management once more, from its prose: copies ahead, the copy budget, the pipelined reload."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .model import INF, Machine, Order, Req

if TYPE_CHECKING:
    from .planner import Planner


class OutLane:
    """Copies to host memory that nobody waits for: one block after the other, first come first served."""

    def __init__(self, block_s: float) -> None:
        self.block_s, self.free_at = block_s, 0.0
        self.orders: list[Order] = []

    def has(self, r: Req) -> bool:
        return any(o.req is r for o in self.orders)

    def take(self, r: Req, blocks: int, ready: float) -> None:
        self.orders.append(Order(r, blocks, ready))

    def go_on(self, now: float) -> int:
        """Copy until ``now``; returns the blocks copied since it was last asked."""
        copied = 0
        while self.orders:
            first = self.orders[0]
            ends = max(self.free_at, first.ready) + self.block_s
            if ends > now:
                break
            self.free_at, first.left, copied = ends, first.left - 1, copied + 1
            if not first.left:
                self.orders.pop(0)
        return copied

    def discard(self, r: Req, now: float) -> int:
        """Forget what is left to copy of it, even the block being copied; returns how many."""
        mine = [o for o in self.orders if o.req is r]
        for o in mine:
            if o is self.orders[0] and max(self.free_at, o.ready) < now:
                self.free_at = now
            self.orders.remove(o)
        return sum(o.left for o in mine)


def pipelined(machine: Machine, out: int, back: int, seconds: float) -> float:
    """When the last layer has computed: each needs its own KV and the layer before."""
    arrives, computes = back * machine.in_s / machine.layers, seconds / machine.layers
    done = out * machine.out_s
    for layer in range(1, machine.layers + 1):
        done = max(done, layer * arrives) + computes
    return done


def lacks(r: Req) -> int:
    """Blocks that have to come back for it."""
    return 0 if r.parked else r.host


def copy_budget(plan: Planner) -> float:
    """Blocks that may come back in this step; INF = any number."""
    sim, machine = plan.sim, plan.sim.machine
    away = sorted((r for r in sim.waiting if lacks(r)), key=plan.rank)
    if plan.most_seconds == INF or not away:
        return INF

    def work(r: Req, kept: int) -> float:
        """Predicted seconds of all that is left of it, or of its next decode, with so much of its KV there."""
        if r.decoding and kept == r.computed:
            tokens = min(r.output - r.delivered - r.in_flight, sim.rules.decode_block_tokens)
            return machine.decode_s(tokens, kept) if tokens > 0 else 0.0
        target = r.target if r.where == "running" else r.known
        return machine.chunk_s(target - kept, kept) if target > kept else 0.0

    budget = plan.most_seconds + machine.constant_s
    forward = machine.constant_s + sum(work(r, r.computed) for r in sim.waiting + sim.running)
    blocks = sum(lacks(r) for r in away)
    if forward >= budget:
        return max(0, math.floor(budget / machine.in_s))
    if blocks * machine.in_s <= forward:
        return INF
    for r in reversed(away):
        for fewer in range(1, lacks(r) + 1):
            kept = (lacks(r) - fewer) * sim.rules.block_tokens
            longer = forward + work(r, kept) - work(r, r.computed)
            if (blocks - fewer) * machine.in_s <= longer:
                return blocks - fewer
        blocks, forward = blocks - lacks(r), forward + work(r, 0) - work(r, r.computed)
    return blocks


def may_copy(plan: Planner, r: Req) -> bool:
    """Whether it may start now with what can be copied back of it, which `Planner.kept` then says."""
    started = [(w.kept, w.req) for w in plan.step.work if w.req in plan.step.admitted and lacks(w.req)]
    copied = [plan.sim.blocks_for(kept) for kept, _ in started]
    rest = max(0, plan.copies - sum(copied))
    plan.kept.pop(r, None)
    if lacks(r) <= rest or not sum(copied):
        return True
    plan.kept[r] = int(rest) * plan.rules.block_tokens
    missing = (lacks(r) - rest) * plan.rules.block_tokens
    most = min(plan.wish(r), plan.most_tokens, plan.chunk_cap or INF)
    tokens = plan.fit(r, plan.wish(r))
    if plan.sim.machine.beta and tokens and (tokens == most or tokens > plan.sim.machine.beta * missing):
        return True
    del plan.kept[r]
    return False
