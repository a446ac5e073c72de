"""The baselines of the ProServe study once more, from the papers' prose, for the reference: by deadline, by
class, and by shares of service."""

from __future__ import annotations

from collections.abc import Callable

from .model import INF, Oracle, Req
from .oracles import Keyed
from .reference import Reference


def due(r: Req, from_first: bool = False) -> float:
    """When its next token is due; the first is token 0."""
    if r.delivered and from_first:
        assert r.first_token is not None
        return r.first_token + r.delivered * r.tpot_slo
    return r.arrival + r.ttft_slo + (r.delivered * r.tpot_slo if r.delivered else 0.0)


class LightestClass(Keyed):
    """Sarathi with classes: the least weight yields, of these the latest arrival."""

    def victim(self, r: Req) -> tuple[bool, float]:
        return False, r.weight


class FairBatching(Oracle):
    """Urgent decodes, prefills, other decodes; as long as max(least slack, least TPOT SLO) of the decodes."""

    budget = horizon = INF

    def prepare(self, sim: Reference, now: float) -> None:
        decodes = [r for r in sim.running if r.decoding]
        tpot = min((r.tpot_slo for r in decodes), default=INF)
        self.budget = max(min((due(r) - now for r in decodes), default=INF), tpot)
        self.horizon = self.budget + tpot

    def limits(self, sim: Reference) -> tuple[float, float, float]:
        return INF, INF, max(self.budget - sim.machine.step_s([]), 0.0)

    def key(self, r: Req, now: float) -> tuple[int, float]:
        decodes, slack = r.decoding and r.where == "running", due(r) - now
        return (1 if not decodes else 0 if slack < self.horizon else 2), slack


class VTC(Oracle):
    """The least counter is served: who goes when is found by serving the queue on paper."""

    def __init__(self, client: str, input_price: float, output_price: float) -> None:
        self.by_tenant, self.price, self.output_price = client == "tenant", input_price, output_price
        self.counter: dict[int, float] = {}
        self.queue: list[Req] = []
        self.charged: dict[Req, int] = {}
        self.turn: dict[Req, float] = {}
        self.gone: Req | None = None

    def client(self, r: Req) -> int:
        return r.tenant if self.by_tenant else r.class_id

    def of(self, r: Req) -> float:
        return self.counter.setdefault(self.client(r), 0.0)

    def prepare(self, sim: Reference, now: float) -> None:
        self.turn = {r: self.of(r) for r in sim.running}
        counter, left = dict(self.counter), sorted(self.queue, key=lambda r: (r.arrival, r.row))
        while left:
            heads = {self.client(r): r for r in reversed(left)}
            who, r = min(heads.items(), key=lambda item: (counter[item[0]], item[1].arrival, item[1].row))
            self.turn[r] = counter[who]
            counter[who] += 0.0 if r.started is not None else self.price * r.prompt / r.weight
            left.remove(r)

    def key(self, r: Req, now: float) -> tuple[int, float]:
        return 0, self.turn[r]

    def leave_queue(self, r: Req) -> None:
        self.queue.remove(r)
        self.gone = r

    def on_arrival(self, r: Req, now: float) -> None:
        before = self.of(r)
        if all(self.client(other) != self.client(r) for other in self.queue):
            least = min((self.of(other) for other in self.queue), default=self.of(self.gone) if self.gone else 0.0)
            self.counter[self.client(r)] = max(before, least)
        self.queue.append(r)

    def on_admit(self, r: Req, first: bool, tier: int, now: float) -> None:
        self.leave_queue(r)
        if first:
            self.counter[self.client(r)] += self.price * r.prompt / r.weight

    def on_preempt(self, r: Req) -> None:
        self.queue.append(r)

    def on_remove(self, r: Req, reason: str) -> None:
        if r in self.queue:
            self.leave_queue(r)
        self.charge(r)

    def after_step(self, planned: list[Req], now: float) -> None:
        for r in planned:
            self.charge(r)

    def charge(self, r: Req) -> None:
        tokens = r.delivered - self.charged.get(r, 0)
        self.counter[self.client(r)] += self.output_price * tokens / r.weight
        self.charged[r] = r.delivered


def edf(due_from: str, displaces: str) -> Oracle:
    return Keyed(lambda r: (0, due(r, due_from == "first_token")), preemptive=True)


SHARES: dict[str, Callable[..., Oracle]] = {
    "prefill_first": lambda decodes: Oracle(),
    "sarathi_priority": lambda begun: LightestClass(lambda r: (0, -r.weight)),
    "edf": edf,
    "fairbatching": FairBatching,
    "vtc": VTC,
}
"""By policy, from its parameters as a user writes them."""
