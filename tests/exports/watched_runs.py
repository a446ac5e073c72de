"""Small runs, watched, with preemptions and with objectives."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tailrace.config import engine
from tailrace.latency import build
from tailrace.registry import POLICIES
from tailrace.sim import run
from tailrace.sim.watch import Watched, watch
from tailrace.workloads.workload import Workload

N = 40


@functools.cache
def workload() -> Workload:
    """Forty requests in half a second; the last needs more KV than there is."""
    draws = np.random.default_rng(5)
    prompt, output = draws.integers(10, 300, N), draws.integers(1, 200, N)
    prompt[-1] = 5000
    slo = np.where(np.arange(N) % 2 == 0, 0.2, np.inf)
    return Workload.of(
        np.sort(draws.uniform(0, 0.5, N)),
        prompt,
        output,
        name="forty",
        class_names=("gold", "basic"),
        class_id=np.arange(N) % 2,
        tenant_names=("a", "b", "c"),
        tenant=np.arange(N) % 3,
        ttft_slo_s=slo,
        tpot_slo_s=slo / 5,
    )


def instance(steps_in_flight: int = 1, policy: str = "srpt") -> run.Instance:
    """Memory for few of them at a time."""
    cls: Any = POLICIES.get(policy)
    config = engine("vllm_v1", {"kv_tokens": 900, "token_budget": 128, "steps_in_flight": steps_in_flight})
    return run.Instance(workload(), cls, cls.Params() if cls.Params else (), config, build("qba"))


@functools.cache
def watched(steps_in_flight: int = 1) -> Watched:
    """Its run under srpt."""
    return watch(instance(steps_in_flight))


def document(w: Watched) -> dict[str, Any]:
    """As `studies.runs.compare` makes it."""
    meta = w.result.meta
    row = {"label": "srpt", **w.result.summary()}
    return {"workload": meta["workload"], "engine": meta["engine"], "seeds": [0], "results": [row]}
