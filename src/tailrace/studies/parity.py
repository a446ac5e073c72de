"""Our engine against vLLM's own scheduler, step by step, over the same arrivals.

Every step takes one second on both sides, so a workload's seconds count steps; for policies that limit
a step's seconds it takes what their latency model says, about one. Each step's tokens a request, their order,
admissions, preemptions and the running list must be equal.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from .. import config, latency, params, spec, workloads
from ..errors import UserError, nearest
from ..registry import POLICIES
from ..rules import EngineRules
from ..sim.run import Instance
from ..table import DECODE, PREFILL, WAITING
from ..vllm_plugin import TESTED
from ..vllm_plugin.honour import settle
from ..vllm_plugin.offline import OfflineScheduler, Settings, Step, digits, version
from ..workloads.prefix import engine_ids
from ..workloads.workload import Workload

__all__ = ["CASES", "POLICIES_OF_VLLM", "WORKLOAD", "Outcome", "compare", "plan", "registered"]

WORKLOAD: Final = (
    "poisson:rate_rps=0.13,requests={requests},prompt_median=60,prompt_sigma=1.2,prompt_cap=450,"
    "output_median=55,output_sigma=0.8,output_cap=200,prefix_groups=5,prefix_tokens=48"
)
"""Near saturation under the base case, with preemptions; arrivals in steps."""

LATENCY: Final = "piecewise:constant_s=1,per_token_s=0"
"""A second a step. The plugin is told of it too: boosts ask the latency model how long work takes."""

TIMED: Final = (
    "profiled:constant_s=0.4,prefill_sq_s=5e-6,prefill_cross_s=5e-6,prefill_token_s=5e-3,prefill_kv_s=2e-4,"
    "decode_kv_s=2e-4,decode_seq_s=0.03"
)
"""For policies that limit a step's seconds: every coefficient counts, and near saturation a step takes a second."""

POLICIES_OF_VLLM: Final = {"vllm_fcfs": "fcfs", "vllm_priority": "priority"}
"""Our name of each stock policy, and vLLM's."""

CASES: Final[dict[str, Settings]] = {
    "base": Settings(),
    "async": Settings(steps_in_flight=2),
    "first chunk gate": Settings(reserve_full_isl=False),
    "watermark": Settings(watermark=0.01),
    "watermark 5 % + first chunk gate": Settings(watermark=0.05, reserve_full_isl=False),
    "blocks of 8": Settings(block_tokens=8, blocks=240),
    "blocks of 32": Settings(block_tokens=32, blocks=60),
    "small budget": Settings(token_budget=48, max_seqs=8),
    "few sequences": Settings(max_seqs=4, token_budget=2048),
    "fewer active than slots": Settings(active_seqs=6),
    "chunk cap": Settings(chunk_cap=24),
    "adaptive chunk cap": Settings(chunk_cap=24, chunk_cap_adaptive=True),
    "prefix cache": Settings(prefix_cache=True),
    "prefix cache + async": Settings(prefix_cache=True, steps_in_flight=2),
    "prefix cache + little memory": Settings(prefix_cache=True, blocks=60),
    "prefix cache + little memory + aborts + async": Settings(
        prefix_cache=True, blocks=60, aborts=True, steps_in_flight=2
    ),
    "little memory": Settings(blocks=60),
    "little memory + async": Settings(blocks=60, steps_in_flight=2),
    "little memory + aborts": Settings(blocks=60, aborts=True),
    "little memory + aborts + async": Settings(blocks=60, aborts=True, steps_in_flight=2),
}
"""One change at a time from the base case, then the ones that preempt most."""

CLASSES: Final = {"gold": (4.0, 8.0, 2.0), "basic": (1.0, 64.0, 8.0)}
"""Classes that requests without any are of, at random: weight, TTFT and TPOT SLO in steps."""

ABORT_EVERY: Final = 23
"""Steps between two clients that give up, in the cases that have such."""

EVERY_CASE: Final = ("vllm_fcfs", "vllm_priority", "qba", "srpt")
"""Policies compared in every case; the others are in the main ones."""
OTHERS: Final = ("fcfs", "psf", "aa", "sjf", "priority")
MAIN_CASES: Final = ("base", "async", "prefix cache")
LATER: Final = (
    *("gamma_boost", "dist_boost", "uniboost_base", "memguard:k_tokens=16"),
    *("uniboost:k_tokens=16,min_samples=20,gamma_max_per_s=1", "uniboost_rekeyed:min_samples=20,gamma_max_per_s=1"),
    *("spf", "ltr:idle_steps=50", "trail", "las", "mlfq:quantum_tokens=32,starve_s=100"),
    *("sarathi_priority", "edf:displaces=place", "fairbatching", "vtc", "slide"),
)
"""Compared in the main cases and where memory is short, so that they displace for it. Parameters that
bring milestones, fits of γ, promotions and quanta into runs of these lengths."""


