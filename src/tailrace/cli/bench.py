"""``tailrace bench``: how fast the simulator is here, and how its cost grows.

Every figure that matters is a ratio within one run, since machines differ and are noisy.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from typing import Annotated, Any, NamedTuple

from rich.table import Table

from .. import hooks
from ..hooks import Policy, policy
from ..params import P
from ..sim.run import Instance
from ..studies import runs
from .console import console, print_json

__all__ = ["run"]

QBA_LOOP = 30
"""Runs a measurement: one run of 5,000 requests is 45,000 steps."""


class _RerankParams(NamedTuple):
    """Parameters of the benchmark's policy."""

    weight: Annotated[float, P("weight of waiting time against prompt length", unit="tokens/s")] = 30.0


@policy("bench_rerank", source="benchmark only")
class Rerank(Policy):
    """Re-keys every request at every step, by arithmetic alone: the dearest kind of key."""

    Params = _RerankParams
    keys = hooks.EVERY_STEP

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        return {"order_scope": "waiting", "victim": "tail"}

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        return 0, table.prompt_tokens[row] - params.weight * (now - table.arrival_s[row])


def _instance(workload: str, policy_name: str, engine: str, latency: str = "") -> Instance:
    w = runs.load_workload(workload, None, None, "oracle", 1.0, None)
    spec, config = runs.parse_policy(policy_name), runs.parse_engine(engine)
    return Instance(w, spec.cls, spec.params, config, runs.parse_latency(latency, config))


