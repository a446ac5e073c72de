"""The distributions of a run are those that its result would say."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tailrace.sim.run import Instance
from tailrace.studies.reproduce import points
from tailrace.studies.reproduce.points import Point
from tailrace.studies.reproduce.tails import LEVELS, MEASURES, level_name, measure
from tailrace.studies.reproduce.traffic import Generated

pytestmark = pytest.mark.plain

ENGINE = "vllm_v1:token_budget=256,max_seqs=3,kv_tokens=3000,evict=swap,host_kv_tokens=20000"
POINT = Point(
    Generated("poisson:rate_rps=20,requests=60,lengths=constant:60:20@0.9+constant:200:90@0.1"),
    "memguard:k_tokens=16,seconds_per_token=0.01,gamma_per_s=0.1",
    ENGINE,
    "llama-3-8b-a100-derived",
    measure="tails",
)


def _measured(point: Point, seed: int) -> tuple[dict[str, float], Instance]:
    made = points.run(point, seed)
    return dict(zip(MEASURES, measure(made, point.skipped), strict=True)), made


def test_names_of_levels() -> None:
    assert [level_name(q) for q in (0.05, 0.5, 0.95, 0.99, 0.995, 0.999)] == ["p5", "p50", "p95", "p99", "p995", "p999"]
    assert list(LEVELS) == sorted(set(LEVELS))


def test_they_are_those_of_the_results_summary() -> None:
    found, made = _measured(POINT, 3)
    summary = made.result().summary()
    for of in ("ttft", "e2e", "tbt"):
        for at in ("mean", "p50", "p90", "p95", "p99", "p999"):
            assert found[f"{of}_{at}_s"] == pytest.approx(summary["metrics"][f"{of}_s"][at], rel=1e-12), (of, at)
    assert found["completed"] == summary["counts"]["completed"] == 60
    assert found["preemptions_per_request"] == summary["counts"]["preemptions"] / 60 > 0
    assert found["tokens_per_s"] == pytest.approx(summary["throughput"]["output_tokens_per_s"])
    assert found["recompute_tax"] == summary["recompute_tax"]
    swap = summary["swap"]
    assert found["swapped_gb"] == pytest.approx((swap["swapped_out_bytes"] + swap["swapped_in_bytes"]) / 1e9)
    assert found["swap_tax"] == pytest.approx(swap["swap_tax"])
    assert found["key_revisions"] == summary["tallies"]["key_revisions"]
    by = summary["by_true_class"]
    assert found["long_e2e_p99_s"] == pytest.approx(by["long"]["metrics"]["e2e_s"]["p99"])
    assert found["long_preempted_p99_s"] == pytest.approx(by["long"]["metrics"]["preempted_s"]["p99"])
    assert found["kv_peak_share"] == pytest.approx(summary["engine"]["most_kv_tokens"] / 3000)


def test_revisions_are_counted_against_their_bound() -> None:
    found, made = _measured(POINT, 3)
    assert found["revisions_over_bound"] == 0
    made.engine.state.guard.revisions[:2] = 40
    assert dict(zip(MEASURES, measure(made), strict=True))["revisions_over_bound"] == 2


def test_the_slope_is_that_of_long_requests_over_their_number() -> None:
    _, made = _measured(POINT, 3)
    finish, arrival = made.records.out["finish_s"], made.buffers.table["arrival_s"]
    finish[:60] = arrival[:60] + np.where(made.workload.true_class == 1, 5 + 0.25 * np.arange(60), 1.0)
    assert dict(zip(MEASURES, measure(made), strict=True))["long_slope_s"] == pytest.approx(0.25)


def test_a_backlogged_engines_rate_leaves_out_fill_and_drain() -> None:
    _, made = _measured(POINT, 3)
    made.records.out["finish_s"][:60] = np.concatenate([np.full(10, 1e-3), 1 + 0.5 * np.arange(45), np.full(5, 1e4)])
    assert dict(zip(MEASURES, measure(made), strict=True))["backlog_rps"] == pytest.approx(2.0)


def test_the_first_requests_can_be_left_out_of_times() -> None:
    whole, made = _measured(POINT, 3)
    part, _ = _measured(dataclasses.replace(POINT, skipped=0.5), 3)
    e2e = made.result().requests.e2e_s
    assert part["e2e_mean_s"] == pytest.approx(e2e[30:].mean())
    assert whole["e2e_mean_s"] == pytest.approx(e2e.mean())
    assert part["tbt_mean_s"] == whole["tbt_mean_s"]
