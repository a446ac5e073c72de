"""SlideBatching on a loaded engine: what its parts are good for."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tailrace import params
from tailrace.config import engine
from tailrace.latency import Latency
from tailrace.policies.slide import FINDINGS
from tailrace.registry import POLICIES
from tailrace.sim.run import simulate
from tailrace.workloads.workload import Workload

from .slide_queue import SLOW


def loaded(policy: str, slos: bool = True, **given: Any) -> Any:
    """300 requests at about one and a half times what the engine can do, half of them of weight 2."""
    rng = np.random.default_rng(5)
    n = 300
    w = Workload.of(
        np.cumsum(rng.exponential(0.24, n)),
        rng.integers(20, 600, n),
        rng.integers(2, 30, n),
        name="loaded",
        class_id=rng.integers(0, 2, n),
        class_names=("low", "high"),
        class_weights=(1.0, 2.0),
    )
    if slos:
        w = dataclasses.replace(w, ttft_slo_s=np.full(n, 1.0), tpot_slo_s=np.full(n, 0.05))
    cls = POLICIES.get(policy)
    config = engine("vllm_v1", {"token_budget": 256, "kv_tokens": 65536})
    return simulate(w, cls, params.build(cls.Params, given, policy), config, Latency("slow", SLOW, None, ""))


def attained(policy: str, **given: Any) -> float:
    result = loaded(policy, **given)
    return float(result.summary()["slo"]["attainment"])


def test_hopeless_last_beats_both_published_forms_and_all_beat_fcfs() -> None:
    fcfs, paper, xllm = attained("fcfs"), attained("slide", preset="paper"), attained("slide", preset="xllm")
    ours = attained("slide")
    assert ours > max(paper, xllm) > min(paper, xllm) > fcfs + 0.2
    assert ours > attained("slide", order="deadline", hopeless="ranked") + 0.2


def test_the_heavier_class_does_better() -> None:
    result = loaded("slide")
    by = result.summary()["by_class"]
    assert by["high"]["slo"]["attainment"] > by["low"]["slo"]["attainment"] + 0.05


def test_without_objectives_it_is_the_order_of_arrival() -> None:
    result = loaded("slide", slos=False)
    started = result.requests.started_s
    assert (np.diff(started) >= 0).all()
    assert set(result.tallies) == set(FINDINGS)
    assert result.tallies["urgent_request_steps"] == 0
    assert result.tallies["unbounded_steps"] > 0
