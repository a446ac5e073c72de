from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tailrace.workloads import Prefix, Workload, generate
from tailrace.workloads.inspect import inspect


def test_figures_by_hand() -> None:
    workload = Workload.of([10, 11, 11.5, 14], [1, 2, 3, 4], [40, 30, 20, 10], name="x")
    found = inspect(workload)
    assert (found["workload"], found["requests"], found["span_s"], found["rate_rps"]) == ("x", 4, 4.0, 0.75)
    gaps = np.array([1, 0.5, 2.5])
    assert found["arrivals"]["gap_s"]["mean"] == pytest.approx(4 / 3)
    assert found["arrivals"]["scv"] == pytest.approx(gaps.var() / gaps.mean() ** 2)
    second, ten, minute = found["arrivals"]["windows"]
    # Windows [10, 11), [11, 12), [12, 13), [13, 14) hold 1, 2, 0, 0; the last arrival begins a fifth.
    assert second == {
        "window_s": 1.0,
        "windows": 4,
        "peak_rps": 2.0,
        "peak_to_mean": 2 / 0.75,
        "dispersion": pytest.approx(np.var([1, 2, 0, 0]) / 0.75),
    }
    assert (ten["windows"], minute["windows"]) == (0, 0)
    assert math.isnan(ten["dispersion"])
    assert found["prompt_tokens"] == {
        "mean": 2.5,
        "min": 1,
        "p50": 2.5,
        "p95": pytest.approx(3.85),
        "p99": pytest.approx(3.97),
        "max": 4,
    }
    assert found["rank_correlation"] == pytest.approx(-1)
    assert found["output_tail"]["verdict"] == "unclear"
    assert found["description"] == workload.description
    assert [found[key] for key in ("classes", "tenants", "sessions", "prefix")] == [None] * 4


@pytest.mark.parametrize(("cv", "low", "high"), [(1, 0.97, 1.03), (3, 8.0, 10.0)])
def test_scv_of_gamma_arrivals(cv: float, low: float, high: float) -> None:
    found = inspect(generate("gamma", {"requests": 50_000, "cv": cv, "rate_rps": 20}))["arrivals"]
    assert low < found["scv"] < high
    if cv == 1:
        assert all(w["dispersion"] == pytest.approx(1, abs=0.4) for w in found["windows"])
    else:
        # Counts of a renewal process disperse as its gaps do, over windows that hold many.
        assert found["windows"][2]["dispersion"] == pytest.approx(found["scv"], rel=0.5)
        assert found["windows"][0]["peak_to_mean"] > found["windows"][2]["peak_to_mean"] > 1


def test_rank_correlation_is_spearmans() -> None:
    workload = generate("qba", {"requests": 2000})
    exact = stats.spearmanr(workload.prompt_tokens, workload.output_tokens).statistic
    assert inspect(workload)["rank_correlation"] == pytest.approx(exact, rel=1e-12)


def test_a_coarse_clock_shows() -> None:
    arrivals = np.floor(generate("gamma", {"rate_rps": 2}).arrival_s / 3) * 3
    found = inspect(Workload.of(arrivals, [1] * 1000, [1] * 1000, name="x"))["arrivals"]
    assert found["clock_s"] == 3
    assert found["simultaneous"] == np.mean(np.diff(arrivals) == 0)
    for name in ("gamma", "deterministic"):  # no ties; ties, but no steps
        assert math.isnan(inspect(generate(name))["arrivals"]["clock_s"])
    twice = np.repeat(generate("gamma", {"requests": 500}).arrival_s, 2)
    found = inspect(Workload.of(twice, [1] * 1000, [1] * 1000, name="x"))["arrivals"]
    assert (math.isnan(found["clock_s"]), found["simultaneous"]) == (True, 500 / 999)


def test_one_request_and_all_at_once() -> None:
    for arrivals in ([3.0], [3.0] * 5):
        found = inspect(Workload.of(arrivals, [1] * len(arrivals), [1] * len(arrivals), name="x"))
        assert found["span_s"] == 0
        assert math.isnan(found["rate_rps"])
        assert math.isnan(found["arrivals"]["scv"])
        assert math.isnan(found["rank_correlation"])
        assert found["output_tail"]["verdict"] == "unclear"


def test_a_very_long_quiet_trace_takes_no_memory() -> None:
    found = inspect(Workload.of([0, 1e9, 2e9], [1] * 3, [1] * 3, name="x"))["arrivals"]["windows"][0]
    assert found["windows"] == 2_000_000_000
    assert found["dispersion"] == pytest.approx(1, rel=1e-6)


def test_classes_and_tenants_largest_first() -> None:
    classes = "a@0.2 weight=3 ttft_slo_s=0.5 + b@0.8"
    workload = generate("gamma", {"classes": classes, "tenants": "+".join(f"t{i}@{i}" for i in range(1, 26))})
    found = inspect(workload)
    b, a = found["classes"]["largest"]
    assert (a["name"], a["weight"], a["ttft_slo_s"]) == ("a", 3.0, 0.5)
    assert math.isnan(b["ttft_slo_s"])
    assert a["share"] + b["share"] == 1
    assert a["requests"] == np.count_nonzero(workload.class_id == 0)
    assert a["output_tokens"]["p50"] == np.median(workload.output_tokens[workload.class_id == 0])
    assert found["tenants"]["count"] == 25
    assert len(found["tenants"]["largest"]) == 20
    shares = [item["share"] for item in found["tenants"]["largest"]]
    assert shares == sorted(shares, reverse=True)


def test_prefix_sharing_counts_what_came_before() -> None:
    prefix = Prefix(16, np.array([1, 2, 1, 3, 1, 2, 4]), np.array([0, 2, 4, 7, 7]))
    workload = Workload.of([0, 1, 2, 3], [40, 40, 48, 72], [1] * 4, name="x", prefix=prefix)
    assert inspect(workload)["prefix"] == {
        "block_tokens": 16,
        "requests": 3,
        "blocks": 7,
        "distinct_blocks": 4,
        "shared_tokens": 48,
        "shared_share": 48 / 200,
    }


def test_sessions_where_the_workload_has_them() -> None:
    workload = Workload.of([0, 1, 2, 3, 4], [1] * 5, [1] * 5, name="x")
    object.__setattr__(workload, "session", np.array([0, 0, -1, 1, 0]))
    found = inspect(workload)["sessions"]
    assert (found["count"], found["requests"], found["turns"]["mean"]) == (2, 4, 2.0)
