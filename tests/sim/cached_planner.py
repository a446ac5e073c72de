"""How the reference decides a step with a prefix cache: ahead by counting, then on a copy of the cache itself.

Written from the prose of docs/design.md, "Displacing, and the prefix cache" and "Swapping".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .model import Req, Step, Work
from .planner import Planner

if TYPE_CHECKING:
    from .reference import Reference


class CachedPlanner(Planner):
    """``exact``: each request sees what the one before it did. Else the cache is as before the step,
    free blocks are counted, and a waiting request may displace running ones."""

    def __init__(self, sim: Reference, now: float, timed: bool = True, exact: bool = True) -> None:
        super().__init__(sim, now, timed)
        assert sim.cache is not None
        self.exact, self.cache = exact, sim.cache.copy()
        self.size = sim.rules.block_tokens

    @property
    def free(self) -> int:
        left = len(self.cache.queue)
        if self.exact:
            return left
        yielded = sum(self.cache.releasable(r.row) for r in self.step.evicted)
        return left + yielded - sum(w.spent for w in self.step.work)

    def decide(self, give_way: bool = False, ahead: dict[Req, Req] | None = None) -> Step:
        """``ahead``: who was found to be displaced, and for whom."""
        for r in ahead or {}:
            self.evict(r)
        self.step.gains |= ahead or {}
        step = super().decide(give_way)
        step.cache = self.cache
        return step

    def found(self, r: Req) -> int:
        return 0 if r.where == "running" else self.cache.hits(r.row, r.known) * self.size

    def idle(self, r: Req) -> int:
        return self.cache.idle_among(r.row, self.found(r) // self.size)

    def take(self, r: Req, tokens: int, blocks: int) -> Work:
        reach, cached, idle = self.has(r) + tokens, self.found(r) // self.size, self.idle(r)
        work = super().take(r, tokens, blocks)
        work.blocks, work.spent, work.found = blocks + cached, blocks + idle, cached * self.size
        if self.exact:
            if r.where == "waiting":
                self.cache.start(r.row, cached, blocks)
            else:
                self.cache.grow(r.row, blocks)
            self.cache.seal(r.row, min(reach, r.known))
        return work

    def admission(self, r: Req, tokens: int) -> tuple[int, int]:
        """The blocks in the cache need not be free, but those of them that lie idle are used up."""
        cached, reach = self.found(r) // self.size, self.has(r) + tokens
        chunk = self.sim.blocks_for(reach) - cached
        whole = self.sim.blocks_for(max(r.known, reach)) - cached
        kept = int(self.rules.watermark * (self.sim.total + 1)) if self.residents else 0
        return (whole if self.rules.reserve_full_isl else chunk) + self.idle(r) + kept, chunk

    def evict(self, r: Req) -> None:
        super().evict(r)
        if self.exact:
            self.cache.release(r.row)

    def displace(self, r: Req) -> bool:
        return not self.exact and super().displace(r)
