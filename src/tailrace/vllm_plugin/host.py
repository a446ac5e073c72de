"""A policy's memory beside a live engine: request rows, hooks, and the order of a step.

No vllm and no torch here: requests are told by name and plain numbers, so this is tested
with fakes. Hooks run compiled, a batch a call; the table is the one of the simulator.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .. import hooks
from .._jit import Entry, entry, kernel
from ..errors import UserError
from ..hooks import ABORTED, Policy
from ..table import DECODE, DONE, FREE, PREFILL, WAITING, RequestTable, allocate

__all__ = ["PolicyHost"]

CAPACITY: Final = 1 << 16
"""Requests known at once; more than these wait unranked, in order of arrival."""

I8 = NDArray[np.int64]


@kernel
def _before(table: Any, tier: Any, key: Any, a: int, b: int) -> bool:
    """The total order: tier, key, arrival, seq."""
    if tier[a] != tier[b]:
        return tier[a] < tier[b]
    if key[a] != key[b]:
        return key[a] < key[b]
    if table.arrival_s[a] != table.arrival_s[b]:
        return table.arrival_s[a] < table.arrival_s[b]
    return table.seq[a] < table.seq[b]


@kernel
def _merge_sort(table: Any, tier: Any, key: Any, order: Any, first: int, last: int, spare: Any) -> None:
    """Sort ``order[first:last]`` bottom up; runs that are in order already cost one look."""
    width = 1
    while width < last - first:
        for low in range(first, last - width, 2 * width):
            middle = low + width
            high = middle + width if middle + width < last else last
            if not _before(table, tier, key, order[middle], order[middle - 1]):
                continue
            i, j = low, middle
            for k in range(low, high):
                if j >= high or (i < middle and not _before(table, tier, key, order[j], order[i])):
                    spare[k] = order[i]
                    i += 1
                else:
                    spare[k] = order[j]
                    j += 1
            for k in range(low, high):
                order[k] = spare[k]
        width *= 2


@entry
def rank(
    table: Any, live: Any, split: int, whole: bool, now: float, state: Any, scratch: Any, cost: Any, params: Any,
    tier: Any, key: Any, spare: Any,
) -> None:  # fmt: skip
    """Sort ``live[:split]`` (waiting) by the policy's keys, and the rest (running) if ``whole``."""
    hooks.prepare(table, live, now, state, scratch, cost, params)
    last = live.shape[0] if whole else split
    for i in range(last):
        row = live[i]
        found = hooks.key(table, row, now, state, scratch, cost, params)
        tier[row] = found[0]
        key[row] = found[1] if found[1] == found[1] else math.inf
    _merge_sort(table, tier, key, live, 0, split, spare)
    if whole:
        _merge_sort(table, tier, key, live, split, live.shape[0], spare)


