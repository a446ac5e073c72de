"""Random small runs for the engine and the reference: crowded, short of KV, every rule in play.

All times are sums of powers of two, so both engines compute the very same floats.
"""

from __future__ import annotations

import dataclasses
import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailrace.config import EngineConfig
from tailrace.hooks import Policy
from tailrace.latency import Latency, PiecewiseParams, ProfiledParams
from tailrace.policies.predicted import SWAP
from tailrace.rules import EngineRules, merge
from tailrace.sim.run import Instance
from tailrace.workloads.workload import Workload

from .draws import MADE, draw_policy
from .draws import TICK as TICK
from .model import Machine, Oracle, Req, Work
from .oracles import ORACLES
from .reference import Reference
from .shares import SHARES
from .sink import SinkOracle
from .sliding import SLIDING

PIECEWISE = PiecewiseParams(constant_s=4 * TICK, per_token_s=TICK / 4, knee_tokens=8)
PROFILED = ProfiledParams(4 * TICK, TICK / 256, TICK / 128, TICK / 4, TICK / 512, TICK / 128, TICK / 8)


@dataclass
class Case:
    """One run: what both engines are given."""

    label: str
    workload: Workload
    policy: type[Policy]
    params: Any
    config: EngineConfig
    latency: Latency
    oracle: Oracle

    def instance(self) -> Instance:
        return Instance(self.workload, self.policy, self.params, self.config, self.latency)

    def reference(self) -> Reference:
        w = self.workload
        requests = [
            Req(
                row=i,
                arrival=float(w.arrival_s[i]),
                prompt=int(w.prompt_tokens[i]),
                output=int(w.output_tokens[i]),
                predicted=int(w.predicted_output_tokens[i]),
                is_long=bool(w.predicted_class[i]),
                priority=int(w.priority[i]),
                class_id=int(w.class_id[i]),
                tenant=int(w.tenant[i]),
                weight=float(w.class_weights[w.class_id[i]]),
                ttft_slo=float(w.ttft_slo_s[i]),
                tpot_slo=float(w.tpot_slo_s[i]),
            )
            for i in range(len(w))
        ]
        rules = merge(self.config.rules, self.policy.rules(self.params), self.policy.name)
        c = self.config
        made = machine(c.token_budget, c.max_seqs, c.kv_tokens, self.latency)
        if rules.evict == "swap":
            size = c.kv_bytes_per_token * rules.block_tokens / 1e9
            out_s, in_s = size / c.swap_out_gb_per_s, size / c.swap_in_gb_per_s
            made = dataclasses.replace(made, host_tokens=c.host_kv_tokens, out_s=out_s, in_s=in_s)
            layers = c.layers if rules.reload == "layerwise" else 1
            made = dataclasses.replace(made, layers=layers, offload_blocks=c.offload_blocks, beta=c.partial_copy_beta)
        return Reference(requests, rules, self.oracle, made, self.names())

    def names(self) -> list[list[int]] | None:
        """Of each request's first blocks, where the trace's are of the engine's size."""
        prefix = self.workload.prefix
        if prefix is None:
            return None
        assert prefix.block_tokens == self.config.rules.block_tokens
        return [part.tolist() for part in np.split(prefix.ids, prefix.offsets[1:-1])]


