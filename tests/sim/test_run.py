"""What `simulate` adds to the engine: keys that are no numbers, and runs that get nowhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tailrace import hooks, params
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
