"""Fair shares of service between clients: the weighted Virtual Token Counter.

Source: VTC (Sheng et al., arXiv 2401.00588) Algorithm 2, with weights; a baseline of ProServe (arXiv
2512.12928) §5. Each client has a counter of the service it got, in tokens by price and weight. The
waiting are served as if each went to the client with the least counter at that moment: within one step's
plan a client is charged in advance for those of its requests that go before.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Final, NamedTuple

import numpy as np

from .. import hooks
from .._jit import kernel
from ..hooks import Policy, policy
from ..params import P
from ..table import DONE, F8, FREE, I8, Columns, allocate

CLASS: Final = 0
TENANT: Final = 1
NOBODY: Final = -1

LEAST_CLIENTS: Final = 1024


class VTCParams(NamedTuple):
    """Parameters of vtc."""

    client: Annotated[int, P("whose service is counted together", choices=("class", "tenant"))] = CLASS
    input_price: Annotated[float, P("charge of a prompt token, at the first admission", low=0.0)] = 1.0
    output_price: Annotated[float, P("charge of an output token, when it is delivered", low=0.0)] = 2.0


class Place(Columns):
    """One row a request. The waiting are a list in order of arrival."""

    before: I8
    """The waiting row that came just before, or -1."""
    after: I8
    waits: I8
    charged_tokens: I8
    """Output tokens that its client was charged for."""


class Client(Columns):
    """One row a client."""

    counter: F8
    """Service: prices · tokens / weight."""
    waiting: I8
    """Requests that wait."""


class Ends(Columns):
    """Scalars: one row."""

    first: I8
    """First waiting row, or -1."""
    last: I8
    left: I8
    """Client of the request that was the last to stop waiting, or -1."""
    lifts: I8


class VTCState(NamedTuple):
    """Kept from step to step."""

    place: Any
    client: Any
    ends: Any


class Turn(Columns):
    """One row a request."""

    counter: F8
    """Its client's counter when its turn comes."""


class Ahead(Columns):
    """One row a client."""

    counter: F8
    """With the prompts of those who go before."""


class VTCScratch(NamedTuple):
    """Computed anew each step."""

    turn: Any
    ahead: Any


@kernel
def _client(table: Any, row: int, state: Any, params: Any) -> int:
    """Index of the row's client. Names beyond the number of counters share theirs."""
    number = table.class_id[row] if params.client == CLASS else table.tenant[row]
    return int(number % state.client.counter.shape[0])


@kernel
def _link(state: Any, before: int, after: int) -> None:
    """Make them neighbours among the waiting; -1 is either end."""
    if before == NOBODY:
        state.ends.first[0] = after
    else:
        state.place.after[before] = after
    if after == NOBODY:
        state.ends.last[0] = before
    else:
        state.place.before[after] = before


@kernel
def _enqueue(table: Any, row: int, state: Any, params: Any) -> None:
    """The row starts to wait: behind all that arrived before it."""
    before, after = state.ends.last[0], NOBODY
    while before != NOBODY and (
        table.arrival_s[row] < table.arrival_s[before]
        or (table.arrival_s[row] == table.arrival_s[before] and table.seq[row] < table.seq[before])
    ):
        before, after = state.place.before[before], before
    _link(state, before, row)
    _link(state, row, after)
    state.place.waits[row] = 1
    state.client.waiting[_client(table, row, state, params)] += 1


@kernel
def _dequeue(table: Any, row: int, state: Any, params: Any) -> None:
    """The row waits no longer."""
    client = _client(table, row, state, params)
    _link(state, state.place.before[row], state.place.after[row])
    state.place.waits[row] = 0
    state.client.waiting[client] -= 1
    state.ends.left[0] = client


@kernel
def _lift(table: Any, client: int, state: Any, params: Any) -> None:
    """Nobody saves up service while idle: to the least counter of those who wait, or if nobody does, to that
    of the client who was the last to."""
    counter, row, least = state.client.counter, state.ends.first[0], math.inf
    while row != NOBODY:
        least = min(least, counter[_client(table, row, state, params)])
        row = state.place.after[row]
    if math.isinf(least):
        least = counter[state.ends.left[0]] if state.ends.left[0] != NOBODY else 0.0
    if counter[client] < least:
        counter[client] = least
        state.ends.lifts[0] += 1


