"""A policy beside a live engine: what it is told, and what it decides for the next step.

No vllm and no torch here: a request is any object with ``request_id`` that takes one more
attribute, its row, so this is tested with fakes. Table, planner and hooks are the simulator's,
compiled; see `mirror`. What runs in every step avoids per-request Python where it can.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from .._jit import ENABLED, Bound, Entry
from ..errors import UserError
from ..hooks import ABORTED, Policy
from ..latency import StepShape
from ..rules import EngineRules
from ..schedule.engine import Limits, build
from ..table import FREE, allocate
from . import mirror
from .learning import StepTimes, measure

__all__ = ["Cache", "Decision", "PolicyHost", "Step"]

CAPACITY: Final = 1 << 16
"""Requests known at once; more wait behind them, unranked, until a row is free."""
MOST_TOKENS: Final = 1 << 31
"""Output tokens a request may make, as far as a policy is told."""
PAGE: Final = 64
"""Waiting requests ranked at once beyond those that the plan has looked at."""

I8 = NDArray[np.int64]
NO_ROWS: Final[I8] = np.zeros(0, dtype=np.int64)
NOBODY: Final[list[Any]] = []
NO_PAIRS: Final[I8] = np.zeros((2, 0), dtype=np.int64)


class Decision:
    """What the planner wants of the next step; it stands until the next one is planned."""

    __slots__ = ("displaced", "front", "gaining", "most_tokens", "now", "running", "starting", "tokens")

    running: list[Any] | None
    """The running in the policy's order; None = as they are."""
    displaced: list[Any]
    """Running requests to preempt before the step, so that waiting ones can start."""
    gaining: list[Any]
    """For each of them, the waiting request it yields to."""
    front: list[Any]
    """The first of the waiting; `PolicyHost.more` has the rest."""
    starting: int
    """How many of these start."""
    most_tokens: int | None
    """The policy's limit of the step."""
    tokens: list[int] | None
    """Tokens planned for each request, if all that hold a place get some."""
    now: float


class Step:
    """A step under way, as noted when it was scheduled."""

    __slots__ = ("began_s", "count", "items", "sums", "whole")
    items: I8
    """(row, tokens, kind, seq) a column."""
    count: int
    """How many columns are in use."""
    began_s: float
    whole: bool
    """Whether the plan knows all that it computes; ``sums`` are then its shape, if step times are learned."""
    sums: I8

    def __init__(self, columns: int) -> None:
        self.items = np.empty((4, columns), dtype=np.int64)
        self.sums = np.zeros(len(StepShape._fields), dtype=np.int64)
        self.count, self.whole = columns, True


class Cache(Protocol):
    """The live engine's prefix cache."""

    def found(self, request: Any) -> tuple[int, int]:
        """Cached tokens of a waiting request, and how many of their blocks count as free."""

    def yields(self, request: Any) -> int:
        """Blocks that become free if a running request loses its KV."""


class _Empty:
    """A prefix cache for requests that do not exist."""

    def found(self, request: Any) -> tuple[int, int]:
        """Nothing."""
        return 0, 0

    def yields(self, request: Any) -> int:
        """Nothing."""
        return 0


class _Gone:
    """Stands in for a request that has left while its step ran."""

    request_id, tailrace_row, status, num_computed_tokens = "", -1, 0, 0
    _output_token_ids = ()


GONE: Final = _Gone()


