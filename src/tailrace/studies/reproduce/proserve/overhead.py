"""What a decision costs: a step of the simulator with 1,000 requests before the policy.

The time is the whole step's, of which the decision is the largest part, so it is an upper bound.
It is processor time, measured, so it differs from run to run; what is told is the least of a few round numbers that
it stays under, which does not.
"""

from __future__ import annotations

import statistics
import time
from typing import Final

from .... import latency, workloads
from ....sim.run import Instance
from ... import runs
from .settings import MODELS, POLICIES, Setting, engine

__all__ = ["BOUNDS_US", "REQUESTS", "bound", "step_us"]

REQUESTS: Final = 1000
RUNNING: Final = 256
STEPS: Final = 200
STRETCHES: Final = 9
BOUNDS_US: Final = (10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
WAITING: Final = "deterministic:gap_s=0,requests={n},prompt=1000,output=400"


def step_us(policy: str, requests: int = REQUESTS) -> float:
    """Median microseconds of a step with at least ``requests`` requests, `RUNNING` of them at most running."""
    setting = Setting()
    text = POLICIES[policy]
    chosen, config = runs.parse_policy(text), runs.parse_engine(engine(setting, text, max_seqs=RUNNING))
    cost = latency.build(MODELS[setting.model].latency)
    given = workloads.load(WAITING.format(n=requests + STEPS), seed=0)
    service = workloads.Service("high@0.5 weight=2 priority=0 + low@0.5 weight=1 priority=1", "ttft_s=1,tpot_s=0.05")
    w = workloads.apply(workloads.promised(given, service), "oracle")
    samples = []
    for stretch in range(STRETCHES + 1):
        instance = Instance(w, chosen.cls, chosen.params, config, cost)
        instance.advance(steps=20)
        start = time.process_time()
        instance.advance(steps=STEPS)
        if stretch:  # the first one compiles
            samples.append((time.process_time() - start) / STEPS)
    return 1e6 * statistics.median(samples)


def bound(us: float) -> float:
    """The least of `BOUNDS_US` above ``us``; infinite beyond them."""
    return next((limit for limit in BOUNDS_US if us < limit), float("inf"))
