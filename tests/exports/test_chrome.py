"""The trace is what the trace event format asks for, and says what happened."""

from __future__ import annotations

import dataclasses
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tailrace.errors import UserError
from tailrace.exports.chrome import write_trace

from .watched_runs import N, watched


def read(tmp_path: Path, steps_in_flight: int = 1) -> list[dict[str, Any]]:
    write_trace(str(tmp_path / "t.json"), watched(steps_in_flight))
    found = json.loads((tmp_path / "t.json").read_text(), parse_constant=lambda name: pytest.fail(name))
    return list(found["traceEvents"])


@pytest.mark.parametrize("steps_in_flight", [1, 2])
def test_events_are_in_order_named_and_nested(tmp_path: Path, steps_in_flight: int) -> None:
    events = read(tmp_path, steps_in_flight)
    assert {e["ph"] for e in events} == {"M", "X", "C"}
    times = [e["ts"] for e in events]
    assert times == sorted(times)
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in events if e["ph"] == "X"} <= named
    open_until: dict[Any, list[int]] = defaultdict(list)
    for e in (e for e in events if e["ph"] == "X"):
        stack, begin = open_until[e["pid"], e["tid"]], round(1000 * e["ts"])
        while stack and stack[-1] <= begin:
            stack.pop()
        end = begin + round(1000 * e["dur"])
        assert not stack or end <= stack[-1], e
        stack.append(end)


def test_steps_and_counters_are_the_runs(tmp_path: Path) -> None:
    events, seen = read(tmp_path), watched()
    steps = [e for e in events if e["ph"] == "X" and e["pid"] == 1]
    assert len(steps) == len(seen.steps)
    assert sum(e["args"]["prefill_tokens"] for e in steps) == seen.result.counters["prefill_tokens"]
    counters = [e for e in events if e["ph"] == "C"]
    assert {e["name"] for e in counters} == {"waiting", "running", "KV tokens"}
    assert max(e["args"]["running"] for e in counters if e["name"] == "running") == max(s.running for s in seen.steps)
    assert max(e["args"]["KV tokens"] for e in counters if e["name"] == "KV tokens") <= 900


def test_what_a_policy_kept_over_time_is_a_counter(tmp_path: Path) -> None:
    seen = watched()
    path = np.array([0.1, 0.1, 0.3]), np.array([0.5, 0.25, np.nan])
    result = dataclasses.replace(seen.result, paths={"gamma_per_s": path})
    write_trace(str(tmp_path / "p.json"), dataclasses.replace(seen, result=result))
    events = json.loads((tmp_path / "p.json").read_text())["traceEvents"]
    found = [(e["ts"], e["args"]) for e in events if e["ph"] == "C" and e["name"] == "gamma_per_s"]
    assert found == [(1e5, {"gamma_per_s": 0.5}), (1e5, {"gamma_per_s": 0.25})]
    times = [e["ts"] for e in events]
    assert times == sorted(times)


def test_a_requests_slices_are_its_times(tmp_path: Path) -> None:
    events, r = read(tmp_path), watched().result.requests
    spans = {int(e["name"].split()[1]): e for e in events if e["name"].startswith("request ")}
    assert len(spans) == N - 1  # the rejected one never was in the engine
    for row, e in spans.items():
        assert e["ts"] == pytest.approx(1e6 * r.arrival_s[row], abs=1e-3)
        assert e["dur"] == pytest.approx(1e6 * r.e2e_s[row], abs=2e-3)
    waited = sum(e["dur"] for e in events if e["name"] == "wait")
    assert waited == pytest.approx(1e6 * np.nansum(r.wait_s), rel=1e-6)
    parts = sum(e["dur"] for e in events if e["name"] in ("wait", "prefill", "decode", "preempted") and e["pid"] == 2)
    assert parts == pytest.approx(1e6 * np.nansum(r.e2e_s), rel=1e-6)
    assert any(e["name"] == "preempted" for e in events)


def test_a_place_that_cannot_be_written_is_one_line() -> None:
    with pytest.raises(UserError, match="cannot be written"):
        write_trace("/proc/nowhere/t.json", watched())
