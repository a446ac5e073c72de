"""Run a workload through one instance: `simulate` builds, advances and gathers."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from .. import metrics
from .._jit import CompileError, sources_of
from ..config import EngineConfig
from ..errors import UserError
from ..hooks import Policy
from ..latency import Latency
from ..params import show
from ..rules import EngineRules, merge
from ..schedule import engine as eng
from ..schedule.each import each
from ..workloads.workload import Workload
from . import instance, memory, record
from . import paths as of_policy
from .alone import alone_s

__all__ = ["NO_END", "Instance", "Result", "settle", "simulate"]

NO_END: Final = 1 << 60
SLICE: Final = 1_000_000
"""Steps between looks at the keyboard, and at whether anything gets done."""
LIVELOCK: Final = "under these rules requests preempt each other for ever; give more kv_tokens or another phase_order"


@dataclass(frozen=True, repr=False)
class Result:
    """What one run yields."""

    meta: dict[str, Any]
    """JSON-able: workload, policy, params, predictions, engine, latency, effective rules."""
    requests: metrics.Requests
    counters: dict[str, float]
    timeline: dict[str, np.ndarray[Any, Any]]
    """clock_s, waiting, running, used_blocks: samples over the run."""
    tallies: dict[str, float] = field(default_factory=dict)
    """What the policy counted of its own doings (`Policy.tallies`)."""
    paths: dict[str, of_policy.Path] = field(default_factory=dict)
    """What it kept over time, with every point it has (`Policy.paths`)."""

    def __repr__(self) -> str:
        return f"<Result of {self.meta['policy']} over {len(self.requests.arrival_s)} requests; see .summary()>"

    def summary(self) -> dict[str, Any]:
        """The design's result object for this run."""
        r, c = self.requests, self.counters
        span, token = r.span_s, self.meta["workload"].get("first_token_weight")
        done = r.reason == metrics.FINISHED
        output = int(r.generated_tokens.sum())
        total = output + int(r.prompt_tokens[done].sum())
        budget = self.meta["engine"]["token_budget"]
        return {
            **{key: self.meta[key] for key in ("policy", "params", "predictions", "rules")},
            "load_state": metrics.load_state(r),
            "queueing": metrics.queueing(r),
            "starvation": metrics.starvation(r),
            **metrics.summarise(r, None, token),
            "recompute_tax": c["recomputed_tokens"] / c["step_tokens"] if c["step_tokens"] else None,
            "throughput": {
                "output_tokens_per_s": output / span if span > 0 else None,
                "total_tokens_per_s": total / span if span > 0 else None,
            },
            "engine": {
                "steps": int(c["steps"]),
                "request_steps": int(c["request_steps"]),
                "makespan_s": span if span >= 0 else None,
                "budget_utilisation": c["step_tokens"] / (c["steps"] * budget) if c["steps"] else None,
                "busy_share": c["busy_s"] / span if span > 0 else None,
                "over_limit_steps": int(c["over_limit_steps"]),
                "pressure_preemptions": int(c["pressure"]),
                "escapes": int(c["escapes"]),
                "displaced": int(c["displaced"]),
                "displaced_in_vain": int(c["in_vain"]),
                "cached_tokens": int(c["cached_tokens"]),
                "most_waiting": int(c["most_waiting"]),
                "most_kv_tokens": int(c["most_blocks"]) * self.meta["rules"]["block_tokens"],
            },
            **memory.swap_summary(c, self.meta["engine"], self.meta["rules"]["block_tokens"]),
            **({"tallies": self.tallies} if self.tallies else {}),
            **of_policy.summary(self.paths),
            **self._by(token),
        }

    def _by(self, first_token_weight: float | None) -> dict[str, Any]:
        """The same by class, by true and predicted length class, and by tenant."""
        r, out = self.requests, {}
        lengths = ("short", "long")
        for name, column, labels in (
            ("by_class", r.class_id, self.meta["class_names"]),
            ("by_true_class", r.true_class, lengths),
            ("by_predicted_class", r.predicted_class, lengths),
            ("by_tenant", r.tenant, self.meta["tenant_names"]),
        ):
            groups = {labels[int(i)]: column == i for i in np.unique(column)}
            out[name] = {label: metrics.summarise(r, group, first_token_weight) for label, group in groups.items()}
        return out


