"""What the reference knows of requests, policies, steps and its machine. Nothing here imports the kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..schedule.slow_cache import SlowCache

if TYPE_CHECKING:
    from .reference import Reference

INF = math.inf


@dataclass(eq=False)
class Req:
    """One request and all that the engine knows of it."""

    row: int
    arrival: float
    prompt: int
    output: int
    predicted: int
    is_long: bool
    priority: int
    class_id: int = 0
    tenant: int = 0
    weight: float = 1.0
    ttft_slo: float = INF
    tpot_slo: float = INF
    """Its objectives."""
    where: str = "later"  # then waiting, running, done
    since: float = 0.0  # arrival or latest preemption
    decoding: bool = False
    computed: int = 0
    target: int = 0
    delivered: int = 0
    in_flight: int = 0
    attained: int = 0
    blocks: int = 0
    host: int = 0
    """Blocks in host memory: it waits, and goes on where it was. Copied ahead, they are there while it runs."""
    parked: bool = False
    """These are only reserved: its KV is still on the device."""
    cached: int = 0
    """Tokens found in the prefix cache when it was last admitted."""
    safe_until: int = 0
    """Attained service below which nobody displaces it again."""
    lost: float = 0.0
    """Seconds that preemptions cost it."""
    lost_at: float = 0.0
    preemptions: int = 0
    started: float | None = None
    first_token: float | None = None
    finish: float | None = None
    reason: str = ""

    @property
    def known(self) -> int:
        return self.prompt + self.delivered


class Oracle:
    """A policy of the reference; the defaults are those of hooks."""

    def prepare(self, sim: Reference, now: float) -> None:
        """Before a step is ranked."""

    def key(self, r: Req, now: float) -> tuple[int, float]:
        return 0, 0.0

    def limits(self, sim: Reference) -> tuple[float, float, float]:
        return INF, INF, INF

    def may_preempt(self, waiting: Req, running: Req) -> bool:
        return False

    def victim(self, r: Req) -> tuple[bool, float]:
        return False, -r.arrival

    def on_arrival(self, r: Req, now: float) -> None:
        """A request comes in."""

    def on_admit(self, r: Req, first: bool, tier: int, now: float) -> None:
        """A waiting request starts or resumes."""

    def on_progress(self, r: Req, tokens: int) -> None:
        """A step computed tokens of it."""

    def on_prefill_done(self, r: Req) -> None:
        """Decode begins."""

    def on_preempt(self, r: Req) -> None:
        """It lost its KV."""

    def on_remove(self, r: Req, reason: str) -> None:
        """It leaves."""

    def after_step(self, planned: list[Req], now: float) -> None:
        """A step over these ended."""


@dataclass(eq=False)
class Work:
    """One request's share of a step."""

    req: Req
    tokens: int
    blocks: int
    decode: bool
    seconds: float
    found: int = 0
    """Tokens that it begins with out of the prefix cache."""
    spent: int = 0
    """Free blocks used up, where they are only counted ahead."""
    kept: int = 0
    """Tokens of one that waited which come back from host memory."""
    ends_prefill: bool = False
    emits: int = 0


@dataclass(eq=False)
class Order:
    """Blocks to be copied to host memory while their request runs."""

    req: Req
    left: int
    ready: float


@dataclass
class Step:
    """A step: who works, who leaves, who enters."""

    work: list[Work] = field(default_factory=list)
    evicted: list[Req] = field(default_factory=list)
    admitted: list[Req] = field(default_factory=list)
    order: list[Req] = field(default_factory=list)
    """The running as they were ranked."""
    tiers: dict[Req, int] = field(default_factory=dict)
    gains: dict[Req, Req] = field(default_factory=dict)
    """Who is displaced, and for whom."""
    cache: SlowCache | None = None
    """The prefix cache once the step is scheduled."""
    pressure: int = 0
    escapes: int = 0
    skipped: int = 0
    """For want of copy budget."""
    ends: float = 0.0


@dataclass(frozen=True)
class Machine:
    """Size and speed of the reference's engine."""

    budget: int
    max_seqs: int
    kv_tokens: int
    step_s: Callable[[list[Work]], float]
    chunk_s: Callable[[int, int], float]
    decode_s: Callable[[int, int], float]
    constant_s: float = 0.0
    host_tokens: int = 0
    out_s: float = 0.0
    """Seconds to copy a block to host memory."""
    in_s: float = 0.0
    layers: int = 1
    """1: a step waits for all that is copied back."""
    offload_blocks: int = 1
    beta: float = 0.0