@entry
def victims(table: Any, rows: Any, out: Any, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> None:
    """``out[i]``: (protected, cost) of each row, protection as 1 or 0."""
    for i in range(rows.shape[0]):
        protected, price = hooks.victim(table, rows[i], now, state, scratch, cost, params)
        out[i, 0] = 1.0 if protected else 0.0
        out[i, 1] = price


@entry
def arrive(table: Any, row: int, now: float, state: Any, params: Any) -> None:
    """One request came in."""
    hooks.on_arrival(table, row, now, state, params)


@entry
def preempt(table: Any, rows: Any, now: float, state: Any, params: Any) -> None:
    """Rows that lost their KV."""
    for row in rows:
        table.phase[row] = WAITING
        table.computed_tokens[row] = 0
        table.kv_blocks[row] = 0
        table.waiting_since_s[row] = now
        table.preemptions[row] += 1
        hooks.on_preempt(table, row, now, state, params)


@entry
def admit(table: Any, rows: Any, tier: Any, now: float, state: Any, params: Any) -> None:
    """Rows that start or resume."""
    for row in rows:
        first = math.isnan(table.started_s[row])
        table.phase[row] = PREFILL
        if first:
            table.started_s[row] = now
        hooks.on_admit(table, row, first, tier[row], now, state, params)


@entry
def schedule(table: Any, rows: Any, tokens: Any, last: Any) -> None:
    """Tokens count as computed when they are scheduled, as in vLLM; ``last`` end a prefill."""
    for i in range(rows.shape[0]):
        row = rows[i]
        if last[i]:
            table.phase[row] = DECODE
        computed = table.computed_tokens[row] + tokens[i]
        table.computed_tokens[row] = computed
        if computed > table.attained_tokens[row]:
            table.attained_tokens[row] = computed


@entry
def complete(
    table: Any, rows: Any, tokens: Any, last: Any, made: Any, gone: Any, step_s: float, now: float, state: Any,
    params: Any,
) -> None:  # fmt: skip
    """A step's items end: progress, prefill done (``last``), tokens ``made``, finished (``gone``)."""
    for i in range(rows.shape[0]):
        row = rows[i]
        if table.phase[row] == DONE or table.phase[row] == FREE:
            continue
        hooks.on_progress(table, row, tokens[i], now, state, params)
        if last[i] and table.phase[row] == DECODE:
            hooks.on_prefill_done(table, row, now, state, params)
        if made[i] > 0:
            if table.generated_tokens[row] == 0:
                table.first_token_s[row] = now
            table.last_token_s[row] = now
            table.generated_tokens[row] += made[i]
        if gone[i]:
            table.phase[row] = DONE
            hooks.on_remove(table, row, hooks.FINISHED, now, state, params)
    hooks.after_step(table, rows, step_s, now, state, params)


@entry
def remove(table: Any, row: int, reason: int, now: float, state: Any, params: Any) -> None:
    """One request leaves outside a step."""
    table.phase[row] = DONE
    hooks.on_remove(table, row, reason, now, state, params)


class PolicyHost:
    """Rows by request name, and the policy's hooks over them."""

    def __init__(self, policy: type[Policy], params: Any, cost: Any, capacity: int = CAPACITY) -> None:
        if capacity < 1:
            raise UserError(f"capacity={capacity} must be at least 1")
        self.policy, self.params, self.cost = policy, params, cost
        self.records, self.table = allocate(RequestTable, capacity)
        self.state, self.scratch = policy.make_state(params, capacity), policy.make_scratch(params, capacity)
        self.rows: dict[str, int] = {}
        self._free = list(range(capacity - 1, -1, -1))
        self._seq = 0
        self._tier, self._key = np.zeros(capacity, dtype=np.int64), np.zeros(capacity)
        self._spare = np.zeros(capacity, dtype=np.int64)
        self.unranked = 0
        """Requests that found the table full."""
        self._classes = (type(params), type(cost))

    def warm(self) -> None:
        """Compile every hook now rather than under the first requests' feet."""
        state = (self.state, self.params)
        none, now = np.zeros(0, dtype=np.int64), 0.0
        self.arrive("", {"arrival_s": 0.0}, now)
        self.rank([""], [], True, now)
        if hasattr(self.policy, "victim"):
            self.victim_order([""], now)
        self.commit([], [], [], now)
        self._run(complete, self.table, none, none, none, none, none, 0.0, now, *state)
        self.remove("", ABORTED, now)
        self._forget()

    def _forget(self) -> None:
        """Start afresh: no rows, and the policy's memory as new."""
        capacity = len(self.records)
        self.state = self.policy.make_state(self.params, capacity)
        self.scratch = self.policy.make_scratch(self.params, capacity)
        self.rows, self._free, self._seq = {}, list(range(capacity - 1, -1, -1)), 0

    def _run(self, kernel: Entry, *args: Any) -> None:
        kernel.on(*self._classes)(*args)

    def arrive(self, name: str, columns: dict[str, float], now: float) -> None:
        """A request comes in. ``columns``: those of the table that its host knows."""
        if not self._free:
            self.unranked += 1
            return
        row = self._free.pop()
        self.rows[name] = row
        self.records[row : row + 1] = np.zeros(1, dtype=self.records.dtype)
        for column, value in columns.items():
            self.records[column][row] = value
        for column in ("started_s", "first_token_s", "last_token_s"):
            self.records[column][row] = math.nan
        self.records["seq"][row], self.records["phase"][row] = self._seq, WAITING
        self.records["waiting_since_s"][row] = self.records["arrival_s"][row]
        self._seq += 1
        self._run(arrive, self.table, row, now, self.state, self.params)

    def in_prefill(self, name: str) -> bool:
        """Whether a request has started and not yet computed all its known tokens."""
        return name in self.rows and bool(self.records["phase"][self.rows[name]] == PREFILL)

    def rank(
        self, waiting: Sequence[str], running: Sequence[str], whole: bool, now: float
    ) -> tuple[list[str], list[str]]:
        """``(waiting, running)`` in order; the running stay as they are unless ``whole``.

        Names without a row keep their order, behind the others.
        """
        names = {self.rows[name]: name for name in (*waiting, *running) if name in self.rows}
        first = [self.rows[name] for name in waiting if name in self.rows]
        second = [self.rows[name] for name in running if name in self.rows]
        live = np.array(first + second, dtype=np.int64)
        args = (self.state, self.scratch, self.cost, self.params, self._tier, self._key, self._spare)
        self._run(rank, self.table, live, len(first), whole, now, *args)
        order = [names[row] for row in live.tolist()]
        missing = [name for name in waiting if name not in self.rows]
        late = [name for name in running if name not in self.rows]
        return order[: len(first)] + missing, order[len(first) :] + late

    def victim_order(self, running: Sequence[str], now: float) -> list[str]:
        """Running requests, the one to yield KV first at the front."""
        known = [name for name in running if name in self.rows]
        rows = np.array([self.rows[name] for name in known], dtype=np.int64)
        price = np.zeros((len(rows), 2))
        self._run(victims, self.table, rows, price, now, self.state, self.scratch, self.cost, self.params)
        arrival, seq = self.records["arrival_s"][rows], self.records["seq"][rows]
        order = np.lexsort((-seq, -arrival, price[:, 1], price[:, 0]))
        return [known[i] for i in order] + [name for name in running if name not in self.rows]

    def commit(
        self, preempted: Iterable[str], admitted: Iterable[str], items: Sequence[tuple[str, int, bool]], now: float
    ) -> None:
        """A step is scheduled: who lost KV, who started, and (name, tokens, ends its prefill)."""
        self._run(preempt, self.table, self._array(preempted), now, self.state, self.params)
        self._run(admit, self.table, self._array(admitted), self._tier, now, self.state, self.params)
        known = [item for item in items if item[0] in self.rows]
        tokens, last = (np.array([item[i] for item in known], dtype=np.int64) for i in (1, 2))
        self._run(schedule, self.table, self._array(item[0] for item in known), tokens, last)

    def complete(self, items: Sequence[tuple[str, int, bool, int, bool]], step_s: float, now: float) -> None:
        """A step ended. Each item: name, tokens, ends its prefill, output tokens made, finished."""
        known = [item for item in items if item[0] in self.rows]
        columns = list(zip(*known, strict=True)) if known else [(), (), (), (), ()]
        rows = self._array(columns[0])
        numbers = [np.array(column, dtype=np.int64) for column in columns[1:]]
        self._run(complete, self.table, rows, *numbers, step_s, now, self.state, self.params)
        for name, _, _, _, gone in known:
            if gone:
                self._release(name)

    def remove(self, name: str, reason: int, now: float) -> None:
        """A request leaves outside a step: aborted or rejected."""
        if name in self.rows:
            self._run(remove, self.table, self.rows[name], reason, now, self.state, self.params)
            self._release(name)

    def _release(self, name: str) -> None:
        row = self.rows.pop(name)
        self.records["phase"][row] = FREE
        self._free.append(row)

    def _array(self, names: Iterable[str]) -> I8:
        return np.array([self.rows[name] for name in names if name in self.rows], dtype=np.int64)