def settle(
    policy: type[Policy],
    params: Any,
    config: EngineConfig,
    latency: Latency,
    wanted: dict[str, Any] | None = None,
) -> tuple[EngineRules, int]:
    """``(effective rules, KV tokens)`` of a run.

    ``wanted``: the rules a host honours of those the policy insists on; all by default.
    Raises UserError if the parts do not go together.
    """
    rules = merge(config.rules, policy.rules(params) if wanted is None else wanted, policy.name)
    if rules.victim == "hook" and not hasattr(policy, "victim"):
        raise UserError(f"policy {policy.name} has no victim hook: use the engine rule victim=tail")
    if config.token_budget <= rules.min_last_chunk:
        raise UserError(f"policy {policy.name}: token_budget must be above its min_last_chunk={rules.min_last_chunk}")
    kv_tokens = config.kv_tokens or latency.kv_tokens
    if not kv_tokens:
        raise UserError(f"engine {config.name}: latency {latency.name!r} names no device; give kv_tokens=…")
    if kv_tokens < rules.block_tokens:
        raise UserError(f"engine {config.name}: kv_tokens={kv_tokens} is less than one block")
    if rules.evict == "swap":
        memory.block_bytes(rules, config, latency)  # refused here rather than when the engine is built
        memory.layers(rules, config, latency)
    return rules, kv_tokens


class Instance:
    """An engine filled with a workload, ready to `advance`; tests look into it."""

    def __init__(
        self,
        workload: Workload,
        policy: type[Policy],
        params: Any,
        config: EngineConfig,
        latency: Latency,
        wanted: dict[str, Any] | None = None,
    ) -> None:
        self.policy, self.params, self.workload = policy, params, workload
        self.config, self.latency = config, latency
        self.rules, self.kv_tokens = settle(policy, params, config, latency, wanted)
        limits = eng.Limits(config.token_budget, config.max_seqs, self.kv_tokens)
        rows = max(len(workload), 1)
        blocks = memory.blocks(workload, self.rules, limits, config, latency)
        self.engine, self.buffers = eng.build(rows, limits, self.rules, policy, params, latency.cost, blocks)
        self._classes = (type(params), type(latency.cost), type(self.engine.blocks))
        self._fill(workload)

    def _fill(self, w: Workload) -> None:
        table, rows = self.buffers.table, self.buffers.rows
        n = len(w)
        self.buffers.core["rows"] = n
        for name in ("arrival_s", "prompt_tokens", "predicted_output_tokens", "predicted_class", "class_id"):
            table[name][:n] = getattr(w, name)
        for name in ("tenant", "priority", "ttft_slo_s", "tpot_slo_s"):
            table[name][:n] = getattr(w, name)
        table["seq"] = np.arange(len(table))
        if n:
            table["weight"][:n] = np.asarray(w.class_weights, dtype=float)[w.class_id]
        for name in ("started_s", "first_token_s", "last_token_s"):
            table[name] = np.nan
        rows["output_tokens"][:n] = w.output_tokens
        keys, group = _groups(w)
        rows["group"][:n] = group
        self.groups = keys
        due = np.zeros(len(table), dtype=bool)
        due[:n] = np.isfinite(w.ttft_slo_s) & np.isfinite(w.tpot_slo_s)
        self.recorder, self.records = record.build(
            len(table), max(keys, 1), due, self.config.step_jitter, self.config.jitter_seed
        )

    def advance(self, until_s: float = math.inf, steps: int = NO_END) -> int:
        """Run; see `instance.advance`."""
        call = instance.advance.on(*self._classes)
        return int(call(self.engine, self.recorder, float(until_s), int(steps)))  # other types compile anew

    def run(self) -> None:
        """Advance until every request has left. Raises as `simulate`."""
        ended, done = instance.PAUSED, -1
        try:
            if sources_of(type(self.params)):  # a mistake of its author's shows in a second, not in fifteen
                each.compile(self._classes, self.engine, 0, 0.0)
            while ended == instance.PAUSED:  # compiled code hears no Ctrl-C
                ended = self.advance(steps=SLICE)
                before, done = done, self.progress()
                if ended == instance.PAUSED and done == before:
                    raise UserError(f"policy {self.policy.name}: {LIVELOCK}")
        except CompileError as error:
            hint = "NUMBA_DISABLE_JIT=1 runs it as plain Python"
            raise UserError(f"policy {self.policy.name} does not compile: {error} ({hint})") from None
        if ended == instance.STUCK:
            waiting = np.flatnonzero(self.buffers.table["phase"] == 1)[:1]
            raise RuntimeError(f"policy {self.policy.name}: nothing can run, and request {waiting} waits for ever")

    def plan(self) -> tuple[list[tuple[int, int]], list[int]]:
        """The next step, decided and not applied: ``[(row, tokens)]`` and the evicted rows."""
        e = self.engine
        call = instance.plan_only.on(*self._classes)
        slot = int(e.core.first_slot[0] + e.core.in_flight[0]) % len(e.slots.items)  # not one under way
        count, first = int(call(e, slot, float(self.buffers.core["clock_s"][0]))), slot * len(e.seats.run)
        items = [(int(e.items.row[i]), int(e.items.tokens[i])) for i in range(first, first + count)]
        return items, [int(e.seats.evicted[i]) for i in range(int(e.plan.evicted[0]))]

    def progress(self) -> int:
        """Tokens computed once and delivered so far: it grows, or nothing useful happens."""
        table = self.buffers.table
        return int(table["attained_tokens"].sum() + table["generated_tokens"].sum())

    def abort(self, row: int) -> bool:
        """Abort a live request between steps."""
        call = instance.abort.on(*self._classes)
        return bool(call(self.engine, self.recorder, row))

    def result(self) -> Result:
        """Gather what has been recorded so far."""
        n, table, out = len(self.workload), self.buffers.table, self.records.out
        names = {f.name for f in dataclasses.fields(metrics.Requests)}
        columns_ = {name: table[name][:n].copy() for name in table.dtype.names or () if name in names}
        columns_ |= {name: out[name][:n].copy() for name in out.dtype.names or () if name in names}
        w, on_time = self.workload, self.recorder.on_time_tokens
        requests = metrics.Requests(
            **columns_,
            on_time_tokens=on_time[:n].copy() if len(on_time) else np.full(n, -1),
            output_tokens=np.array(w.output_tokens),
            session=w.session,
            alone_s=alone_s(w.prompt_tokens, w.output_tokens, self.config.token_budget, self.rules, self.latency),
            true_class=np.array(w.true_class),
            group=self.buffers.rows["group"][:n].copy(),
            gaps=self.recorder.gaps.copy(),
            gap_values_s=record.gap_values(),
        )
        counters = {name: self.records.counters[name][0].item() for name in self.records.counters.dtype.names or ()}
        counters |= memory.swap_counts(self.engine.blocks)
        used = int(counters["samples"])
        timeline = {name: self.records.timeline[name][:used].copy() for name in self.records.timeline.dtype.names or ()}
        state = self.engine.state
        tallies = {**self.policy.tallies(state), **self.policy.findings(self.engine.scratch)}
        paths = of_policy.gather(self.policy, state)
        return Result(self._meta(), requests, counters, timeline, tallies, paths)

    def _meta(self) -> dict[str, Any]:
        w = self.workload
        return {
            "workload": describe(w),
            "policy": self.policy.name,
            "params": show(self.params),
            "predictions": w.predictions,
            "engine": {
                "name": self.config.name,
                "token_budget": self.config.token_budget,
                "max_seqs": self.config.max_seqs,
                "kv_tokens": self.kv_tokens,
                "latency": self.latency.show(),
                **memory.swap_settings(self.rules, self.config, self.latency),
                **({"step_jitter": self.config.step_jitter} if self.config.step_jitter else {}),
            },
            "rules": dataclasses.asdict(self.rules),
            "class_names": list(w.class_names),
            "tenant_names": list(w.tenant_names),
        }


