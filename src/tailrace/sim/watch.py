"""A run taken one step at a time, with everything that happened: for traces and token times.

The compiled loop keeps sums, since a million requests make hundreds of millions of tokens.
Here the same loop is stopped after each step and looked at from outside: some 0.1 ms a step
more, the same result.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..table import F8, I8
from . import instance
from .run import Instance, Result

__all__ = ["Step", "Watched", "token_times", "watch"]


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


def watch(run: Instance) -> Watched:
    """Run a fresh instance to its end. Raises RuntimeError if it gets stuck."""
    watcher = _Watcher(run)
    ended = instance.PAUSED
    while ended == instance.PAUSED:
        ended = run.advance(steps=1)
        watcher.look()
    if ended == instance.STUCK:
        raise RuntimeError(f"policy {run.policy.name}: nothing can run")
    return watcher.gathered()


class _Watcher:
    """Notes what changed since it last looked."""

    def __init__(self, run: Instance) -> None:
        self.run, self.engine = run, run.engine
        self.slots, self.most = len(run.engine.slots.items), len(run.engine.seats.run)
        self.begun, self.tokens = 0, (0, 0)
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
        counters = self.run.records.counters[0]
        if counters["steps"] > self.begun:
            self._begin(counters)
        while len(self.under_way) > int(self.engine.core.in_flight[0]):
            self._end()

    def _begin(self, counters: Any) -> None:
        e, slot = self.engine, self.begun % self.slots
        first, count = slot * self.most, int(e.slots.items[slot])
        end, seconds = float(e.slots.end_s[slot]), float(e.slots.step_s[slot])
        rows = e.items.row[first : first + count].copy()
        emits = e.items.emits[first : first + count].copy()
        evicted = e.seats.evicted[: int(e.plan.evicted[0])]
        totals = int(counters["prefill_tokens"]), int(counters["decode_tokens"])
        prefill, decode = totals[0] - self.tokens[0], totals[1] - self.tokens[1]
        self.begun, self.tokens = self.begun + 1, totals
        step = Step(end - seconds, end, prefill, decode, count, 0, 0, 0, len(evicted))
        for row in evicted:
            self._close(int(row), step.begin_s)
        for row in rows[self.open[rows] < 0]:
            self.open[row] = len(self.spells)
            self.spells.append([int(row), step.begin_s, np.nan])
        self.under_way.append((step, rows, emits))

    def _end(self) -> None:
        step, rows, emits = self.under_way.popleft()
        core = self.engine.core
        used = int(core.total_blocks[0] - core.free_blocks[0])
        now = step._replace(waiting=int(core.waiting[0]), running=int(core.running[0]), used_blocks=used)
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
        )


def token_times(watched: Watched) -> tuple[F8, I8]:
    """``(times, starts)``: every output token's time by request, and where each request's begin.

    Request ``i`` has ``times[starts[i]:starts[i + 1]]``, ascending.
    """
    rows = np.repeat(watched.token_row, watched.token_count)
    times = np.repeat(watched.token_s, watched.token_count)
    n = len(watched.result.requests.arrival_s)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    return times[np.argsort(rows, kind="stable")], starts
