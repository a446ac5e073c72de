"""A policy beside a live engine: what it is told, and what it decides for the next step.

No vllm and no torch here: a request is any object with ``request_id`` that takes one more
attribute, its row, so this is tested with fakes. Table, planner and hooks are the simulator's,
compiled; see `mirror`. What runs in every step avoids per-request Python where it can.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .._jit import Entry
from ..errors import UserError
from ..hooks import ABORTED, Policy
from ..rules import EngineRules
from ..schedule.engine import Limits, build
from ..table import FREE
from . import mirror

__all__ = ["Decision", "PolicyHost", "Step"]

CAPACITY: Final = 1 << 16
"""Requests known at once; more than these wait unranked, in order of arrival."""
PAGE: Final = 64
"""Waiting requests ranked at once beyond those that the plan has looked at."""

I8 = NDArray[np.int64]
NO_ROWS: Final[I8] = np.zeros(0, dtype=np.int64)
NO_PAIRS: Final[I8] = np.zeros((2, 0), dtype=np.int64)


@dataclass(frozen=True)
class Decision:
    """What the planner wants of the next step."""

    running: list[Any] | None
    """The running in the policy's order, less the displaced; None = as they are."""
    displaced: list[Any]
    """Running requests to preempt before the step, so that waiting ones can start."""
    gaining: list[Any]
    """For each of them, the waiting request it yields to."""
    front: list[Any]
    """The first of the waiting; `PolicyHost.more` has the rest."""
    most_tokens: int | None
    """The policy's limit of the step."""


@dataclass
class Step:
    """A step under way, as noted when it was scheduled."""

    items: I8
    """(row, tokens, kind) a column."""
    seqs: I8
    began_s: float


class _Gone:
    """Stands in for a request that has left while its step ran."""

    request_id, resumable, num_output_tokens, num_computed_tokens = "", False, 0, 0

    def is_finished(self) -> bool:
        """It has been dealt with."""
        return False


GONE: Final = _Gone()