def _as_decided(decision: Decision, admitted: Mapping[str, int], preempted: Collection[str]) -> bool:
    if len(preempted) != len(decision.displaced) or len(admitted) != decision.starting:
        return False
    if preempted and not all(request.request_id in preempted for request in decision.displaced):
        return False
    return not admitted or [request.request_id for request in decision.front[: len(admitted)]] == list(admitted)


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
        cache: Cache | None = None,
        times: StepTimes | None = None,
    ) -> None:
        """``times``: what learns how long steps take, in place of ``cost``."""
        if capacity < 1:
            raise UserError(f"capacity={capacity} must be at least 1")
        self.policy, self.params, self.rules = policy, params, rules
        displaces = rules.may_preempt_at_cap or rules.may_preempt_for_kv
        self._cache = cache if displaces else None
        """Asked of the requests that a plan is about, where it may displace somebody."""
        self.times = times
        self._ended_s = -math.inf
        """When the latest step ended."""
        self._parts = (capacity, limits, rules, policy, params, times.cost if times else cost)
        self._known: set[int] = set()
        """Rows of which the prefix cache has been asked for this step."""
        self._unranked: dict[str, tuple[Any, Mapping[str, float], int]] = {}
        """Waiting requests that found the table full."""
        self._fast: dict[Entry, Any] = {}
        """Compiled code by entry. It checks no types: ints, floats and C-ordered int64 arrays only."""
        found, self._finds = allocate(mirror.Found, 1)
        self._found: I8 = found.view(np.int64)
        self._page = np.zeros(PAGE, dtype=np.int64)
        self._decision = Decision()
        self._idle: list[Step] = []
        """Steps that have ended, to be used again: a fresh array costs as much as a kernel."""
        self._forget()

    def _forget(self) -> None:
        """Start afresh: no rows, and the policy's memory as new."""
        self._told = mirror.told(self._parts[0]) if self._cache else None
        self.engine, buffers = build(*self._parts, self._told)
        self._kinds = (type(self.params), type(self.engine.cost), type(self.engine.blocks))
        self._bound = Bound(self.engine) if ENABLED else None
        self._handle = self._bound.address if self._bound else self.engine
        self.records = buffers.table
        self._rows_state = buffers.rows
        seats = self.engine.seats
        self._seats = SimpleNamespace(run=seats.run, admitted=seats.admitted, evicted=seats.evicted, gain=seats.gain)
        self._planned = self.engine.items.tokens
        capacity = len(self.records)
        self.rows: dict[str, int] = {}
        self.requests: list[Any] = [GONE] * capacity
        self._free = list(range(capacity - 1, -1, -1))
        self._seq, self._places = 1, int(buffers.core["max_seqs"][0])
        self._ended = np.empty((3, self._places), dtype=np.int64)

    def warm(self) -> None:
        """Compile every hook now rather than under the first requests' feet."""
        request, cache = SimpleNamespace(request_id="", num_computed_tokens=0), self._cache
        self._cache = _Empty() if cache else None
        self.arrive(request, {"arrival_s": 0.0, "prompt_tokens": 1}, 1, 0.0)
        self.decide([], 1, 0.0)
        self.more(0.0)
        self.note({"": 0}, {"": 0}, [], 0.0)
        self.note({"": 0}, {}, [""], 0.0)
        step = self.commit(self.decide([], 1, 0.0), {"": 1}, {"": 0}, [])
        self.decide([], 1, 0.0)  # settles the running
        if self.rules.victim == "hook":
            self.victim_order([request], 0.0)
        self.complete(step, [0], [1], [False], 0.0)
        self.remove("", ABORTED, 0.0)
        self._forget()
        self._cache = cache

    def _run(self, kernel: Entry, *args: Any) -> Any:
        fast = self._fast.get(kernel)
        if fast is None:
            fast = kernel.bound(self._kinds, self._bound, args) if self._bound else kernel.py_func
            self._fast[kernel] = fast
        return fast(self._handle, *args)

    # ── what happens to requests ─────────────────────────────────────────────────────

    def arrive(self, request: Any, columns: Mapping[str, float], longest: int, now: float) -> None:
        """A request comes in. ``columns``: those of the table that its host knows;
        ``longest``: most output tokens it may make."""
        request.tailrace_row = -1
        if not self._free:
            self._unranked[request.request_id] = request, columns, longest
            return
        row = self._free[-1]
        self.records[row : row + 1] = np.zeros(1, dtype=self.records.dtype)
        self._rows_state[row : row + 1] = np.zeros(1, dtype=self._rows_state.dtype)
        self._fill(row, columns)
        for column in ("started_s", "first_token_s", "last_token_s"):
            self.records[column][row] = math.nan
        self.records["seq"][row] = self._seq
        self._rows_state["output_tokens"][row] = min(longest, MOST_TOKENS)
        self.rows[request.request_id], self.requests[row] = row, request
        request.tailrace_row = self._free.pop()
        self._seq += 1
        self._run(mirror.arrive, row, now)

    def _fill(self, row: int, columns: Mapping[str, float]) -> None:
        for column, value in columns.items():
            self.records[column][row] = value
        self.records["waiting_since_s"][row] = self.records["arrival_s"][row]

    def remove(self, name: str, reason: int, now: float) -> None:
        """A request leaves outside a step: finished, aborted or rejected."""
        self._unranked.pop(name, None)
        if name in self.rows:
            self._run(mirror.remove, self.rows[name], reason, now)
            self._release(name, now)

    def _release(self, name: str, now: float) -> None:
        """A row is free: for the first of those that found none."""
        row = self.rows.pop(name)
        self.records["phase"][row] = FREE
        self.requests[row].tailrace_row, self.requests[row] = -1, GONE
        self._free.append(row)
        if self._unranked:
            self.arrive(*self._unranked.pop(next(iter(self._unranked))), now)

    # ── a step ───────────────────────────────────────────────────────────────────────

    def decide(self, running: Sequence[Any], free_blocks: int, now: float, taken: int = 0) -> Decision:
        """Plan the next step; changes nothing but the order of the running.

        ``taken``: places that requests hold which neither run nor wait (sessions between inputs).
        """
        last = running[-1].tailrace_row if running else -1
        self._plan(running, last, free_blocks, self._places - taken, now)
        displaced, admitted, unserved, items, most, reordered, apart, known = self._found.tolist()
        seats, at, order, gone, gaining = self._seats, self.requests, None, NOBODY, NOBODY
        front = self._at(seats.admitted[:admitted].tolist()) if admitted else []
        if unserved >= 0:
            front.append(at[unserved])
        if reordered:
            order = self._at(seats.run[:known].tolist())
            if known < len(running):
                order += [request for request in running if request.tailrace_row < 0]
        if displaced:
            gone, gaining = self._at(seats.evicted[:displaced].tolist()), self._at(seats.gain[:displaced].tolist())
        if known != len(running):
            most = 0  # somebody runs whom the plan does not know
        tokens = None if apart else self._planned[:items].tolist()
        decision = self._decision
        decision.running, decision.displaced, decision.gaining, decision.front = order, gone, gaining, front
        decision.starting, decision.most_tokens, decision.tokens, decision.now = admitted, most or None, tokens, now
        return decision

    def _plan(self, running: Sequence[Any], last: int, free_blocks: int, places: int, now: float) -> None:
        """Plan until all is known that the prefix cache has to say of it."""
        if not self._run(mirror.decide, len(running), last, free_blocks, places, now, self._finds):
            self._settle(running)
            self._run(mirror.decide, -1, -1, free_blocks, places, now, self._finds)
        if self._told is not None:
            self._forget_cache()
            while self._ask_cache():
                self._run(mirror.decide, -1, -1, free_blocks, places, now, self._finds)

    def _settle(self, running: Sequence[Any]) -> None:
        pairs = [(r.tailrace_row, r.num_computed_tokens) for r in running if r.tailrace_row >= 0]
        self._run(mirror.settle, np.array(pairs, dtype=np.int64).T.copy() if pairs else NO_PAIRS)

    def _forget_cache(self) -> None:
        """What the prefix cache held in the step before is nothing to go by."""
        assert self._told is not None
        for row in self._known:
            self._told.found[row], self._told.idle[row], self._told.yields[row] = 0, 0, -1
        self._known.clear()

    def _ask_cache(self) -> bool:
        """Ask of all that the plan is about: who starts, who is next, who is displaced. Whether
        there was anything to ask; the plan is then made anew."""
        assert self._told is not None
        assert self._cache is not None
        displaced, admitted, unserved, *_ = self._found.tolist()
        starts = {*self._seats.admitted[:admitted].tolist(), unserved} - self._known - {-1}
        losers = set(self._seats.evicted[:displaced].tolist()) - self._known
        for row in starts:
            self._told.found[row], self._told.idle[row] = self._cache.found(self.requests[row])
        for row in losers:
            self._told.yields[row] = self._cache.yields(self.requests[row])
        self._known |= starts | losers
        return bool(starts or losers)

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
        decision: Decision,
        tokens: Mapping[str, int],
        admitted: Mapping[str, int],
        preempted: Collection[str],
    ) -> Step:
        """A step is scheduled: tokens a request, who started (with the tokens found computed),
        and who lost KV; nearly always as was decided, which is cheap to see."""
        if list(tokens.values()) == decision.tokens and _as_decided(decision, admitted, preempted):
            step = self._idle.pop() if self._idle else Step(self._places)
            step.count, step.began_s = len(tokens), decision.now
            found = np.array(list(admitted.values()), dtype=np.int64) if admitted else NO_ROWS
            self._run(mirror.carry_out, step.items, step.count, found, decision.now)
        else:
            step = self.note(tokens, admitted, preempted, decision.now)
        if self.times and step.whole:
            self._run(measure, step.items, step.count, step.sums)
        return step

    def note(
        self, tokens: Mapping[str, int], admitted: Mapping[str, int], preempted: Collection[str], now: float
    ) -> Step:
        """As `commit`, for what nobody has planned."""
        rows = self.rows
        names = [name for name in tokens if name in rows]
        for name in tokens.keys() & self._unranked.keys():
            del self._unranked[name]  # it runs, unranked to its end
        step = Step(len(names))
        step.items[0], step.items[1] = [rows[name] for name in names], [tokens[name] for name in names]
        self._run(mirror.commit, step.items, self._pairs(admitted.items()), self._lost(preempted), now)
        step.began_s, step.whole = now, len(names) == len(tokens)
        return step

    def _pairs(self, admitted: Iterable[tuple[str, int]]) -> I8:
        found = [(self.rows[name], computed) for name, computed in admitted if name in self.rows]
        return np.array(found, dtype=np.int64).T.copy() if found else NO_PAIRS

    def _lost(self, preempted: Iterable[str]) -> I8:
        found = [self.rows[name] for name in preempted if name in self.rows]
        return np.array(found, dtype=np.int64) if found else NO_ROWS

    def requests_of(self, step: Step) -> list[Any]:
        """The requests of a step under way; a stand-in for those that have left."""
        return self._at(step.items[0, : step.count].tolist())

    def complete(
        self, step: Step, outputs: Sequence[int], computed: Sequence[int], finished: Sequence[bool], now: float
    ) -> None:
        """A step ended. Of each of its requests: output tokens so far, tokens computed, and
        whether it has finished."""
        count, ended = step.count, self._ended
        if count > ended.shape[1]:
            ended = np.empty((3, count), dtype=np.int64)
        ended[0, :count], ended[1, :count], ended[2, :count] = outputs, computed, finished
        seconds = now - max(step.began_s, self._ended_s)  # with two steps in flight it began as the other ended
        self._ended_s = now
        self._run(mirror.complete, step.items, count, ended, seconds, now)
        if any(finished):
            for row in step.items[0, :count][ended[2, :count] == 1].tolist():
                if row >= 0:
                    self._release(self.requests[row].request_id, now)
        if self.times and step.whole and count and self.times.add(step.sums.tolist(), seconds):
            self._retime(self.times.cost)
        if step.items.shape[1] == self._places:
            step.whole = True
            self._idle.append(step)

    def _retime(self, cost: Any) -> None:
        """Plan with other step times from now on."""
        self.engine = self.engine._replace(cost=cost)
        if self._bound:
            self._bound.rewrite(self.engine)
        else:
            self._handle = self.engine
