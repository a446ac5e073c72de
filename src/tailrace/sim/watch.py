"""A run taken one step at a time, with everything that happened: for traces and token times.

The compiled loop keeps sums, since a million requests make hundreds of millions of tokens.
Here the same loop is stopped after each step and looked at from outside: slower, with the
same result.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..rules import managed
from ..schedule.transfer import IN, OUT
from ..table import F8, I8
from . import instance
from .run import NO_END, Instance, Result

__all__ = ["Copied", "Step", "Watched", "token_times", "watch"]


class Step(NamedTuple):
    """One step; the state is that after its end."""

    begin_s: float
    end_s: float
    prefill_tokens: int
    decode_tokens: int
    seqs: int
    waiting: int
    running: int
    used_blocks: int
    preempted: int
    copy_wait_s: float = 0.0
    """By how much copies of KV made it longer."""


class Copied(NamedTuple):
    """A copy of KV between device and host memory."""

    lane: int
    """`OUT` or `IN` of `schedule.transfer`."""
    row: int
    """-1: several, of one step; whose they are is noted only under ProServe's block management."""
    blocks: int
    begin_s: float
    end_s: float
    discarded: bool
    """Ordered ahead, and not done when its request lost its place or ended."""


@dataclass(frozen=True)
class Watched:
    """What a run did, step by step and token by token."""

    result: Result
    steps: list[Step]
    token_row: I8
    """(deliveries,) who got tokens, in order of time."""
    token_s: F8
    token_count: I8
    """Tokens that came together, at the end of one step."""
    spell_row: I8
    """(spells,) who began to be served, at first or again after a preemption."""
    spell_begin_s: F8
    spell_end_s: F8
    """Preempted or finished; NaN if it still ran when the run ended."""
    copies: list[Copied]
    """In order of their beginnings."""


def watch(run: Instance, steps: int = NO_END) -> Watched:
    """Run a fresh instance to its end, or ``steps`` steps. Raises RuntimeError if it gets stuck."""
    watcher = _Watcher(run)
    ended = instance.PAUSED
    while ended == instance.PAUSED and watcher.begun < steps:
        ended = run.advance(steps=1)
        watcher.look()
    if ended == instance.STUCK:
        raise RuntimeError(f"policy {run.policy.name}: nothing can run")
    return watcher.gathered()


