"""A policy that uses every hook and insists on no rule, so that rules vary freely; and its oracle."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, NamedTuple

from tailrace import hooks
from tailrace.hooks import Policy, policy
from tailrace.params import P
from tailrace.registry import POLICIES
from tailrace.table import I8, Columns, allocate

from .model import INF, Oracle, Req
from .reference import Reference


class SinkParams(NamedTuple):
    """Which key, and the numbers that the other hooks answer with; 0 = no limit."""

    order: Annotated[int, P("key", choices=("arrival", "priority", "left", "waited"))] = 0
    protect: Annotated[int, P("attained tokens that protect a request", unit="tokens", low=0)] = 0
    hold: Annotated[int, P("attained tokens past which nobody is displaced", unit="tokens", low=0)] = 0
    tokens: Annotated[int, P("most a step", unit="tokens", low=0)] = 0
    seqs: Annotated[int, P("most a step", unit="requests", low=0)] = 0
    seconds: Annotated[float, P("most a step", unit="s", low=0.0)] = 0.0
    sign: Annotated[int, P("1: who holds least KV yields; -1: who holds most", low=-1, high=1)] = 1


class Told(Columns):
    """How often each hook was called with a row; row 0 also counts the steps."""

    arrived: I8
    admitted: I8
    first: I8
    progress: I8
    prefilled: I8
    preempted: I8
    removed: I8
    steps: I8


class SinkState(NamedTuple):
    """What the hooks were told."""

    told: Any


class Looked(Columns):
    """What prepare was shown: the number of live rows, and the sum of their numbers."""

    rows: I8
    total: I8


class SinkScratch(NamedTuple):
    """What prepare saw."""

    looked: Any


@policy("sink", source="a test")
class Sink(Policy):
    """See the module."""

    Params = SinkParams
    keys = hooks.EVERY_STEP

    @staticmethod
    def make_state(params: Any, capacity: int) -> Any:
        return SinkState(allocate(Told, capacity)[1])

    @staticmethod
    def make_scratch(params: Any, capacity: int) -> Any:
        return SinkScratch(allocate(Looked, 1)[1])

    @staticmethod
    def prepare(table: Any, live: Any, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> None:
        scratch.looked.rows[0] = 0
        scratch.looked.total[0] = 0
        for row in live:
            scratch.looked.rows[0] += 1
            scratch.looked.total[0] += row

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        if params.order == 1:
            return table.priority[row], 0.0
        if params.order == 2:
            return 0, float(table.prompt_tokens[row] + table.predicted_output_tokens[row] - table.attained_tokens[row])
        if params.order == 3:
            return table.predicted_class[row] // 2, -(now - table.arrival_s[row]) * (1 + table.priority[row] % 3)
        return 0, 0.0

    @staticmethod
    def step_limits(
        table: Any, live: Any, now: float, state: Any, scratch: Any, cost: Any, params: Any
    ) -> tuple[int, int, float]:
        tokens = params.tokens if params.tokens > 0 else hooks.NO_LIMIT
        seqs = params.seqs if params.seqs > 0 else hooks.NO_LIMIT
        return tokens, seqs, params.seconds if params.seconds > 0 else INF

    @staticmethod
    def may_preempt(
        table: Any, waiting_row: int, running_row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any
    ) -> bool:
        return bool(params.hold == 0 or table.attained_tokens[running_row] <= params.hold)

    @staticmethod
    def victim(
        table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any
    ) -> tuple[bool, float]:
        return params.protect > 0 and table.attained_tokens[row] >= params.protect, float(
            params.sign * table.kv_blocks[row]
        )

    @staticmethod
    def on_arrival(table: Any, row: int, now: float, state: Any, params: Any) -> None:
        state.told.arrived[row] += 1

    @staticmethod
    def on_admit(table: Any, row: int, first: bool, tier: int, now: float, state: Any, params: Any) -> None:
        state.told.admitted[row] += 1
        if first:
            state.told.first[row] += 1

    @staticmethod
    def on_progress(table: Any, row: int, tokens: int, now: float, state: Any, params: Any) -> None:
        state.told.progress[row] += tokens

    @staticmethod
    def on_prefill_done(table: Any, row: int, now: float, state: Any, params: Any) -> None:
        state.told.prefilled[row] += 1

    @staticmethod
    def on_preempt(table: Any, row: int, now: float, state: Any, params: Any) -> None:
        state.told.preempted[row] += 1

    @staticmethod
    def on_remove(table: Any, row: int, reason: int, now: float, state: Any, params: Any) -> None:
        state.told.removed[row] += 1

    @staticmethod
    def after_step(table: Any, planned: Any, step_s: float, now: float, state: Any, params: Any) -> None:
        state.told.steps[0] += 1


POLICIES._classes.pop("sink")  # a test's policy is in no list that a user sees


class SinkOracle(Oracle):
    """The same in the reference."""

    def __init__(self, params: SinkParams) -> None:
        self.params, self.told = params, Counter[tuple[str, int]]()

    def key(self, r: Req, now: float) -> tuple[int, float]:
        if self.params.order == 1:
            return r.priority, 0.0
        if self.params.order == 2:
            return 0, r.prompt + r.predicted - r.attained
        if self.params.order == 3:
            return 0, -(now - r.arrival) * (1 + r.priority % 3)
        return 0, 0.0

    def limits(self, sim: Reference) -> tuple[float, float, float]:
        p = self.params
        return p.tokens or INF, p.seqs or INF, p.seconds or INF

    def may_preempt(self, waiting: Req, running: Req) -> bool:
        return not self.params.hold or running.attained <= self.params.hold

    def victim(self, r: Req) -> tuple[bool, float]:
        return bool(self.params.protect) and r.attained >= self.params.protect, self.params.sign * r.blocks

    def on_admit(self, r: Req, first: bool, tier: int, now: float) -> None:
        self.told["admitted", r.row] += 1
        self.told["first", r.row] += first

    def on_progress(self, r: Req, tokens: int) -> None:
        self.told["progress", r.row] += tokens

    def on_prefill_done(self, r: Req) -> None:
        self.told["prefilled", r.row] += 1

    def on_preempt(self, r: Req) -> None:
        self.told["preempted", r.row] += 1

    def on_remove(self, r: Req, reason: str) -> None:
        self.told["removed", r.row] += 1