def machine(budget: int, max_seqs: int, kv_tokens: int, latency: Latency) -> Machine:
    """The reference's engine, with the latency models' formulas written out."""
    cost = latency.cost
    if isinstance(cost, PiecewiseParams):
        c0, slope, knee, each = cost

        def flat(work: list[Work]) -> float:
            return c0 + slope * max(0, sum(w.tokens for w in work) - knee) + each * len(work)

        def margin(tokens: int, kv: int) -> float:
            return slope * tokens + each * (tokens > 0)

        return Machine(budget, max_seqs, kv_tokens, flat, margin, margin, c0)
    assert isinstance(cost, ProfiledParams)
    base, a, b, c, d, read, seq = cost

    def chunk(q: int, kv: int) -> float:
        return a * q * q + b * q * kv + c * q + d * kv if q else 0.0

    def decode(m: int, kv: int) -> float:
        return m * (read * kv + seq)

    def total(work: list[Work]) -> float:
        chunks = sum(chunk(w.tokens, w.req.computed) for w in work if not w.decode)
        tokens = [w.tokens for w in work if w.decode]
        reads = sum(w.req.computed for w in work if w.decode) * (sum(tokens) / max(1, len(tokens)))
        return base + chunks + read * reads + seq * sum(tokens)

    return Machine(budget, max_seqs, kv_tokens, total, chunk, decode, base)


def draw_workload(rng: random.Random, most: int) -> Workload:
    """20 or more requests in bursts, some at the same instant, a few that never fit."""
    n = rng.randint(20, most)
    gap = rng.choice([0, 4, 16, 64])
    clock, arrivals = 0, []
    for _ in range(n):
        clock += rng.choice([0, 0, 1, 2]) * gap
        arrivals.append(clock * TICK)
    long = [rng.random() < 0.4 for _ in range(n)]
    return Workload.of(
        arrivals,
        [rng.randint(1, 60) for _ in range(n)],
        [rng.choice([1, 2, rng.randint(1, 40 if is_long else 8)]) for is_long in long],
        name="random",
        predicted_class=[int(is_long) for is_long in long],
        predicted_output_tokens=[rng.randint(1, 40) for _ in range(n)],
        priority=[rng.randint(-2, 3) for _ in range(n)],
    )


def labelled(workload: Workload, rng: random.Random) -> Workload:
    """The same with classes of any weight, tenants, and SLOs that some have and others have not."""
    n, pick = len(workload), rng.choice
    given = {name: getattr(workload, name) for name in ("arrival_s", "prompt_tokens", "output_tokens")}
    told = {name: getattr(workload, name) for name in ("predicted_class", "predicted_output_tokens", "priority")}
    ttft: list[float] = pick([[np.inf], [64], [16, 64, np.inf], [8, 256]])
    tpot: list[float] = pick([[np.inf], [8], [4, 16, np.inf], [2, 6]])
    return Workload.of(
        **given,
        **told,
        name="labelled",
        class_names=("a", "b", "c"),
        class_weights=[pick([0.5, 1.0, 2.0, 4.0]) for _ in range(3)],
        tenant_names=("x", "y"),
        class_id=[rng.randrange(3) for _ in range(n)],
        tenant=[rng.randrange(2) for _ in range(n)],
        ttft_slo_s=[pick(ttft) * TICK for _ in range(n)],
        tpot_slo_s=[pick(tpot) * TICK for _ in range(n)],
    )


def draw_rules(rng: random.Random, in_flight: tuple[int, ...]) -> EngineRules:
    """Any rules that go together."""
    pick = rng.choice
    cap = pick([0, 0, 7, 16])
    return EngineRules(
        order_scope=pick(["waiting", "all"]),
        phase_order=pick(["ranked", "running_first", "decode_first", "prefill_first", "prefill_alone"]),
        continuation_first=pick([True, False]),
        admit=pick(["chunk", "prompt", "projected"]),
        watermark=pick([0.0, 0.05, 0.3]),
        blocked_head=pick(["stop", "skip"]),
        chunk_cap=cap,
        chunk_cap_alone=pick([True, False]),
        chunk_cap_adaptive=pick([True, False]),
        decode_cap=pick([0, 0, 3]),
        misfit=pick(["stop", "skip"]),
        min_last_chunk=pick([0, 0, 2]),
        victim="tail",
        may_preempt_at_cap=pick([True, False]),
        may_preempt_for_kv=pick([True, False]),
        projection=pick(["chunk", "live_prompt", "live_growth_prompt"]),
        kv_short=pick(["preempt", "stall"]),
        admit_after_preemption=pick([True, False]),
        reserve_full_isl=pick([True, False]),
        decode_block_tokens=pick([1, 1, 8]),
        prefill_emits=pick([True, False]),
        kv_limit=pick(["enforced", "enforced", "enforced", "reported"]),
        block_tokens=pick([1, 16]),
        steps_in_flight=pick(in_flight),
    )


