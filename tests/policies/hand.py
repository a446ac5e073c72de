"""A policy's hooks on a small table, called by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from tailrace import hooks, params
from tailrace.config import engine
from tailrace.latency import Latency, PiecewiseParams
from tailrace.registry import POLICIES
from tailrace.sim.run import Instance
from tailrace.table import DECODE, PREFILL, WAITING, RequestTable, allocate
from tailrace.workloads.workload import Workload


def instance(name: str, workload: Workload, latency: Latency, config: dict[str, Any], **given: Any) -> Instance:
    """A small engine (32 tokens a step, 8 requests at once) before its first step."""
    policy = POLICIES.get(name)
    size = {"token_budget": 32, "max_seqs": 8, "kv_tokens": 4096, "block_tokens": 4, **config}
    return Instance(workload, policy, params.build(policy.Params, given, name), engine("vllm_v1", size), latency)


class Hand:
    """``n`` waiting requests that arrived at 0, 1, 2, … with prompts of ``prompt`` tokens."""

    cost = PiecewiseParams()

    def __init__(self, name: str, n: int, prompt: int | list[int] = 10, **given: Any) -> None:
        self.policy = POLICIES.get(name)
        self.params = params.build(self.policy.Params, given, name)
        self.records, self.table = allocate(RequestTable, n)
        self.records["arrival_s"], self.records["seq"] = np.arange(n), np.arange(n)
        self.records["prompt_tokens"], self.records["predicted_output_tokens"] = prompt, 10
        self.records["phase"] = WAITING
        self.state, self.scratch = self.policy.make_state(self.params, n), self.policy.make_scratch(self.params, n)
        for row in range(n):
            self.records["waiting_since_s"][row] = row
            hooks.on_arrival(self.table, row, float(row), self.state, self.params)

    def tier_and_key(self, row: int, now: float = 0.0) -> tuple[int, float]:
        found = hooks.key(self.table, row, now, self.state, self.scratch, self.cost, self.params)
        return int(found[0]), float(found[1])

    def key(self, row: int, now: float = 0.0) -> float:
        return self.tier_and_key(row, now)[1]

    def victim(self, row: int) -> tuple[bool, float]:
        protected, cost = hooks.victim(self.table, row, 0.0, self.state, self.scratch, self.cost, self.params)
        return bool(protected), float(cost)

    def may_preempt(self, row: int) -> bool:
        args = (self.table, 0, row, 0.0, self.state, self.scratch, self.cost, self.params)
        return bool(hooks.may_preempt(*args))

    def admit(self, row: int, now: float = 0.0, cached: int = 0) -> None:
        self.records["phase"][row] = PREFILL
        self.records["cached_tokens"][row] = 0
        hooks.on_admit(self.table, row, True, 0, now, self.state, self.params)
        self.records["cached_tokens"][row] = cached

    def progress(self, row: int, attained: int, now: float = 0.0) -> None:
        """A step ends, up to which ``attained`` tokens of it were computed."""
        tokens = attained - int(self.records["attained_tokens"][row])
        self.records["attained_tokens"][row] = attained
        if attained >= self.records["prompt_tokens"][row]:
            self.records["phase"][row] = DECODE
        hooks.on_progress(self.table, row, tokens, now, self.state, self.params)

    def preempt(self, row: int, now: float = 0.0) -> None:
        self.records["phase"][row], self.records["waiting_since_s"][row] = WAITING, now
        hooks.on_preempt(self.table, row, now, self.state, self.params)

    def finish(self, row: int, now: float) -> None:
        hooks.on_remove(self.table, row, hooks.FINISHED, now, self.state, self.params)

    def step(self, rows: list[int], now: float = 0.0) -> None:
        planned = np.array(rows, dtype=np.int64)
        hooks.after_step(self.table, planned, 1.0, now, self.state, self.params)
