"""What `simulate` adds to the engine: keys that are no numbers, and runs that get nowhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tailrace import hooks, params, spec
from tailrace.config import engine
from tailrace.errors import UserError
from tailrace.hooks import Policy, policy
from tailrace.latency import build
from tailrace.registry import POLICIES
from tailrace.sim import run
from tailrace.workloads import load


@policy("nan_for_even", source="a test")
class NanForEven(Policy):
    """Has no key for every second request."""

    keys = hooks.STATIC

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        return 0, math.nan if row % 2 == 0 else 1.0


@pytest.mark.plain
def test_a_key_that_is_no_number_ranks_last() -> None:
    w = load("deterministic:gap_s=0,requests=20,prompt=120,output=8")
    cls: Any = NanForEven
    values = params.build(cls.Params, {}, "nan_for_even")
    found = run.simulate(w, NanForEven, values, engine("qba"), build("qba")).requests
    odd = np.arange(20) % 2 == 1
    assert found.started_s[odd].max() < found.started_s[~odd].min()


def test_a_run_that_gets_nowhere_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    fcfs = POLICIES.get("fcfs")
    w = load("qba:requests=50")
    monkeypatch.setattr(run, "SLICE", 5)
    assert run.simulate(w, fcfs, fcfs.Params(), engine("qba"), build("qba")).counters["completed"] == 50
    monkeypatch.setattr(run.Instance, "progress", lambda self: 7)
    with pytest.raises(UserError, match="preempt each other for ever"):
        run.simulate(w, fcfs, fcfs.Params(), engine("qba"), build("qba"))


def _steps_s(setting: str) -> tuple[float, float, int]:
    """``(busy seconds, end, steps)`` of a few requests served one after the other."""
    fcfs = POLICIES.get("fcfs")
    w = load("deterministic:gap_s=1,requests=400,prompt=20,output=80")
    result = run.simulate(w, fcfs, fcfs.Params(), engine("qba", spec.parse(f"qba:{setting}")[1]), build("qba"))
    return result.counters["busy_s"], float(result.requests.finish_s.max()), int(result.counters["steps"])


def test_jitter_scatters_step_times_about_the_models() -> None:
    plain, _, steps = _steps_s("step_jitter=0")
    first, end, same = _steps_s("step_jitter=0.2,jitter_seed=1")
    assert steps == same == 400 * 11
    assert plain == pytest.approx(steps * 0.003)
    assert first != plain
    # Mean 1, so the sum strays from the model's by 0.2 sqrt(n) of a step: here within five of those.
    assert abs(first - plain) < 5 * 0.2 * 0.003 * math.sqrt(steps)
    assert _steps_s("step_jitter=0.2,jitter_seed=1")[:2] == (first, end)
    assert _steps_s("step_jitter=0.2,jitter_seed=2")[0] != first
    with pytest.raises(UserError, match=r"step_jitter=-1.0 must be a number in \[0, 10\]"):
        engine("qba", {"step_jitter": "-1"})


def test_a_policy_tells_what_it_did() -> None:
    psf, aa, qba = (POLICIES.get(name) for name in ("psf", "aa", "qba"))
    w = load("qba:rate_rps=40,requests=600")
    told = [run.simulate(w, p, params.build(p.Params, {}, ""), engine("qba"), build("qba")) for p in (psf, aa, qba)]
    assert "tallies" not in told[0].summary()
    for result in told[1:]:
        tallies = result.summary()["tallies"]
        assert tallies["predicted_long_started"] == (w.predicted_class == 1).sum()
        assert 0 < tallies["promoted"] <= tallies["predicted_long_started"] - 20
    # One promotion for each five completed shorts at most.
    assert told[2].tallies["promoted"] <= (w.predicted_class == 0).sum() / 5
