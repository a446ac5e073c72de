"""A second engine, slow and plain: requests are objects, and the waiting and the running are lists.

How it decides a step is in `planner`. Nothing in either file imports the kernels, so an error
has to be made twice to go unseen.
"""

from __future__ import annotations

import math

from tailrace.rules import EngineRules

from ..schedule.slow_cache import SlowCache
from .cached_planner import CachedPlanner
from .copying import OutLane, pipelined
from .model import INF, Machine, Oracle, Req, Step, Work
from .planner import Planner


class Reference:
    """The engine: requests come, steps are decided, run and end."""

    def __init__(
        self,
        requests: list[Req],
        rules: EngineRules,
        policy: Oracle,
        machine: Machine,
        names: list[list[int]] | None = None,
    ) -> None:
        """``names``: of each request's first blocks, for a prefix cache."""
        self.later = list(requests)
        self.rules, self.policy, self.machine = rules, policy, machine
        self.total = machine.kv_tokens // rules.block_tokens
        self.cap = machine.max_seqs or len(requests)
        self.waiting: list[Req] = []
        self.running: list[Req] = []
        self.under_way: list[Step] = []
        self.clock = 0.0
        self.cache = SlowCache(self.total, names or [[]] * len(requests), rules.block_tokens)
        self.displaced = self.in_vain = self.found = 0
        self.parked = self.kept = 0
        self.copied = [0, 0]
        """Blocks, out and back."""
        self.offloads = rules.swap_out == "ahead"
        self.lane = OutLane(machine.out_s)
        self.heaviest = max((r.weight for r in requests), default=1.0)
        self.partial = self.dropped = self.skipped = self.lost_tokens = self.discarded = self.refused = 0

    def blocks_for(self, tokens: int) -> int:
        return math.ceil(tokens / self.rules.block_tokens)

    def arrive(self) -> None:
        while self.later and self.later[0].arrival <= self.clock:
            r = self.later.pop(0)
            last = 1 if self.rules.prefill_emits else 0
            if self.blocks_for(r.prompt + r.output - last) > self.total:
                r.where, r.reason = "done", "rejected"
            else:
                r.where, r.since = "waiting", r.arrival
                self.waiting.append(r)
                self.policy.on_arrival(r, self.clock)

    def decide(self) -> Step:
        """The next step; seconds that hold nothing do not bind, a deadlock costs the newest its KV."""
        ahead = self.ahead()
        planner, step = self.plan(ahead)
        if not step.work and planner.most_seconds < INF:
            planner, step = self.plan(ahead, timed=False)
        if not step.work and not ahead and self.running and planner.stalled and not self.under_way:
            _, step = self.plan(ahead, timed=False, give_way=True)
        return step

    def plan(self, ahead: dict[Req, Req], timed: bool = True, give_way: bool = False) -> tuple[Planner, Step]:
        if not self.rules.prefix_cache:
            planner = Planner(self, self.clock, timed)
            return planner, planner.decide(give_way)
        cached = CachedPlanner(self, self.clock, timed)
        return cached, cached.decide(give_way, ahead)

    def ahead(self) -> dict[Req, Req]:
        """With a prefix cache: whom the step will displace, and for whom; nobody if anybody yields for want of KV."""
        if not self.rules.prefix_cache:
            return {}
        step = CachedPlanner(self, self.clock, exact=False).decide()
        return {} if step.pressure else step.gains

    def advance(self) -> Step | None:
        """The next step that starts, or None when all is done (or stuck)."""
        while True:
            self.arrive()
            step = self.decide() if self.waiting or self.running else Step()
            self.copied[0] += self.lane.go_on(self.clock)
            started = bool(step.work or step.evicted)
            if started:
                self.commit(step)
            if len(self.under_way) == self.rules.steps_in_flight or (self.under_way and not started):
                self.complete(self.under_way.pop(0))
            elif not started:
                if not self.later:
                    return None
                self.clock = self.later[0].arrival
            if started:
                return step

    def commit(self, step: Step) -> None:
        self.running = [r for r in step.order if r not in step.evicted]
        self.cache = step.cache or self.cache
        for r, gained in step.gains.items():
            self.displaced += 1
            if gained not in step.admitted:
                self.in_vain += 1
                r.safe_until = r.attained + self.rules.min_service_tokens
        begins = self.under_way[-1].ends if self.under_way else self.clock
        out = [self.put_out(r, begins) for r in step.evicted]
        back = [self.take_in(w, begins, step.tiers[w.req]) for w in step.work if w.req in step.admitted]
        seconds = self.machine.step_s(step.work)
        for w in step.work:
            self.compute(w)
        out += self.clear()
        self.copied = [self.copied[0] + sum(out), self.copied[1] + sum(back)]
        step.ends = begins + pipelined(self.machine, sum(out), sum(back), seconds)
        self.skipped += step.skipped
        if self.offloads:
            self.order_copies(step)
        self.under_way.append(step)

    def put_out(self, r: Req, begins: float) -> int:
        """A request loses its place; returns the blocks copied to host memory."""
        need, used = self.blocks_for(r.computed), self.used
        if self.offloads:
            self.put_aside(r)
        elif self.rules.evict == "swap" and used + need <= self.machine.host_tokens // self.rules.block_tokens:
            r.host, r.parked = need, self.rules.swap_out == "when_needed"
            self.parked += r.parked
        else:
            r.decoding, r.computed = False, 0
        r.where, r.blocks, r.lost_at = "waiting", 0, begins
        r.preemptions, r.since = r.preemptions + 1, self.clock
        self.waiting.append(r)
        self.policy.on_preempt(r)
        return 0 if r.parked or self.offloads else r.host

    @property
    def used(self) -> int:
        """Host blocks with KV, or reserved for it."""
        return sum(r.host for r in self.waiting + self.running)

    def put_aside(self, r: Req) -> None:
        """It keeps what is copied by now."""
        gone = self.lane.discard(r, self.clock)
        self.discarded += gone
        r.host -= gone
        tokens = r.host * self.rules.block_tokens
        if tokens < r.computed:
            self.lost_tokens += r.computed - tokens
            r.computed, r.decoding = tokens, False

    def order_copies(self, step: Step) -> None:
        """Of each that computes in the step, the full blocks that were not ordered before, if they are enough."""
        for r in [w.req for w in step.work]:
            least = max(1, math.floor(self.machine.offload_blocks * (r.weight / self.heaviest)))
            fresh = r.computed // self.rules.block_tokens - r.host
            if fresh < least or self.lane.has(r):
                continue
            if self.used + fresh > self.machine.host_tokens // self.rules.block_tokens:
                self.refused += 1
                continue
            r.host += fresh
            self.lane.take(r, fresh, step.ends)

    def clear(self) -> list[int]:
        """Who waits with KV on the device gives way to what runs, the worst ranked first; the blocks copied out."""
        here = [r for r in self.waiting if r.parked]
        here.sort(key=lambda r: (*self.policy.key(r, self.clock), r.arrival, r.row))
        out = []
        while here and sum(r.host for r in here) + sum(r.blocks for r in self.running) > self.total:
            here[-1].parked = False
            out.append(here.pop().host)
        return out

    def take_in(self, w: Work, begins: float, tier: int) -> int:
        """A request starts or goes on; returns the blocks copied back."""
        r, first, stored = w.req, w.req.started is None, w.req.host
        copied = 0 if r.parked else max(self.blocks_for(w.kept) - w.found // self.rules.block_tokens, 0)
        self.kept += r.parked
        self.waiting.remove(r)
        self.running.append(r)
        r.where, r.parked = "running", False
        r.host = self.blocks_for(w.kept) if self.offloads else 0
        if w.kept < r.computed:
            self.partial += 1
            self.dropped += r.computed - w.kept
            r.computed, r.decoding = w.kept, False
        if first:
            r.started = begins
        else:
            r.lost += begins - r.lost_at
        if not stored or not r.decoding:
            r.target = r.known
        self.policy.on_admit(r, first, tier, self.clock)
        self.found += w.found
        r.cached, r.computed = w.found, max(r.computed, w.found)
        return copied

    def compute(self, w: Work) -> None:
        r = w.req
        r.blocks += w.blocks
        r.computed += w.tokens
        r.attained = max(r.attained, r.computed)
        if w.decode:
            w.emits = w.tokens
        elif r.computed == r.target:
            r.decoding = w.ends_prefill = True
            w.emits = 1 if self.rules.prefill_emits else 0
        r.in_flight += w.emits

    def complete(self, step: Step) -> None:
        self.clock = step.ends
        self.copied[0] += self.lane.go_on(self.clock)
        for w in step.work:
            r = w.req
            if r.where == "done":
                continue
            self.policy.on_progress(r, w.tokens)
            if w.ends_prefill and r.decoding:
                self.policy.on_prefill_done(r)
            if w.emits:
                r.delivered += w.emits
                r.in_flight -= w.emits
                if self.rules.prefix_cache and self.rules.steps_in_flight > 1 and r.where == "running":
                    self.cache.seal(r.row, r.computed - r.in_flight)
                if r.first_token is None:
                    r.first_token = self.clock
                if r.delivered >= r.output:
                    r.finish = self.clock
                    self.leave(r, "finished")
        self.policy.after_step([w.req for w in step.work], self.clock)

    def leave(self, r: Req, reason: str) -> None:
        self.lane.discard(r, self.clock)
        (self.waiting if r.where == "waiting" else self.running).remove(r)
        self.cache.release(r.row)
        if r.where == "waiting" and r.preemptions:
            r.lost += max(0.0, self.clock - r.lost_at)
        r.where, r.reason, r.blocks, r.host, r.parked, r.computed = "done", reason, 0, 0, False, 0
        self.policy.on_remove(r, reason)