def plan(vllm: str) -> list[tuple[str, str]]:
    """``(policy, case)`` of all that `make parity` compares on a version: on older ones, the base case."""

    def wanted(policy: str, case: str) -> bool:
        if vllm in TESTED[1:]:
            return case == "base"
        if CASES[case].prefix_cache and limits_seconds(registered(policy)[0]):
            return False  # what a step itself changes in the cache is not foreseen when its seconds become tokens
        return policy in EVERY_CASE or case in MAIN_CASES or (policy in LATER and case == "little memory")

    return [(policy, case) for case in CASES for policy in (*EVERY_CASE, *OTHERS, *LATER) if wanted(policy, case)]


def registered(policy: str) -> tuple[str, dict[str, str]]:
    """``(name, parameters)`` of a policy as it is given here: ``[plugin:]NAME[:k=v,…]``. Raises UserError."""
    return spec.parse(policy.removeprefix("plugin:"))


@dataclass(frozen=True)
class Outcome:
    """One policy in one case."""

    vllm: str
    policy: str
    case: str
    steps: int
    preemptions: int
    mismatched_steps: int
    first_mismatch: dict[str, Any] | None


def _workload(text: str, priorities: bool) -> Workload:
    """The arrivals, distinct, with three priorities and the `CLASSES` at random unless the workload has its own."""
    w = workloads.load(text)
    if len(np.unique(w.arrival_s)) != len(w):
        raise UserError(f"workload {text!r}: parity needs distinct arrival times")
    if priorities and not w.priority.any():
        drawn = np.random.default_rng(0).integers(0, 3, len(w))
        w = dataclasses.replace(w, priority=drawn)
    if w.class_names == ("default",) and not np.isfinite([w.ttft_slo_s, w.tpot_slo_s]).any():
        w = _classed(w)
    return workloads.apply(w, "oracle")


def _classed(w: Workload) -> Workload:
    weights, ttft_s, tpot_s = np.array([*CLASSES.values()]).T
    of = np.random.default_rng(1).integers(0, len(CLASSES), len(w))
    slos = {"ttft_slo_s": ttft_s[of], "tpot_slo_s": tpot_s[of]}
    return dataclasses.replace(w, class_names=(*CLASSES,), class_weights=(*weights.tolist(),), class_id=of, **slos)


def limits_seconds(name: str) -> bool:
    """Whether a policy limits its steps; of ours that do, all mean their seconds."""
    return hasattr(POLICIES.get(name), "step_limits")


def _latency(name: str) -> str:
    """How long a policy's steps take, as it and both engines are told."""
    return TIMED if limits_seconds(name) else LATENCY


def _ours(w: Workload, policy: str, s: Settings) -> Iterator[Step]:
    """Our engine's steps."""
    name, given = registered(policy)
    rules = [field.name for field in dataclasses.fields(EngineRules) if hasattr(s, field.name)]
    size = {"token_budget": s.token_budget, "kv_tokens": (s.blocks - 1) * s.block_tokens}
    size["max_seqs"] = s.active_seqs or s.max_seqs
    given_rules = {name: getattr(s, name) for name in rules}
    engine = config.engine("vllm_v1", {**size, **given_rules, "seconds_as": "tokens"})
    cls = POLICIES.get(name)
    values = params.build(cls.Params, given, policy)
    honoured, _ = settle(cls, values)
    instance = Instance(w, cls, values, engine, latency.build(_latency(name)), honoured)
    e, width, number = instance.engine, len(instance.engine.seats.run), 0
    phases, instance.buffers.core["hold"] = instance.buffers.table["phase"], 1
    while True:
        instance.advance(steps=1)
        if int(instance.records.counters["steps"][0]) == number:
            return
        first = (number % s.steps_in_flight) * width
        number += 1
        items = range(first, first + int(e.plan.items[0]))
        running = [int(r) for r in e.seats.run[: int(instance.buffers.core["running"][0])]]
        yield Step(
            tokens={int(e.items.row[i]): int(e.items.tokens[i]) for i in items},
            admitted=tuple(sorted(int(r) for r in e.seats.admitted[: int(e.plan.admitted[0])])),
            preempted=tuple(sorted(int(r) for r in e.seats.evicted[: int(e.plan.evicted[0])])),
            running=tuple(running),
        )
        live = np.flatnonzero((phases == WAITING) | (phases == PREFILL) | (phases == DECODE)).tolist()
        if s.aborts and number % ABORT_EVERY == 0 and live:
            instance.abort(_gives_up(live, number))


def _gives_up(live: list[int], number: int) -> int:
    """The client that gives up after step ``number``: any of them, the same on both sides."""
    return live[number * 7919 % len(live)]


