"""The shapes that are noted are those that the steps were timed by."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.latency import build, step_seconds
from tailrace.sim.run import Instance
from tailrace.sim.shapes import step_samples
from tailrace.studies.runs import parse_engine, parse_policy
from tailrace.workloads import load

pytestmark = pytest.mark.plain

ROOFLINE = build("roofline:model=qwen2-7b,device=a100-80gb")


def _instance(policy: str, engine: str, workload: str = "poisson:requests=30,rate_rps=20") -> Instance:
    found = parse_policy(policy)
    return Instance(load(workload), found.cls, found.params, parse_engine(engine), ROOFLINE)


@pytest.mark.parametrize(
    ("policy", "engine"),
    [
        ("sarathi", "sarathi"),
        ("srpt", "sarathi:kv_tokens=3000"),  # with preemptions
        ("fcfs", "vllm_v1:steps_in_flight=2"),
        ("fcfs", "vllm_v1:decode_block_tokens=4,prefill_emits=false"),
    ],
)
def test_each_step_s_shape_gives_its_time_and_the_run_is_the_same(policy: str, engine: str) -> None:
    run, alone = _instance(policy, engine), _instance(policy, engine)
    samples = step_samples(run)
    assert [step_seconds(shape, ROOFLINE.cost) for shape, _ in samples] == [seconds for _, seconds in samples]
    alone.run()
    counters = alone.result().counters
    assert run.result().counters == counters
    assert len(samples) == counters["steps"]
    assert sum(shape.tokens for shape, _ in samples) == counters["step_tokens"]
    assert sum(shape.prefill_tokens for shape, _ in samples) == counters["prefill_tokens"]
    if policy == "srpt":
        assert counters["preemptions"] > 0


def test_a_prefix_found_in_the_cache_counts_as_computed() -> None:
    workload = "poisson:requests=30,rate_rps=20,prefix_groups=2,prefix_tokens=500"
    run = _instance("fcfs", "vllm_v1:prefix_cache=true", workload)
    samples = step_samples(run)
    assert run.result().counters["cached_tokens"] > 0
    assert [step_seconds(shape, ROOFLINE.cost) for shape, _ in samples] == [seconds for _, seconds in samples]


def test_jitter_is_in_the_seconds_and_not_in_the_shape() -> None:
    samples = step_samples(_instance("sarathi", "sarathi:step_jitter=0.1"), steps=200)
    factors = [seconds / step_seconds(shape, ROOFLINE.cost) for shape, seconds in samples]
    assert len(samples) == 200
    assert sum(factors) / 200 == pytest.approx(1.0, abs=0.03)
    assert sum((factor - 1) ** 2 for factor in factors) / 200 == pytest.approx(0.01, rel=0.3)


def test_a_run_without_requests_has_no_steps() -> None:
    empty: Any = _instance("sarathi", "sarathi", "poisson:requests=1")
    empty.buffers.core["rows"] = 0
    assert step_samples(empty) == []