def _timed(workload: str, policy_name: str, engine: str, loops: int, latency: str = "") -> dict[str, Any]:
    """The median of ``loops`` runs after one to warm up, with only the engine's loop timed."""
    _instance(workload, policy_name, engine, latency).advance()
    times, counters = [], None
    for _ in range(loops):
        instance = _instance(workload, policy_name, engine, latency)
        start = time.perf_counter()
        instance.advance()
        times.append(time.perf_counter() - start)
        counters = instance.records.counters
    assert counters is not None
    steps, request_steps, seconds = (
        int(counters["steps"][0]),
        int(counters["request_steps"][0]),
        statistics.median(times),
    )
    return {
        "workload": workload if not os.path.exists(workload) else os.path.basename(workload),
        "policy": policy_name,
        "engine": engine,
        "requests": len(instance.workload),
        "steps": steps,
        "request_steps": request_steps,
        "seconds": seconds,
        "steps_per_s": steps / seconds,
        "request_steps_per_s": request_steps / seconds,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


CHAT = "poisson:rate_rps=4,requests={n},prompt_median=928,prompt_sigma=0.9,output_median=129,output_sigma=0.9"
SMALL = "vllm_v1:token_budget=512,max_seqs=128"


def _growth(quick: bool) -> list[dict[str, Any]]:
    """The same traffic, ten times as long each time."""
    sizes = (1_000, 10_000) if quick else (10_000, 100_000)
    return [_timed(CHAT.format(n=n), "fcfs", SMALL, 3) for n in sizes]


def _queue(policy_name: str, waiting: int) -> dict[str, Any]:
    """Microseconds a step with ``waiting`` requests queued and one place free at a time."""
    workload = f"deterministic:gap_s=0,requests={waiting + 600},prompt=64,output=40"
    engine = "vllm_v1:token_budget=256,max_seqs=32"
    _instance(workload, policy_name, engine).advance(steps=2)
    samples = []
    for _ in range(5):
        instance = _instance(workload, policy_name, engine)
        instance.advance(steps=20)
        start = time.perf_counter()
        instance.advance(steps=400)
        samples.append((time.perf_counter() - start) / 400)
    return {"policy": policy_name, "waiting": waiting, "us_per_step": 1e6 * statistics.median(samples)}


CROWD = "poisson:rate_rps=60,requests=3000,prompt_median=64,prompt_sigma=0.9,output_median=500,output_sigma=0.6"
"""More than the engine keeps up with, so its places are all taken and requests wait for one."""


def _crowd(policy_name: str, running: int, loops: int) -> dict[str, Any]:
    """Request-steps a second of processor time with ``running`` requests running, all of them decodes or nearly so.

    The median of ``loops`` stretches of 2,000 steps, from the first step with all places taken on.
    """
    speeds, mean, waiting = [], 0.0, 0
    for _ in range(loops):
        instance = _instance(CROWD, policy_name, f"vllm_v1:max_seqs={running}")
        core, counters = instance.buffers.core, instance.records.counters
        while core["running"][0] < running:
            instance.advance(steps=100)
        before, start = int(counters["request_steps"][0]), time.process_time()
        instance.advance(steps=2_000)
        done, seconds = int(counters["request_steps"][0]) - before, time.process_time() - start
        speeds.append(done / seconds)
        mean, waiting = done / 2_000, int(core["waiting"][0])
    found = {"policy": policy_name, "running": mean, "waiting": waiting}
    return {**found, "request_steps_per_s": statistics.median(speeds)}


def _memory(requests: int) -> dict[str, Any]:
    """Peak memory of a process of its own that simulates ``requests`` requests."""
    text = (
        "import json, tailrace.cli.bench as b;"
        f"print(json.dumps(b._timed(b.CHAT.format(n={requests}), 'fcfs', b.SMALL, 1)))"
    )
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return dict(json.loads(found.stdout))


def run(trace: str, quick: bool, as_json: bool) -> None:
    """Measure and print."""
    loops = 5 if quick else QBA_LOOP
    engine_runs = [_timed("qba:requests=5000,rate_rps=32", name, "qba", loops) for name in ("fcfs", "psf", "aa", "qba")]
    if trace:
        engine_runs += [_timed(trace, name, SMALL, 5) for name in ("fcfs", "qba", "srpt", "sarathi")]
    growth = _growth(quick)
    queues = [_queue(name, n) for name in ("fcfs", "qba", "bench_rerank") for n in (100, 1_000, 10_000)]
    crowds = [_crowd(name, 500, 3 if quick else 9) for name in ("fcfs", "uniboost")]
    memory = _memory(100_000 if quick else 1_000_000)
    document = {"simulator": engine_runs + growth + [memory], "queue": queues, "crowd": crowds}
    if as_json:
        print_json(document)
        return
    _print(document, growth)


def _print(document: dict[str, Any], growth: list[dict[str, Any]]) -> None:
    out = console()
    table = Table(
        "workload", "policy", "requests", "steps", "M steps/s", "M request-steps/s", "against first", "peak MB"
    )
    first = document["simulator"][0]["steps_per_s"]
    for r in document["simulator"]:
        table.add_row(
            r["workload"].partition(":")[0],
            r["policy"],
            f"{r['requests']:,}",
            f"{r['steps']:,}",
            f"{r['steps_per_s'] / 1e6:.2f}",
            f"{r['request_steps_per_s'] / 1e6:.1f}",
            f"{r['steps_per_s'] / first:.2f}",
            f"{r['peak_rss_mb']:,.0f}",
        )
    out.print(table)
    small, large = growth
    ratio = (large["seconds"] / large["requests"]) / (small["seconds"] / small["requests"])
    out.print(f"ten times the requests cost {ratio:.2f} times as much each (1 = linear)")
    table = Table("policy", "waiting", "µs a step", "against 100 waiting")
    for r in document["queue"]:
        base = next(q for q in document["queue"] if q["policy"] == r["policy"])
        table.add_row(
            r["policy"], f"{r['waiting']:,}", f"{r['us_per_step']:.2f}", f"{r['us_per_step'] / base['us_per_step']:.2f}"
        )
    out.print(table)
    out.print(_crowds(document["crowd"]))


def _crowds(found: list[dict[str, Any]]) -> Table:
    table = Table("policy", "running", "waiting", "M request-steps/s of processor time", "against first")
    for r in found:
        speed, ratio = r["request_steps_per_s"] / 1e6, r["request_steps_per_s"] / found[0]["request_steps_per_s"]
        table.add_row(r["policy"], f"{r['running']:,.0f}", f"{r['waiting']:,}", f"{speed:.1f}", f"{ratio:.2f}")
    return table