def _told(w: Workload, row: int) -> dict[str, Any]:
    """A request's predictions, class and SLOs, as a client would send them."""
    slos = {"ttft": float(w.ttft_slo_s[row]), "tpot": float(w.tpot_slo_s[row])}
    return {
        "tailrace_predicted_output_tokens": int(w.predicted_output_tokens[row]),
        "tailrace_predicted_class": ("short", "long")[int(w.predicted_class[row])],
        "tailrace_class": w.class_names[int(w.class_id[row])],
        **{f"tailrace_{name}_slo_ms": 1000 * slo_s for name, slo_s in slos.items() if np.isfinite(slo_s)},
    }


def _classes(w: Workload) -> dict[str, dict[str, float]]:
    """The plugin's setting for the workload's classes."""
    return {name: {"weight": float(weight)} for name, weight in zip(w.class_names, w.class_weights, strict=True)}


def _block_names(w: Workload, block_tokens: int) -> Callable[[int], list[int]]:
    """The names of a row's first prompt blocks, as the workload gives them."""
    if w.prefix is None:
        return lambda row: []
    ids, offsets = engine_ids(w.prefix, w.prompt_tokens, block_tokens)
    return lambda row: [int(i) for i in ids[offsets[row] : offsets[row + 1]]]


def _prompt(w: Workload, row: int, names: Callable[[int], list[int]], block_tokens: int) -> list[int]:
    """Token ids: two blocks are equal, with all before them, where the workload names them alike."""
    shared, prompt = names(row), []
    for i in range(-(-int(w.prompt_tokens[row]) // block_tokens)):
        block = [0, *digits(shared[i], 7)] if i < len(shared) else [1, *digits((row << 20) + i, 7)]
        prompt += (block + [2] * block_tokens)[:block_tokens]
    return prompt[: int(w.prompt_tokens[row])]


def _theirs(w: Workload, s: Settings, cost: Any) -> Iterator[Step]:
    """vLLM's steps, on the same clock: a step begins when the one before it ends, and takes what ``cost`` says."""
    scheduler, arrived, ends, number = OfflineScheduler(s), 0, [0.0], 0
    names = _block_names(w, s.block_tokens)
    while True:
        while arrived < len(w) and w.arrival_s[arrived] <= scheduler.now:
            row, arrived = arrived, arrived + 1
            arrival, priority = float(w.arrival_s[row]), int(w.priority[row])
            output = int(w.output_tokens[row])
            scheduler.add(row, _prompt(w, row, names, s.block_tokens), output, arrival, priority, _told(w, row))
        step = scheduler.schedule() if scheduler.busy else None
        if step is not None:
            assert step.shape is not None
            begins_s = ends[-1] if scheduler.under_way > 1 else scheduler.now
            ends.append(begins_s + latency.step_seconds(step.shape, cost))
            yield step
            number += 1
            if s.aborts and number % ABORT_EVERY == 0 and scheduler.live:
                scheduler.abort(_gives_up(scheduler.live, number))
        if scheduler.under_way == s.steps_in_flight or (scheduler.under_way and step is None):
            scheduler.now = ends[len(ends) - scheduler.under_way]
            scheduler.complete()
        elif step is None:
            if arrived == len(w):
                return
            scheduler.now = float(w.arrival_s[arrived])


def compare(text: str, policy: str, case: str, steps: int) -> Outcome:
    """Drive both over ``text`` for ``steps`` steps and compare. Raises UserError.

    vLLM's own policies are its stock scheduler's, unless called ``plugin:NAME``; all others
    run in it through the plugin.
    """
    if case not in CASES:
        raise UserError(f"unknown case {case!r}{nearest(case, CASES)}")
    name, given = registered(policy)
    stock = POLICIES_OF_VLLM.get(policy)
    w, timing = _workload(text, "priority" in policy), LATENCY if stock else _latency(name)
    plugin = None if stock else {"policy": name, "params": given, "latency": timing, "classes": _classes(w)}
    settings = dataclasses.replace(CASES[case], policy=stock or "fcfs", tailrace=plugin)
    count = preemptions = mismatches = 0
    first: dict[str, Any] | None = None
    for ours, theirs in zip(_ours(w, policy, settings), _theirs(w, settings, latency.build(timing).cost), strict=False):
        preemptions += len(theirs.preempted)
        wrong = _difference(ours, theirs)
        if wrong is not None:
            mismatches += 1
            first = first or {"step": count, **wrong}
        count += 1
        if count == steps:
            break
    return Outcome(version(), policy, case, count, preemptions, mismatches, first)


def _difference(ours: Step, theirs: Step) -> dict[str, Any] | None:
    for field in ("preempted", "admitted", "tokens", "running"):
        a, b = getattr(ours, field), getattr(theirs, field)
        if a != b or (field == "tokens" and list(a) != list(b)):
            return {"field": field, "ours": str(a), "vllm": str(b)}
    return None