@kernel
def _charge_output(table: Any, row: int, state: Any, params: Any) -> None:
    """Charge what was delivered of it since the last time."""
    tokens = table.generated_tokens[row] - state.place.charged_tokens[row]
    charge = params.output_price * tokens / table.weight[row]
    state.client.counter[_client(table, row, state, params)] += charge
    state.place.charged_tokens[row] += tokens


@policy("vtc", source="VTC (arXiv 2401.00588) Algorithm 2, weighted; ProServe (arXiv 2512.12928) §5")
class VTC(Policy):
    """Weighted Virtual Token Counter: who waits goes by the least counter of its client, then by arrival.

    A client is a class, or a tenant (which only traces have: in vLLM all are one). It is charged
    ``input_price`` · prompt / weight when a request first starts and ``output_price`` / weight for each
    output token; the weight is that of the request's class. One with nobody waiting to whom a request
    comes is lifted to the least counter of those with somebody. Nobody is displaced for a waiting
    request; one preempted for want of KV waits again and is not charged twice. Knows no SLOs.
    """

    Params = VTCParams
    keys = hooks.EVERY_STEP  # counters change with every token of anybody

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        return {"order_scope": "waiting", "victim": "tail"}

    @staticmethod
    def make_state(params: Any, capacity: int) -> VTCState:
        records, ends = allocate(Ends, 1)
        for name in ("first", "last", "left"):
            records[name] = NOBODY
        return VTCState(allocate(Place, capacity)[1], allocate(Client, max(capacity, LEAST_CLIENTS))[1], ends)

    @staticmethod
    def make_scratch(params: Any, capacity: int) -> VTCScratch:
        return VTCScratch(allocate(Turn, capacity)[1], allocate(Ahead, max(capacity, LEAST_CLIENTS))[1])

    @staticmethod
    def tallies(state: Any) -> dict[str, float]:
        return {"counter_lifts": int(state.ends.lifts[0]), "most_service_tokens": float(np.max(state.client.counter))}

    @staticmethod
    def prepare(table: Any, live: Any, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> None:
        turn, ahead = scratch.turn.counter, scratch.ahead.counter
        for row in live:
            client = _client(table, row, state, params)
            turn[row] = ahead[client] = state.client.counter[client]
        row = state.ends.first[0]
        while row != NOBODY:
            client = _client(table, row, state, params)
            turn[row] = ahead[client]
            if math.isnan(table.started_s[row]):
                ahead[client] += params.input_price * table.prompt_tokens[row] / table.weight[row]
            row = state.place.after[row]

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        return 0, scratch.turn.counter[row]

    @staticmethod
    def on_arrival(table: Any, row: int, now: float, state: Any, params: Any) -> None:
        state.place.charged_tokens[row] = 0
        client = _client(table, row, state, params)
        if state.client.waiting[client] == 0:
            _lift(table, client, state, params)
        _enqueue(table, row, state, params)

    @staticmethod
    def on_admit(table: Any, row: int, first: bool, tier: int, now: float, state: Any, params: Any) -> None:
        _dequeue(table, row, state, params)
        if first:
            charge = params.input_price * table.prompt_tokens[row] / table.weight[row]
            state.client.counter[_client(table, row, state, params)] += charge

    @staticmethod
    def on_preempt(table: Any, row: int, now: float, state: Any, params: Any) -> None:
        _enqueue(table, row, state, params)

    @staticmethod
    def on_remove(table: Any, row: int, reason: int, now: float, state: Any, params: Any) -> None:
        if state.place.waits[row]:
            _dequeue(table, row, state, params)
        _charge_output(table, row, state, params)

    @staticmethod
    def after_step(table: Any, planned: Any, step_s: float, now: float, state: Any, params: Any) -> None:
        for row in planned:
            if table.phase[row] != DONE and table.phase[row] != FREE:
                _charge_output(table, row, state, params)
