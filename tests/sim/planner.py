"""How the reference decides one step.

Written from the prose of `EngineRules` and hooks: slow and plain. What is left of a budget is
summed up each time it is asked for. Nothing here imports the kernels.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .copying import copy_budget, may_copy
from .model import INF, Req, Step, Work

if TYPE_CHECKING:
    from .reference import Reference


class Planner:
    """Decides one step on the state of a `Reference`, which it leaves alone."""

    def __init__(self, sim: Reference, now: float, timed: bool = True) -> None:
        self.sim, self.rules, self.policy, self.now = sim, sim.rules, sim.policy, now
        self.policy.prepare(sim, now)
        tokens, seqs, seconds = self.policy.limits(sim)
        self.most_tokens = min(tokens, sim.machine.budget)
        self.most_seqs = seqs
        self.most_seconds = seconds if timed else INF
        self.step = Step()
        self.stalled = self.spent = False
        self.ranked = self.rules.order_scope == "all"
        self.order = sorted(sim.running, key=self.rank) if self.ranked else list(sim.running)
        self.kept: dict[Req, int] = {}
        """Tokens that a waiting request has copied back, where that is not all."""
        self.copies = copy_budget(self) if self.rules.copy_budget == "adaptive" else INF

    # ── what is left, counted anew each time ─────────────────────────────────────────

    @property
    def stay(self) -> list[Req]:
        return [r for r in self.order if r not in self.step.evicted]

    @property
    def budget(self) -> float:
        return self.most_tokens - sum(w.tokens for w in self.step.work)

    @property
    def seconds(self) -> float:
        return INF if self.spent else self.most_seconds - sum(w.seconds for w in self.step.work)

    @property
    def live(self) -> int:
        return sum(r.blocks for r in self.stay)

    @property
    def growth(self) -> int:
        return sum(w.blocks for w in self.step.work if w.req.where == "running")

    @property
    def free(self) -> int:
        return self.sim.total - self.live - sum(w.blocks for w in self.step.work)

    @property
    def residents(self) -> int:
        return len(self.stay) + len(self.step.admitted)

    @property
    def full(self) -> bool:
        return self.residents >= self.sim.cap

    @property
    def chunk_cap(self) -> int:
        everybody = len(self.sim.running) + len(self.sim.waiting)
        if not self.rules.chunk_cap or (everybody == 1 and not self.rules.chunk_cap_alone):
            return 0
        share = self.sim.machine.budget // everybody if self.rules.chunk_cap_adaptive else 0
        return max(self.rules.chunk_cap, share)

    def rank(self, r: Req) -> tuple[int, float, float, int]:
        return (*self.policy.key(r, self.now), r.arrival, r.row)

    # ── the step ─────────────────────────────────────────────────────────────────────

    def queues(self) -> list[list[Req]]:
        """Who is served, pass by pass."""
        waiting = sorted(self.sim.waiting, key=self.rank)
        prefills = [r for r in self.order if not r.decoding]
        decodes = [r for r in self.order if r.decoding]

        def with_waiting(running: list[Req]) -> list[Req]:
            both = [r for r in self.order if r in running] + waiting
            return sorted(both, key=self.rank) if self.ranked else both

        first, later = (prefills, []) if self.rules.continuation_first else ([], prefills)
        name = self.rules.phase_order
        if name == "running_first":
            return [self.order, waiting]
        if name == "decode_first":
            return [decodes, first, with_waiting(later)]
        if name == "ranked":
            return [first, with_waiting(later + decodes)]
        return [first, with_waiting(later), decodes]

    def decide(self, give_way: bool = False) -> Step:
        if give_way:
            self.evict(self.order[-1])
            self.step.pressure += 1
        for number, queue in enumerate(self.queues()):
            if self.rules.phase_order == "prefill_alone" and number == 2 and any(not w.decode for w in self.step.work):
                break
            self.serve(queue)
        self.step.order = self.order
        self.step.tiers = {r: self.policy.key(r, self.now)[0] for r in self.step.admitted}
        return self.step

    def serve(self, queue: list[Req]) -> None:
        closed = False
        for r in queue:
            if self.budget <= 0 or len(self.step.work) >= self.most_seqs:
                return
            if r in self.step.evicted or r in [w.req for w in self.step.work]:
                continue
            if r.where == "running":
                if not self.go_on(r):
                    return
            elif not closed:
                closed = not self.start(r)

    def untimed(self, r: Req, want: int) -> int:
        """What budget and caps leave of it."""
        if self.decodes(r):
            decodes = sum(w.decode for w in self.step.work)
            if self.rules.decode_cap and decodes >= self.rules.decode_cap:
                return 0
        elif self.chunk_cap:
            want = min(want, self.chunk_cap)
        return int(min(want, self.budget))

    def given(self, r: Req, want: int) -> None:
        """Where seconds are as tokens, what they cut ends the budget, and they bind no more."""
        tokens = self.fit(r, want)
        if self.rules.seconds_as == "tokens" and tokens < self.untimed(r, want):
            self.most_tokens = tokens + sum(w.tokens for w in self.step.work)
            self.spent = True

    def fit(self, r: Req, want: int) -> int:
        tokens = self.untimed(r, want)
        if self.decodes(r):
            return tokens if self.seconds_of(r, tokens) <= self.seconds else 0
        while tokens > 0 and self.seconds_of(r, tokens) > self.seconds:
            tokens -= 1
        if tokens < want and tokens <= self.rules.min_last_chunk:
            return 0
        return tokens

    def seconds_of(self, r: Req, tokens: int) -> float:
        if self.most_seconds == INF:
            return 0.0
        cost = self.sim.machine.decode_s if self.decodes(r) else self.sim.machine.chunk_s
        return cost(tokens, self.present(r))

    def present(self, r: Req) -> int:
        """Tokens whose KV it has, or has copied back."""
        return self.kept.get(r, r.computed)

    def decodes(self, r: Req) -> bool:
        """Whether it goes on as a decode: one of which not all is copied back computes the rest as a prefill."""
        return r.decoding and self.present(r) == r.computed

    def wish(self, r: Req) -> int:
        """What it could compute in this step: all that it has not, or a decode block."""
        if self.decodes(r):
            return min(r.output - r.delivered - r.in_flight, self.rules.decode_block_tokens)
        return (r.target if r.where == "running" else r.known) - self.has(r)

    def found(self, r: Req) -> int:
        """Tokens of a waiting request that are in the prefix cache."""
        return 0

    def has(self, r: Req) -> int:
        """Tokens that it need not compute."""
        return max(self.present(r), self.found(r))

    def go_on(self, r: Req) -> bool:
        """Serve a running request; False ends the pass."""
        want = self.wish(r)
        if want <= 0:
            return True
        tokens = self.fit(r, want)
        self.given(r, want)
        if tokens <= 0:
            return self.rules.misfit == "skip"
        need = max(0, self.sim.blocks_for(r.computed + tokens) - r.blocks)
        if need > self.free and self.rules.kv_limit == "enforced":
            if self.rules.kv_short == "stall":
                self.stalled = True
                return True
            if not self.make_room(r, need):
                return self.rules.phase_order != "running_first" or r not in self.step.evicted
        self.take(r, tokens, need)
        return True

    def start(self, r: Req) -> bool:
        """Start a waiting request; False: nobody else may start either."""
        if self.step.pressure and (self.rules.kv_short == "stall" or not self.rules.admit_after_preemption):
            return False
        if not may_copy(self, r):
            self.step.skipped += 1
            return True
        tokens = self.fit(r, self.wish(r))
        if tokens <= 0:
            self.given(r, self.wish(r))
            return self.rules.misfit == "skip"
        need, taken = self.admission(r, tokens)
        full = self.full
        if full or need > self.free:
            may = self.rules.may_preempt_at_cap if full else self.rules.may_preempt_for_kv
            if not may or not self.displace(r):
                return self.rules.blocked_head == "skip" and not full
            tokens = self.fit(r, self.wish(r))
            need, taken = self.admission(r, tokens)
        self.given(r, self.wish(r))
        self.step.admitted.append(r)
        self.take(r, tokens, taken)
        return True

    def take(self, r: Req, tokens: int, blocks: int) -> Work:
        """``blocks``: new ones."""
        work = Work(r, tokens, blocks, self.decodes(r), self.seconds_of(r, tokens), spent=blocks, kept=self.present(r))
        self.step.work.append(work)
        return work

    def admission(self, r: Req, tokens: int) -> tuple[int, int]:
        """Blocks that must be free to start, and those it takes: with all that comes back from host memory."""
        rules, whole, chunk = self.rules, self.whole(r, tokens), self.sim.blocks_for(self.present(r) + tokens)
        null = 1 if rules.admit == "chunk" else 0  # vLLM counts its null block
        share = rules.watermark * (self.sim.total + null)
        kept = 0 if self.residents == 0 else math.ceil(share) if rules.admit == "projected" else math.floor(share)
        if rules.admit == "prompt":
            return whole + kept, whole
        if rules.admit == "chunk":
            return (whole if rules.reserve_full_isl else chunk) + kept, chunk
        if rules.projection == "chunk":
            return chunk + kept, chunk
        promised = sum(self.whole(w.req, w.tokens) for w in self.step.work if w.req in self.step.admitted)
        projected = self.live + promised + whole + (self.growth if rules.projection == "live_growth_prompt" else 0)
        # Whoever is displaced gives what it holds, so the need is told as blocks to be free.
        needed = self.free + projected + kept - self.sim.total
        return (max(needed, chunk) if rules.kv_limit == "enforced" else needed), chunk

    def whole(self, r: Req, tokens: int) -> int:
        """Blocks for all that is known of it, and for what it computes now."""
        return self.sim.blocks_for(max(r.known, self.present(r) + tokens))

    # ── preemption ───────────────────────────────────────────────────────────────────

    def evict(self, r: Req) -> None:
        self.step.work = [w for w in self.step.work if w.req is not r]
        self.step.evicted.append(r)

    def by_choice(self, pool: list[Req]) -> list[Req]:
        """Victims, the first to yield first."""
        if self.rules.victim == "tail":
            return pool[::-1]
        return sorted(pool, key=lambda r: (*self.policy.victim(r), -r.arrival, -r.row))

    def make_room(self, r: Req, need: int) -> bool:
        behind_only = self.ranked and self.rules.phase_order == "ranked"
        while self.free < need:
            pool = self.stay[self.stay.index(r) + 1 :] if behind_only else self.stay
            if not pool:
                return False
            loser = self.by_choice(pool)[0]
            self.step.escapes += self.rules.victim == "hook" and self.policy.victim(loser)[0]
            self.evict(loser)
            self.step.pressure += 1
            if loser is r:
                return False
        return True

    def displace(self, r: Req) -> bool:
        """Take outranked requests' places and KV until it can start; nobody's if it cannot."""
        mine = self.policy.key(r, self.now)
        pool = [o for o in self.stay if mine < self.policy.key(o, self.now) and self.policy.may_preempt(r, o)]
        pool = [o for o in pool if o.attained >= o.safe_until]
        if self.rules.victim == "hook":
            pool = [o for o in pool if not self.policy.victim(o)[0]]
        work, evicted = list(self.step.work), list(self.step.evicted)
        for o in self.by_choice(pool):
            self.evict(o)
            tokens = self.fit(r, self.wish(r))
            if not self.full and tokens > 0 and self.admission(r, tokens)[0] <= self.free:
                self.step.gains |= dict.fromkeys(self.step.evicted[len(evicted) :], r)
                return True
        self.step.work, self.step.evicted = work, evicted
        return False
