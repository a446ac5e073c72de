"""The waiting structure against `sorted`, in all four ways it is kept."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tailrace import hooks, params
from tailrace._jit import entry
from tailrace.hooks import Policy
from tailrace.latency import PiecewiseParams
from tailrace.registry import POLICIES
from tailrace.rules import EngineRules
from tailrace.schedule import batch
from tailrace.schedule.engine import Buffers, Engine, Limits, build
from tailrace.schedule.waiting import add, discard, next_waiting, start_cursor
from tailrace.table import WAITING

COST = PiecewiseParams()
NOW = 1000.0
SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("fcfs", {}),
    ("psf", {}),
    ("priority", {}),
    ("srpt", {}),
    ("aa", {}),
    ("aa", {"reference": "queue", "min_samples": 1}),
    ("qba", {}),
    ("qba", {"reference": "queue", "min_samples": 1}),
]


class Ages(Policy):
    """Keys that time alone changes: `hooks.EVERY_STEP`."""

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        return table.predicted_class[row], -(now - table.arrival_s[row]) * table.weight[row]


hooks._register(Ages)


@entry
def put(e: Any, row: int) -> None:
    e.table.phase[row] = WAITING
    add(e, row, 1000.0)


@entry
def take(e: Any, row: int) -> None:
    e.table.phase[row] = 0
    discard(e, row)


@entry
def read(e: Any, out: Any) -> int:
    """Rows in order of rank, as a plan reads them; returns how many."""
    live = e.cursor.live[: batch._live(e)]
    hooks.prepare(e.table, live, 1000.0, e.state, e.scratch, e.cost, e.params)
    if e.core.waiting[0] == 0:
        return 0
    start_cursor(e, 1000.0)
    for i in range(out.shape[0]):
        row = next_waiting(e, 1000.0)
        if row < 0:
            return i
        out[i] = row
    return int(out.shape[0])


class Queue:
    """An engine of ``rows`` random requests, none of which waits yet."""

    def __init__(self, name: str, given: dict[str, Any], rows: int, seed: int = 0) -> None:
        cls: Any = Ages if name == "ages" else POLICIES.get(name)
        chosen = params.build(cls.Params, given, name)
        parts: tuple[Engine, Buffers] = build(rows, Limits(128, 0, 10**6), EngineRules(), cls, chosen, COST)
        self.engine, buffers = parts
        rng, table = np.random.default_rng(seed), buffers.table
        table["arrival_s"] = np.sort(rng.integers(0, max(rows // 3, 2), rows))  # three at a time
        table["seq"] = rng.permutation(rows)
        table["priority"] = rng.integers(-2, 3, rows)
        table["predicted_class"] = rng.random(rows) < 0.4
        table["weight"] = rng.choice([0.5, 1.0, 2.0], rows)
        table["prompt_tokens"] = rng.integers(1, 9, rows)
        table["predicted_output_tokens"] = rng.integers(1, 9, rows)
        self.classes = (type(chosen), PiecewiseParams)
        if name in ("aa", "qba"):
            self.engine.state.aging.threshold_s[0] = NOW - rows / 6  # about half of the long are aged
        if name == "qba":
            self.engine.state.aging.debts[0] = 1
            self.engine.state.promoted.paid[:] = rng.random(rows) < 0.05
        self.table, self.out = table, np.zeros(rows, dtype=np.int64)

    def put(self, row: int) -> None:
        put.on(*self.classes)(self.engine, row)

    def take(self, row: int) -> None:
        take.on(*self.classes)(self.engine, row)

    def read(self, most: int) -> list[int]:
        out = self.out[:most]
        return [int(row) for row in out[: read.on(*self.classes)(self.engine, out)]]

    def sorted(self, rows: list[int]) -> list[int]:
        """By the policy's own keys, after `read` has prepared the step."""
        e = self.engine

        def rank(row: int) -> tuple[Any, ...]:
            key = hooks.key(e.table, row, NOW, e.state, e.scratch, e.cost, e.params)
            return (*key, self.table["arrival_s"][row], self.table["seq"][row])

        return sorted(rows, key=rank)


@pytest.mark.parametrize(("name", "given"), [*SETTINGS, ("ages", {})])
def test_reads_in_order_after_any_changes(name: str, given: dict[str, Any]) -> None:
    queue, rng = Queue(name, given, 300), random.Random(1)
    waiting: list[int] = []
    away = list(range(300))
    for turn in range(60):
        for _ in range(rng.randint(0, 20)):
            if away and rng.random() < 0.6:
                row = away.pop(rng.randrange(len(away)))
                queue.put(row)
                waiting.append(row)
            elif waiting:
                row = waiting.pop(rng.randrange(len(waiting)))
                queue.take(row)
                away.append(row)
        most = rng.choice([1, 3, 300])
        got = queue.read(most)
        assert got == queue.sorted(waiting)[:most], (turn, len(waiting))
        assert queue.read(most) == got, "reading moved something"


@pytest.mark.parametrize(("name", "given"), [("psf", {}), ("qba", {}), ("ages", {})])
def test_thousands_wait(name: str, given: dict[str, Any]) -> None:
    queue, rows = Queue(name, given, 4000), list(range(4000))
    random.Random(2).shuffle(rows)
    for row in rows:
        queue.put(row)
    for row in rows[:1000]:
        queue.take(row)
    assert queue.read(4000) == queue.sorted(rows[1000:])


@pytest.mark.parametrize("count", [0, 1, 23, 24, 25, 119, 120, 121, 500])
def test_a_list_is_read_past_each_selection(count: int) -> None:
    """24 are selected first, then 96, then 384: no one is skipped or read twice at the seams."""
    queue = Queue("ages", {}, 500)
    for row in range(count):
        queue.put(row)
    assert queue.read(500) == queue.sorted(list(range(count)))


@pytest.mark.parametrize("name", ["priority", "ages"])
def test_equal_in_all_but_the_number(name: str) -> None:
    queue = Queue(name, {}, 200)
    queue.table["arrival_s"], queue.table["priority"], queue.table["weight"] = 5.0, 1, 1.0
    queue.table["predicted_class"] = 0
    for row in range(200):
        queue.put(row)
    assert queue.table["seq"][queue.read(200)].tolist() == list(range(200))
