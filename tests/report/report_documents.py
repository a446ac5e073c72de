"""Hand-made documents and runs, as `tailrace compare` makes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tailrace.metrics import STATISTICS, Requests
from tailrace.sim.run import Result

LATENCY = {"name": "qba", "kind": "piecewise", "params": {"constant_s": 0.003}, "kv_tokens": 8192, "summary": "a test"}
ENGINE = {"name": "qba", "token_budget": 128, "max_seqs": 0, "kv_tokens": 8192, "latency": LATENCY}
WORKLOAD = {"name": "qba", "requests": 3000, "span_s": 92.6, "rate_rps": 32.4, "prompt_tokens_mean": 108.8}
RULES = {"order_scope": "waiting", "chunk_cap": 0, "watermark": 0.3, "block_tokens": 1}


def metrics(scale: float | None, half: float | None = None) -> dict[str, Any]:
    """Every statistic of every metric, in proportion to ``scale``; intervals of ± ``half`` of it."""
    out: dict[str, Any] = {}
    for metric, size in (("wait_s", 1.0), ("ttft_s", 1.1), ("tpot_s", 0.02), ("tbt_s", 0.03), ("e2e_s", 2.0)):
        values = {s: None if scale is None else scale * size * (i + 1) for i, s in enumerate(STATISTICS)}
        out[metric] = dict(values)
        if half is not None:
            out[metric]["ci"] = {s: v and [v * (1 - half), v * (1 + half)] for s, v in values.items()}
    return out


def result(label: str, scale: float | None, half: float | None = None, **changes: Any) -> dict[str, Any]:
    """One result; the first word of the label is its policy."""
    counts = {"submitted": 3000, "completed": 3000, "preemptions": 7}
    part = {"counts": {"submitted": 1500, "completed": 1500, "preemptions": 0}, "metrics": metrics(scale, half)}
    return {
        "policy": label.split()[0],
        "label": label,
        "params": {},
        "predictions": "oracle",
        "rules": dict(RULES),
        "load_state": "STABLE",
        "queueing": scale is None or scale > 1e-4,
        "counts": counts,
        "throughput": {"output_tokens_per_s": 21000.4, "total_tokens_per_s": 24000.0},
        "engine": {},
        "metrics": metrics(scale, half),
        "by_class": {"default": part},
        "by_true_class": {"short": part, "long": part},
        "by_predicted_class": {"short": part, "long": part},
        "by_tenant": {"default": part},
        **changes,
    }


def document(*results: dict[str, Any], seeds: int = 1) -> dict[str, Any]:
    """The document of these results."""
    return {"workload": dict(WORKLOAD), "engine": ENGINE, "seeds": list(range(seeds)), "results": list(results)}


def run(n: int = 400, scale: float = 1.0, seed: int = 1) -> Result:
    """A made-up run of ``n`` requests."""
    draws = np.random.default_rng(seed)
    arrival = np.sort(draws.uniform(0, 100, n))
    started = arrival + scale * draws.exponential(1.0, n)
    whole = np.zeros(n, dtype=np.int64)
    requests = Requests(
        arrival_s=arrival,
        started_s=started,
        first_token_s=started + 0.02,
        finish_s=started + 1.0,
        prompt_tokens=whole + 100,
        output_tokens=whole + 50,
        generated_tokens=whole + 50,
        preemptions=whole,
        recomputed_tokens=whole,
        preempted_s=np.zeros(n),
        gap_max_s=np.full(n, 0.05),
        alone_s=np.full(n, 0.9),
        ttft_slo_s=np.full(n, np.inf),
        tpot_slo_s=np.full(n, np.inf),
        on_time_tokens=whole - 1,
        weight=np.ones(n),
        session=whole - 1,
        class_id=whole,
        tenant=whole,
        true_class=np.arange(n) % 2,
        predicted_class=np.arange(n) % 2,
        reason=whole + 1,
        group=whole,
        gaps=np.array([[0, n]]),
        gap_values_s=np.array([0.0, 0.02]),
    )
    clock = np.linspace(0, 110, 700)
    timeline = {
        "clock_s": clock,
        "waiting": draws.integers(0, 90, 700),
        "running": draws.integers(0, 16, 700),
        "used_blocks": draws.integers(0, 9000, 700),
    }
    meta = {"policy": "fcfs", "predictions": "oracle", "rules": dict(RULES), "engine": ENGINE}
    return Result(meta, requests, {}, timeline)