class _Watcher:
    """Notes what changed since it last looked."""

    def __init__(self, run: Instance) -> None:
        e, self.run = run.engine, run
        self.slots, self.most = len(e.slots.items), len(e.seats.run)
        # Fields of records are looked up once: that costs more than to read them.
        self.item_row, self.item_emits = e.items.row, e.items.emits
        self.slot_items, self.slot_end_s, self.slot_step_s = e.slots.items, e.slots.end_s, e.slots.step_s
        self.evicted, self.evictions = e.seats.evicted, e.plan.evicted
        self.in_flight, self.waiting, self.running = e.core.in_flight, e.core.waiting, e.core.running
        self.total_blocks, self.free_blocks = int(e.core.total_blocks[0]), e.core.free_blocks
        counters = run.records.counters
        self.count = {name: counters[name] for name in ("steps", "prefill_tokens", "decode_tokens")}
        self.begun, self.tokens, self.last_end_s = 0, (0, 0), 0.0
        self.copies = _Copies(run)
        self.under_way: deque[tuple[Step, I8, I8]] = deque()
        self.steps: list[Step] = []
        self.rows: list[I8] = []
        self.counts: list[I8] = []
        self.times: list[float] = []
        self.spells: list[list[float]] = []
        self.open = np.full(len(run.buffers.table), -1)
        """Index of a row's spell while it is served."""

    def look(self) -> None:
        """After each call of ``advance(steps=1)``: at most one step has begun."""
        if self.count["steps"][0] > self.begun:
            self._begin()
        while len(self.under_way) > self.in_flight[0]:
            self._end()
        self.copies.read_log()

    def _begin(self) -> None:
        slot = self.begun % self.slots
        first, count = slot * self.most, int(self.slot_items[slot])
        end, seconds = float(self.slot_end_s[slot]), float(self.slot_step_s[slot])
        rows = self.item_row[first : first + count].copy()
        emits = self.item_emits[first : first + count].copy()
        evicted = self.evicted[: self.evictions[0]]
        totals = int(self.count["prefill_tokens"][0]), int(self.count["decode_tokens"][0])
        prefill, decode = totals[0] - self.tokens[0], totals[1] - self.tokens[1]
        self.begun, self.tokens = self.begun + 1, totals
        begin, self.last_end_s = max(end - seconds, self.last_end_s), end  # rounded, it could lie before
        step = Step(begin, end, prefill, decode, count, 0, 0, 0, len(evicted), self.copies.of_step(begin))
        for row in evicted:
            self._close(int(row), step.begin_s)
        for row in rows[self.open[rows] < 0]:
            self.open[row] = len(self.spells)
            self.spells.append([int(row), step.begin_s, np.nan])
        self.under_way.append((step, rows, emits))

    def _end(self) -> None:
        step, rows, emits = self.under_way.popleft()
        used = self.total_blocks - int(self.free_blocks[0])
        now = step._replace(waiting=int(self.waiting[0]), running=int(self.running[0]), used_blocks=used)
        self.steps.append(now)
        delivered = emits > 0
        self.rows.append(rows[delivered])
        self.counts.append(emits[delivered])
        self.times.append(step.end_s)

    def _close(self, row: int, at_s: float) -> None:
        if self.open[row] >= 0:
            self.spells[self.open[row]][2] = at_s
            self.open[row] = -1

    def gathered(self) -> Watched:
        result = self.run.result()
        finish = result.requests.finish_s
        for row in np.flatnonzero(self.open >= 0):
            self._close(int(row), float(finish[row]))
        spells = np.array(self.spells).reshape(-1, 3)
        each = [len(rows) for rows in self.rows]
        none = [np.zeros(0, dtype=np.int64)]
        return Watched(
            result=result,
            steps=self.steps,
            token_row=np.concatenate([*none, *self.rows]),
            token_s=np.repeat(np.array(self.times), each),
            token_count=np.concatenate([*none, *self.counts]),
            spell_row=spells[:, 0].astype(np.int64),
            spell_begin_s=spells[:, 1],
            spell_end_s=spells[:, 2],
            copies=sorted(self.copies.seen, key=lambda copy: copy.begin_s),
        )


class _Copies:
    """Notes the copies of a run that has host memory."""

    def __init__(self, run: Instance) -> None:
        self.held, rules = run.engine.blocks, run.rules
        self.seen: list[Copied] = []
        logs, swaps = managed(rules), rules.evict == "swap"
        self.logged = ({IN, OUT} if rules.swap_out == "ahead" else {IN}) if logs else set[int]()
        """Lanes whose copies the engine notes one by one."""
        self.summed = {OUT, IN} - self.logged if swaps else set[int]()
        self.swaps, self.noted, self.wait_s, self.blocks = swaps, 0, 0.0, [0, 0]

    def of_step(self, begin_s: float) -> float:
        """A step has begun: sum up what its lanes copy for it; returns the seconds that it waits."""
        if not self.swaps:
            return 0.0
        lanes = self.held.lanes
        for lane in sorted(self.summed):
            blocks = int(lanes.blocks[lane]) - self.blocks[lane]
            self.blocks[lane] += blocks
            if blocks:
                end_s = begin_s + blocks * float(lanes.block_s[lane])
                self.seen.append(Copied(lane, -1, blocks, begin_s, end_s, False))
        before, self.wait_s = self.wait_s, float(self.held.host.wait_s[0])
        return self.wait_s - before

    def read_log(self) -> None:
        if not self.logged:
            return
        log, count = self.held.log, int(self.held.offload.noted[0])
        for i in range(self.noted, count):
            at = i % len(log.row)
            whose = int(log.lane[at]), int(log.row[at]), int(log.blocks[at])
            self.seen.append(Copied(*whose, float(log.begin_s[at]), float(log.end_s[at]), bool(log.discarded[at])))
        self.noted = count


def token_times(watched: Watched) -> tuple[F8, I8]:
    """``(times, starts)``: every output token's time by request, and where each request's begin.

    Request ``i`` has ``times[starts[i]:starts[i + 1]]``, ascending.
    """
    rows = np.repeat(watched.token_row, watched.token_count)
    times = np.repeat(watched.token_s, watched.token_count)
    n = len(watched.result.requests.arrival_s)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    return times[np.argsort(rows, kind="stable")], starts