def pressed(rng: random.Random, rules: EngineRules) -> EngineRules:
    """The same where most steps preempt somebody who is in the plan already."""
    return dataclasses.replace(
        rules,
        phase_order=rng.choice(["ranked", "ranked", "decode_first", "running_first"]),
        order_scope=rng.choice(["all", "all", "waiting"]),
        kv_short="preempt",
        kv_limit="enforced",
        block_tokens=1,
        admit_after_preemption=rng.random() < 0.8,
        decode_cap=rng.choice([0, 2, 3]),
        misfit="skip",
        reserve_full_isl=rng.random() < 0.3,
    )


def with_slos(workload: Workload, rng: random.Random) -> Workload:
    """The same with objectives, some tight, some loose, some none, and classes of two weights."""
    n, pick = len(workload), rng.choice
    loose = pick([1, 4, 8])
    return dataclasses.replace(
        workload,
        ttft_slo_s=np.array([pick([16, 64, 64, 256, math.inf]) * loose * TICK for _ in range(n)]),
        tpot_slo_s=np.array([pick([6, 8, 16, 16, math.inf]) * loose * TICK for _ in range(n)]),
        class_id=np.array([pick([0, 1]) for _ in range(n)]),
        class_names=("low", "high"),
        class_weights=(1.0, 2.0),
    )


def draw(name: str, seed: int, in_flight: tuple[int, ...] = (1, 2), most: int = 40) -> Case:
    """Case ``seed`` of policy ``name``."""
    rng = random.Random(f"{name} {seed}")
    workload = draw_workload(rng, most)
    if name in SHARES:
        workload = labelled(workload, rng)
    policy, params, oracle = draw_policy(rng, name)
    rules = draw_rules(rng, in_flight)
    if seed % 2:
        rules = pressed(rng, rules)
    if name in ("sink", "vllm_priority", "sarathi"):
        rules = dataclasses.replace(rules, victim=rng.choice(["tail", "hook", "hook"]))
    cost = PROFILED if name in PROFILED_TOO and rng.random() < 0.3 else PIECEWISE
    if cost is PROFILED:  # which takes the mean of tokens a decode: exact for one
        rules = dataclasses.replace(rules, decode_block_tokens=1)
    kv_tokens = rng.choice([96, 112, 160, 256])
    config = EngineConfig("random", rng.choice([5, 16, 48]), rng.choice([0, 3, 8]), kv_tokens, rules)
    latency = Latency("random", cost, None, "")
    if name in SLIDING:
        workload = with_slos(workload, rng)
    return Case(f"{name} {seed}", workload, policy, params, config, latency, oracle)


def swapping(name: str, seed: int, in_flight: tuple[int, ...] = (1, 2), most: int = 40) -> Case:
    """Case ``seed`` of policy ``name`` with little KV on the device, and in host memory little or much."""
    case, rng = draw(name, seed, in_flight, most), random.Random(f"swap {name} {seed}")
    rules = case.config.rules if seed % 4 == 0 else pressed(rng, case.config.rules)
    if seed % 4 < 2:  # those who decode grow, and preempt others who do
        rules = dataclasses.replace(rules, admit="chunk", reserve_full_isl=False, watermark=0.0)
    rules = dataclasses.replace(rules, evict="swap", chunk_cap=rng.choice([0, rules.chunk_cap]))
    if name == "trail":
        case.params = case.params._replace(rule=SWAP)
    case.label = f"swap {case.label}"
    case.config = dataclasses.replace(
        case.config,
        rules=rules,
        kv_tokens=rng.choice([80, 96, 128]),
        host_kv_tokens=rng.choice([16, 48, 160, 10_000]),
        swap_out_gb_per_s=rng.choice([1024.0, 4096.0]),
        swap_in_gb_per_s=rng.choice([512.0, 2048.0]),
        kv_bytes_per_token=125_000_000,  # copies of a block take powers of two of a second
    )
    return case


