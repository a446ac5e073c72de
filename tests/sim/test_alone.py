"""The time of a request by itself is what an engine with nothing else takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tailrace.config import engine
from tailrace.latency import build
from tailrace.registry import POLICIES
from tailrace.sim import run
from tailrace.sim.alone import alone_s
from tailrace.workloads.workload import Workload

PROFILED = "profiled:constant_s=0.01,prefill_sq_s=1e-6,prefill_kv_s=1e-7,decode_kv_s=1e-6"


@pytest.mark.parametrize(
    ("name", "settings", "latency"),
    [
        ("qba", {}, "qba"),
        ("vllm_v1", {"token_budget": 64}, "llama-3-8b-a100-derived"),
        ("vllm_v1", {"chunk_cap": 40}, PROFILED),
        ("vllm_v1", {"chunk_cap": 40, "chunk_cap_alone": True}, PROFILED),
    ],
)
def test_far_apart_requests_take_what_they_would_alone(name: str, settings: dict[str, Any], latency: str) -> None:
    prompts, outputs = np.array([1, 63, 64, 65, 130, 900]), np.array([1, 2, 17, 16, 33, 5])
    w = Workload.of(np.arange(6) * 1e3, prompts, outputs, name="apart")
    fcfs, config, cost = POLICIES.get("fcfs"), engine(name, {"kv_tokens": 4096, **settings}), build(latency)
    found = run.simulate(w, fcfs, fcfs.Params(), config, cost)
    np.testing.assert_allclose(found.requests.alone_s, found.requests.e2e_s, rtol=2e-4)
    assert found.summary()["fairness"]["jain_requests"] == pytest.approx(1.0)


def test_no_requests_take_no_time() -> None:
    none = np.zeros(0, dtype=np.int64)
    config = engine("qba", {})
    assert len(alone_s(none, none, 128, config.rules, build("qba"))) == 0
