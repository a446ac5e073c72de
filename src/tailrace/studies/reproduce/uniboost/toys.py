"""§3's two schedules, found by search as the article draws them and gives no numbers: one request at a time.

In the convoy a long request blocks shorter ones: first come first served has the higher mean. In the
burst short ones overtake a long one again and again: least attained service has the higher maximum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from .... import latency
from ....sim.run import Instance
from ....workloads.workload import Workload
from ... import pool, runs

__all__ = ["POLICIES", "SCHEDULES", "latencies", "numbers"]

SCHEDULES: Final[Mapping[str, list[tuple[int, int]]]] = {
    "convoy": [(0, 10), (4, 4), (9, 5), (14, 5), (24, 5)],
    "burst": [(1, 4), (1, 1), (2, 2), (2, 1), (3, 3)],
}
"""(arrival, steps of service) of A, B, …"""
POLICIES: Final[Mapping[str, str]] = {
    "fcfs": "fcfs",
    "srpt": "srpt:work=output",
    "las": "las",
    "boost_100": "gamma_boost:gamma_per_s=100,seconds_per_token=1",
    "boost_0.01": "gamma_boost:gamma_per_s=0.01,seconds_per_token=1",
}


def latencies(schedule: str, policy: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """(requests,) steps from arrival to the end, in order of arrival."""
    arrival, size = zip(*SCHEDULES[schedule], strict=True)
    told = list(map(int, size))
    w = Workload.of(list(map(float, arrival)), 1, told, name=schedule, predicted_output_tokens=told)
    chosen = runs.parse_policy(policy)
    config = runs.parse_engine("vllm_v1:max_seqs=1,kv_tokens=4096,token_budget=64")
    second = latency.build("piecewise:constant_s=1,per_token_s=0")
    run = Instance(w, chosen.cls, chosen.params, config, second)
    run.run()
    steps: np.ndarray[Any, np.dtype[np.float64]] = run.records.out["finish_s"] - w.arrival_s
    return steps


def numbers(workers: int = 0) -> Iterator[tuple[str, str, str, float]]:
    """Schedule, policy, metric and value; each policy is compiled by a process of its own."""
    wanted = list(POLICIES)
    for name, made in zip(wanted, pool.each(_both, wanted, workers), strict=True):
        for schedule, steps in zip(SCHEDULES, made, strict=True):
            yield schedule, name, "mean_steps", float(steps.mean())
            yield schedule, name, "max_steps", float(steps.max())


def _both(name: str) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
    return [latencies(schedule, POLICIES[name]) for schedule in SCHEDULES]
