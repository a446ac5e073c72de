"""Our engine and our policies against vLLM's own scheduler, step by step.

Needs vLLM: ``scripts/vllm`` makes an environment that has it and runs this folder.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

pytest.importorskip("vllm", reason="vLLM is not installed here; run scripts/vllm")

from tailrace import hooks
from tailrace.errors import UserError
from tailrace.hooks import Policy, policy
from tailrace.policies.uniboost import gamma_path
from tailrace.studies import parity
from tailrace.vllm_plugin.offline import version

STEPS = 2000
COMPILED = {(policy, case) for policy in ("vllm_fcfs", "qba") for case in ("base", "async", "little memory")}
"""Compared as users run them. The others run as plain Python: 3 s each, and to compile a policy takes a minute."""


def _plan() -> list[Any]:
    pairs = parity.plan(version())
    return [pytest.param(*pair, marks=[] if pair in COMPILED else pytest.mark.plain) for pair in pairs]


def _agree(policy: str, case: str) -> None:
    steps = STEPS // 2 if policy in parity.LATER else STEPS
    found = parity.compare(parity.WORKLOAD.format(requests=steps), policy, case, steps)
    assert found.first_mismatch is None, found
    assert found.mismatched_steps == 0
    assert found.steps == steps


@pytest.mark.parametrize(("policy", "case"), _plan())
def test_every_step_is_the_same(policy: str, case: str) -> None:
    _agree(policy, case)


@pytest.mark.plain
@pytest.mark.parametrize("case", ["base", "async", "little memory"])
def test_a_policys_own_victims_reach_vllm(case: str) -> None:
    """vLLM's priority policy, once as it is and once through the plugin's victim hook."""
    _agree("plugin:vllm_priority", case)


@pytest.mark.plain
@pytest.mark.parametrize("case", ["base", "async"])
def test_gamma_is_fitted_alike(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """UniBoost's γ, in the simulator and in vLLM: the same values at the same times."""
    made: dict[str, Any] = {}

    def keep(name: str) -> Any:
        cls = getattr(parity, name)

        def build(*args: Any) -> Any:
            made[name] = cls(*args)
            return made[name]

        return build

    for name in ("Instance", "OfflineScheduler"):
        monkeypatch.setattr(parity, name, keep(name))
    policy = "uniboost:min_samples=20,gamma_max_per_s=1"
    found = parity.compare(parity.WORKLOAD.format(requests=700), policy, case, 700)
    assert found.mismatched_steps == 0
    ours = gamma_path(made["Instance"].engine.state)
    theirs = gamma_path(made["OfflineScheduler"].scheduler.host.engine.state)
    count = min(len(ours[0]), len(theirs[0]))  # one side may be a step ahead
    assert abs(len(ours[0]) - len(theirs[0])) <= 1
    assert count > 50
    assert len(set(ours[1][:count])) > 20
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a[:count], b[:count])


@policy("bounded", source="test")
class Bounded(Policy):
    """Few tokens a step, fewer while many wait."""

    keys = hooks.EVERY_STEP

    @staticmethod
    def step_limits(
        table: Any, live: Any, now: float, state: Any, scratch: Any, cost: Any, params: Any
    ) -> tuple[int, int, float]:
        return (40 if live.shape[0] > 9 else 90), hooks.NO_LIMIT, math.inf


@pytest.mark.plain
@pytest.mark.parametrize("case", ["base", "async"])
def test_a_policys_limit_of_the_step_reaches_vllm(case: str) -> None:
    _agree("bounded", case)


def test_the_comparison_sees_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that cannot fail proves nothing: one block less on our side must show."""
    ours = parity._ours
    text = parity.WORKLOAD.format(requests=500)

    def smaller(w, policy, settings):  # type: ignore[no-untyped-def]
        import dataclasses

        return ours(w, policy, dataclasses.replace(settings, blocks=settings.blocks - 1))

    monkeypatch.setattr(parity, "_ours", smaller)
    found = parity.compare(text, "vllm_fcfs", "little memory", 500)
    assert found.mismatched_steps > 0
    assert found.first_mismatch is not None


def test_mistakes() -> None:
    with pytest.raises(UserError, match="did you mean 'base'"):
        parity.compare("", "fcfs", "bas", 10)
    with pytest.raises(UserError, match="engine rules alone"):
        parity.compare(parity.WORKLOAD.format(requests=10), "sarathi", "base", 10)
