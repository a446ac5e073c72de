"""The numbers of a run's promises are those that its result would say."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from tailrace.metrics import Requests
from tailrace.sim.run import Instance
from tailrace.studies.reproduce import points, slos
from tailrace.studies.reproduce.points import Point
from tailrace.studies.reproduce.slos import MEASURES, measure
from tailrace.studies.reproduce.traffic import Generated, Promised, Windows
from tailrace.workloads import Service

pytestmark = pytest.mark.plain

SERVICE = Service("high@0.5 weight=2 + low@0.5 weight=1", "ttft_s=0.5,tpot_s=0.03")
TRAFFIC = Promised(
    Generated("poisson:rate_rps=30,requests=80,lengths=constant:200:20@0.8+constant:900:60@0.2"), SERVICE
)
POINT = Point(TRAFFIC, "slide", "vllm_v1:kv_tokens=9000", "qwen2-7b-a100-derived", measure="slos")


def _measured(point: Point, seed: int) -> tuple[dict[str, float], Instance]:
    made = points.run(point, seed)
    return dict(zip(MEASURES, measure(made, point.skipped), strict=True)), made


def test_they_are_those_of_the_results_summary() -> None:
    found, made = _measured(POINT, 2)
    summary = made.result().summary()
    for group, of in ({"": summary} | {f"{kind}_": summary["by_class"][kind] for kind in ("high", "low")}).items():
        assert found[f"{group}attainment"] == of["slo"]["attainment"]
        assert found[f"{group}ttft_attainment"] == of["slo"]["ttft_attainment"]
        assert found[f"{group}tpot_attainment"] == of["slo"]["tpot_attainment"]
        assert found[f"{group}tdg_ratio"] == pytest.approx(of["gain"]["tdg_ratio"])
    assert 0 < found["attainment"] < 1
    assert found["ttft_p99_s"] == pytest.approx(summary["metrics"]["ttft_s"]["p99"])
    assert found["wait_longest_s"] == pytest.approx(summary["starvation"]["longest_wait_s"])
    assert found["preemptions_per_request"] == summary["counts"]["preemptions"] / 80
    assert found["completed_share"] == 1.0
    assert found["recompute_tax"] == summary["recompute_tax"]
    steps = [found[f"{name}_steps_share"] for name in slos.REGIMES]
    assert sum(steps) == pytest.approx(1.0)
    assert found["density_steps_share"] == summary["tallies"]["density_steps"] / summary["engine"]["steps"]


def test_the_first_requests_can_be_left_out() -> None:
    found, made = _measured(dataclasses.replace(POINT, skipped=0.5), 2)
    r = made.result().requests
    late = np.arange(80) >= 40
    ok = (r.ttft_s < r.ttft_slo_s) & (r.tpot_s < r.tpot_slo_s)
    assert found["attainment"] == ok[late].mean()


def test_a_policy_without_findings_has_no_shares() -> None:
    found, _ = _measured(dataclasses.replace(POINT, policy="fcfs"), 2)
    assert np.isnan([found[f"{name}_steps_share"] for name in slos.REGIMES]).all()
    assert np.isnan(found["urgent_share"])


def _served(class_id: list[int], started: list[float], finish: list[float]) -> Requests:
    n = len(class_id)
    made = points.run(dataclasses.replace(POINT, traffic=Generated(f"deterministic:requests={n}")), 0).result().requests
    first = np.array(started) + 1.0
    return dataclasses.replace(
        made,
        arrival_s=np.linspace(0.0, 10.0, n),
        started_s=np.array(started),
        first_token_s=first,
        finish_s=np.array(finish),
        prompt_tokens=np.full(n, 100),
        output_tokens=np.full(n, 50),
        class_id=np.array(class_id),
    )


def test_service_is_counted_by_price_while_both_wait() -> None:
    # Between 2 s and 9 s: two whole requests of the first class; of the second one's output a half.
    r = _served([0, 0, 1, 1], [3.0, 4.0, 1.0, 20.0], [6.0, 8.0, 2.0 + 2.0, 30.0])
    first, second = 2 * (100 + 2 * 50), 2 * 50 * 2.0 / 2.0
    assert slos._service_ratio(r) == pytest.approx(first / second)


def test_promises_are_drawn_anew_for_each_number_and_known_by_the_key() -> None:
    assert TRAFFIC.key() != dataclasses.replace(TRAFFIC, service=dataclasses.replace(SERVICE, slo_scale=2.0)).key()
    a, b = TRAFFIC.load(0), TRAFFIC.load(1)
    assert (a.class_id != b.class_id).any()
    assert (TRAFFIC.load(0).class_id == a.class_id).all()


def test_windows_of_a_trace_are_promised_too(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    rows = [f"{i / 2},{i + 1},5" for i in range(400)]
    path.write_text("\n".join(["arrival_s,prompt_tokens,output_tokens", *rows]) + "\n")
    traffic = Promised(Windows(str(path), 4, 8.0, 1.0, 100), SERVICE)
    loaded = [traffic.load(i) for i in range(4)]
    assert [w.prompt_tokens[0] for w in loaded] == [1, 101, 201, 301]
    assert (loaded[0].class_id != loaded[1].class_id).any()
    assert set(loaded[0].ttft_slo_s) == {0.5}
