"""A policy host with fake requests."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from tailrace import latency, params
from tailrace.latency import step_shape
from tailrace.registry import POLICIES
from tailrace.rules import EngineRules, merge
from tailrace.schedule.engine import Limits
from tailrace.table import SHORT
from tailrace.vllm_plugin.honour import settle
from tailrace.vllm_plugin.host import Decision, PolicyHost
from tailrace.vllm_plugin.learning import FIRST, StepTimes


def fake(name: str) -> Any:
    return SimpleNamespace(request_id=name, num_computed_tokens=0)


FREE_STEPS = "piecewise:constant_s=0,per_token_s=0"


def make_host(
    name: str,
    capacity: int = 64,
    blocks: int = 1000,
    seqs: int = 8,
    latency_text: str = FREE_STEPS,
    times: StepTimes | None = None,
    **given: Any,
) -> PolicyHost:
    cls = POLICIES.get(name)
    values = params.build(cls.Params, given, name)
    honoured, _ = settle(cls, values)
    cost = latency.build(latency_text).cost
    rules = merge(EngineRules(seconds_as="tokens"), honoured, name)
    return PolicyHost(cls, values, cost, Limits(256, seqs, blocks * 16), rules, capacity, times=times)


def learner(constant_s: float, per_token_s: float) -> StepTimes:
    """One to which a step more will be the last of those before the first fit: all took so long."""
    times = StepTimes()
    for i in range(FIRST - 1):
        shape = step_shape([(1 + i % 50, 0)] if i % 2 else [], [(1, 10)] * (1 + i % 7))
        times.add(list(shape), constant_s + per_token_s * shape.tokens)
    return times


def arrive(host: PolicyHost, name: str, arrival_s: float, length: int = SHORT, **more: float) -> None:
    given = {"arrival_s": arrival_s, "prompt_tokens": 10, "predicted_class": length, **more}
    host.arrive(fake(name), given, 100, arrival_s)


def names(requests: list[Any] | None) -> list[str]:
    return [request.request_id for request in requests or ()]


def decide(host: PolicyHost, running: Iterable[str], free: int, now: float) -> Decision:
    return host.decide([host.requests[host.rows[name]] for name in running], free, now)


def waiting(host: PolicyHost, now: float, running: Iterable[str] = (), free: int = 1000) -> list[str]:
    """All of the waiting, in order."""
    found = decide(host, running, free, now).front
    while page := host.more(now):
        found += page
    return names(found)