def describe(w: Workload) -> dict[str, Any]:
    """A workload's JSON object."""
    rate = w.rate_rps
    return {
        "name": w.name,
        "requests": len(w),
        "span_s": w.span_s,
        "rate_rps": rate if math.isfinite(rate) else None,
        "prompt_tokens_mean": float(w.prompt_tokens.mean()) if len(w) else None,
        "output_tokens_mean": float(w.output_tokens.mean()) if len(w) else None,
        "digest": w.digest(),
        **w.description,
    }


def _groups(w: Workload) -> tuple[int, np.ndarray[Any, Any]]:
    """Requests alike in class, length classes and tenant share a gap histogram.

    With more than 4,096 such groups tenants are left out: their gaps are then pooled.
    """
    if not len(w):
        return 0, np.zeros(0, dtype=np.int64)
    tenants = w.tenant if len(w.tenant_names) * len(w.class_names) <= 1024 else np.zeros_like(w.tenant)
    key = ((tenants * len(w.class_names) + w.class_id) * 2 + w.true_class) * 2 + w.predicted_class
    keys, group = np.unique(key, return_inverse=True)
    return len(keys), group


def simulate(workload: Workload, policy: type[Policy], params: Any, config: EngineConfig, latency: Latency) -> Result:
    """Run ``workload`` to the end under ``policy``.

    Raises UserError when policy, engine and latency do not go together, RuntimeError if
    the engine gets stuck (a fault of a policy or of tailrace, with the row that waits).
    """
    run = Instance(workload, policy, params, config, latency)
    run.run()
    return run.result()