class PolicyHost:
    """Rows by request name, and the planner over them."""

    def __init__(
        self,
        policy: type[Policy],
        params: Any,
        cost: Any,
        limits: Limits,
        rules: EngineRules,
        capacity: int = CAPACITY,
    ) -> None:
        if capacity < 1:
            raise UserError(f"capacity={capacity} must be at least 1")
        self.policy, self.params, self.rules = policy, params, rules
        self._whole = rules.order_scope == "all"
        self._parts = (capacity, limits, rules, policy, params, cost)
        self._classes = (type(params), type(cost))
        self.unranked = 0
        """Requests that found the table full."""
        self._page = np.zeros(PAGE, dtype=np.int64)
        self._forget()

    def _forget(self) -> None:
        """Start afresh: no rows, and the policy's memory as new."""
        self.engine, buffers = build(*self._parts)
        self.records = buffers.table
        self._rows_state = buffers.rows
        self._seats = {
            name: getattr(self.engine.seats, name) for name in ("run", "order", "evicted", "gain", "admitted")
        }
        capacity = len(self.records)
        self.rows: dict[str, int] = {}
        self.requests: list[Any] = [GONE] * capacity
        self._free = list(range(capacity - 1, -1, -1))
        self._seq = 1

    def warm(self) -> None:
        """Compile every hook now rather than under the first requests' feet."""
        request = SimpleNamespace(request_id="")
        self.arrive(request, {"arrival_s": 0.0, "prompt_tokens": 1}, 1, 0.0)
        self.decide([], 1, 0.0)
        self.more(0.0)
        step = self.commit({"": 1}, [("", 0)], [], 0.0)
        if self.rules.victim == "hook":
            self.victim_order([request], 0.0)
        self.rewait("", 0.0)
        self.refresh("", {}, 0.0)
        self.complete(step, [0], [1], [False], 0.0)
        self.remove("", ABORTED, 0.0)
        self._forget()

    def _run(self, kernel: Entry, *args: Any) -> Any:
        return kernel.on(*self._classes)(self.engine, *args)

    # ── what happens to requests ─────────────────────────────────────────────────────

    def arrive(self, request: Any, columns: Mapping[str, float], longest: int, now: float) -> None:
        """A request comes in. ``columns``: those of the table that its host knows;
        ``longest``: most output tokens it may make."""
        request.tailrace_row = -1
        if not self._free:
            self.unranked += 1
            return
        row = request.tailrace_row = self._free.pop()
        self.rows[request.request_id], self.requests[row] = row, request
        self.records[row : row + 1] = np.zeros(1, dtype=self.records.dtype)
        self._rows_state[row : row + 1] = np.zeros(1, dtype=self._rows_state.dtype)
        self._fill(row, columns)
        for column in ("started_s", "first_token_s", "last_token_s"):
            self.records[column][row] = math.nan
        self.records["seq"][row] = self._seq
        self._rows_state["output_tokens"][row] = longest
        self._seq += 1
        self._run(mirror.arrive, row, now)

    def _fill(self, row: int, columns: Mapping[str, float]) -> None:
        for column, value in columns.items():
            self.records[column][row] = value
        self.records["waiting_since_s"][row] = self.records["arrival_s"][row]

    def refresh(self, name: str, columns: Mapping[str, float], now: float) -> None:
        """A request's columns have changed: a session's next input."""
        if name in self.rows:
            self._fill(self.rows[name], columns)
            self._run(mirror.requeued, self.rows[name], now)

    def rewait(self, name: str, now: float) -> None:
        """A running request waits again without having lost its KV."""
        if name in self.rows:
            self._run(mirror.rewait, self.rows[name], now)

    def remove(self, name: str, reason: int, now: float) -> None:
        """A request leaves outside a step: aborted or rejected."""
        if name in self.rows:
            self._run(mirror.remove, self.rows[name], reason, now)
            self._release(name)

    def _release(self, name: str) -> None:
        row = self.rows.pop(name)
        self.records["phase"][row] = FREE
        self.requests[row] = GONE
        self._free.append(row)

    # ── a step ───────────────────────────────────────────────────────────────────────

    def decide(self, running: Sequence[Any], free_blocks: int, now: float) -> Decision:
        """Plan the next step; changes nothing."""
        seats, rows = self._seats, [request.tailrace_row for request in running]
        if -1 in rows:
            rows = [row for row in rows if row >= 0]
        seats["run"][: len(rows)] = rows
        displaced, admitted, unserved, tokens, limited = self._run(mirror.decide, len(rows), free_blocks, now)
        front = seats["admitted"][:admitted].tolist()
        if unserved >= 0:
            front.append(unserved)
        gone = seats["evicted"][:displaced].tolist()
        order = None
        if gone or self._whole:
            order = seats["order"][: len(rows)].tolist() if self._whole else rows
            order = self._at([row for row in order if row not in gone])
            order += [request for request in running if request.tailrace_row < 0]
        return Decision(
            running=order,
            displaced=self._at(gone),
            gaining=self._at(seats["gain"][:displaced].tolist()),
            front=self._at(front),
            most_tokens=tokens if limited and tokens > 0 else None,
        )

    def _at(self, rows: Iterable[int]) -> list[Any]:
        return list(map(self.requests.__getitem__, rows))

    def more(self, now: float) -> list[Any]:
        """The waiting that rank next; empty at the end. Only between `decide` and `commit`."""
        count = self._run(mirror.more, self._page, now)
        return self._at(self._page[:count].tolist())

    def protect(self, name: str, tokens: int) -> None:
        """Do not displace the request again before it has attained ``tokens`` more."""
        row = self.rows[name]
        self._rows_state["safe_until_tokens"][row] = self.records["attained_tokens"][row] + tokens

    def victim_order(self, running: Sequence[Any], now: float) -> list[Any]:
        """Running requests, the one to yield KV first at the front."""
        known = [request for request in running if request.tailrace_row >= 0]
        rows = np.array([request.tailrace_row for request in known], dtype=np.int64)
        costs = np.zeros((len(rows), 2))
        self._run(mirror.victims, rows, costs, now)
        arrival, seq = self.records["arrival_s"][rows], self.records["seq"][rows]
        order = np.lexsort((-seq, -arrival, costs[:, 1], costs[:, 0]))
        return [known[i] for i in order] + [request for request in running if request.tailrace_row < 0]

    def commit(
        self,
        tokens: Mapping[str, int],
        admitted: Iterable[tuple[str, int]],
        preempted: Iterable[str],
        now: float,
    ) -> Step:
        """A step is scheduled: tokens a request, who started (with the tokens found computed),
        and who lost KV."""
        rows = self.rows
        if not tokens.keys() <= rows.keys():  # some are unranked
            tokens = {name: count for name, count in tokens.items() if name in rows}
        items = np.empty((3, len(tokens)), dtype=np.int64)
        items[0], items[1] = list(map(rows.__getitem__, tokens)), list(tokens.values())
        self._run(mirror.commit, items, self._pairs(admitted), self._lost(preempted), now)
        return Step(items, self.records["seq"][items[0]], now)

    def _pairs(self, admitted: Iterable[tuple[str, int]]) -> I8:
        found = [(self.rows[name], computed) for name, computed in admitted if name in self.rows]
        return np.array(found, dtype=np.int64).T.copy() if found else NO_PAIRS

    def _lost(self, preempted: Iterable[str]) -> I8:
        found = [self.rows[name] for name in preempted if name in self.rows]
        return np.array(found, dtype=np.int64) if found else NO_ROWS

    def requests_of(self, step: Step) -> list[Any]:
        """The requests of a step under way; a stand-in for those that have left."""
        return self._at(step.items[0].tolist())

    def complete(
        self, step: Step, outputs: Sequence[int], computed: Sequence[int], finished: Sequence[bool], now: float
    ) -> None:
        """A step ended. Of each of its requests: output tokens so far, tokens computed, and
        whether it has finished."""
        ended = np.empty((4, len(step.seqs)), dtype=np.int64)
        ended[0], ended[1], ended[2], ended[3] = step.seqs, outputs, computed, finished
        rows = step.items[0].copy()
        self._run(mirror.complete, step.items, ended, now - step.began_s, now)
        for i in np.flatnonzero(ended[3]).tolist():
            request = self.requests[rows[i]]
            if request is not GONE and self.records["seq"][rows[i]] == step.seqs[i]:
                self._release(request.request_id)