def parking(name: str, seed: int, in_flight: tuple[int, ...] = (1, 2), most: int = 40) -> Case:
    """The same where KV stays on the device until it is needed; in every other case places are short, not KV."""
    case, rng = swapping(name, seed, in_flight, most), random.Random(f"park {name} {seed}")
    rules = dataclasses.replace(case.config.rules, swap_out="when_needed")
    case.label = f"park {case.label}"
    host_kv_tokens = max(case.config.host_kv_tokens, rng.choice([16, 160]))
    case.config = dataclasses.replace(case.config, host_kv_tokens=host_kv_tokens)
    if seed % 2:
        rules = dataclasses.replace(rules, may_preempt_at_cap=True)
        case.config = dataclasses.replace(case.config, max_seqs=3, kv_tokens=rng.choice([128, 160, 192]))
    case.config = dataclasses.replace(case.config, rules=rules)
    return case


def managing(name: str, seed: int, in_flight: tuple[int, ...] = (1, 2), most: int = 40) -> Case:
    """The same under ProServe's block management: each of its parts or several, links slow enough to matter."""
    case, rng = swapping(name, seed, in_flight, most), random.Random(f"manage {name} {seed}")
    pick = rng.choice
    how: dict[str, Any] = {
        "swap_out": pick(["ahead", "ahead", "ahead", "at_once", "when_needed"]),
        "reload": pick(["layerwise", "blocking"]),
        "copy_budget": pick(["adaptive", "adaptive", "all"]),
    }
    if (how["reload"], how["copy_budget"]) == ("blocking", "all"):
        how["swap_out"] = "ahead"
    case.label = f"manage {case.label}"
    if name == "sink":
        seconds = pick([0.0, 2 * TICK, 4 * TICK, 16 * TICK, 64 * TICK])
        case.params = case.params._replace(seconds=seconds, sign=-1)
        case.oracle = SinkOracle(case.params)
    rules = dataclasses.replace(case.config.rules, **how)
    if name == "slide":  # which cannot tell a decode from one that lacks a token where prefills emit none
        rules = dataclasses.replace(rules, prefill_emits=True)
    if seed % 2:  # many short ones grow, and several come back together
        w = case.workload
        prompt, output = 1 + w.prompt_tokens % 12, 4 + (7 * w.output_tokens + w.prompt_tokens) % 24
        case.workload = dataclasses.replace(w, prompt_tokens=prompt, output_tokens=output)
        rules = dataclasses.replace(rules, block_tokens=pick([1, 1, 4]), admit="chunk", reserve_full_isl=False)
        rules = dataclasses.replace(rules, watermark=0.0, misfit="skip", blocked_head="skip", kv_limit="enforced")
        host = pick([32, 10_000, 10_000])
        case.config = dataclasses.replace(case.config, token_budget=48, max_seqs=0, host_kv_tokens=host)
    case.config = dataclasses.replace(
        case.config,
        rules=rules,
        swap_out_gb_per_s=pick([256.0, 1024.0, 8192.0]),
        swap_in_gb_per_s=pick([64.0, 256.0, 1024.0]),
        offload_blocks=pick([1, 2, 4, 16] if rules.block_tokens == 1 else [1, 2]),
        layers=pick([1, 4, 32]),
        partial_copy_beta=pick([0.0, 1.25, 2.0, 8.0]),
    )
    return case


PROFILED_TOO = ("sink",)
"""Policies that are also compiled for the profiled model; one is enough for the engine."""
NAMES = (*ORACLES, *MADE, "sink")
