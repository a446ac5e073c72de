"""The adaptive γ: the fit, its limits, and what a new γ does to keys."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tailrace import hooks
from tailrace.errors import UserError
from tailrace.policies import uniboost
from tailrace.policies._boosting import boost_s
from tailrace.registry import POLICIES
from tailrace.sim.instance import DRAINED

from .hand import Hand
from .test_boost import crowded

WIDE: dict[str, Any] = {"gamma_min_per_s": 1e-6, "gamma_max_per_s": 1e3}
TRUE = 0.02
"""Rate of the exponential response times of a stationary stream."""


def fed(start: float, completions: int, **given: Any) -> Hand:
    """uniboost after a stationary stream: evenly spread quantiles of an exponential, 20 a second."""
    hand = Hand("uniboost", 1, **{"gamma_per_s": start, "window": 500, **WIDE, **given})
    share = (np.arange(1, completions + 1) * 0.6180339887498949) % 1.0
    for i, response_s in enumerate(-np.log1p(-share) / TRUE):
        now = i / 20.0
        hand.records["arrival_s"][0] = now - response_s
        hand.finish(0, now)
        hand.step([0], now)
    return hand


@pytest.mark.parametrize("start", [TRUE / 31.6, TRUE, TRUE * 31.6])
def test_gamma_converges_from_three_decades_of_starts(start: float) -> None:
    hand = fed(start, 5000, window=2000)
    assert hand.policy.tallies(hand.state)["gamma_per_s"] == pytest.approx(TRUE, rel=0.05)


def test_a_fit_is_ln_5_over_the_spread_then_averaged() -> None:
    hand = fed(0.5, 200, ema=0.3)  # one fit: as many as it needs
    share = (np.arange(1, 201) * 0.6180339887498949) % 1.0
    t95, t99 = np.quantile(-np.log1p(-share) / TRUE, [0.95, 0.99])
    tail = -(math.log(0.01) - math.log(0.05)) / (t99 - t95)
    assert hand.policy.tallies(hand.state)["gamma_fits"] == 1
    assert hand.policy.tallies(hand.state)["gamma_per_s"] == pytest.approx(0.7 * 0.5 + 0.3 * tail)


def test_gamma_stays_within_its_bounds_and_waits_for_samples() -> None:
    assert fed(0.004, 400, gamma_max_per_s=0.005).state.control.gamma_per_s[0] == 0.005
    assert fed(0.5, 2000, gamma_min_per_s=0.3).state.control.gamma_per_s[0] == 0.3
    assert fed(0.5, 199).state.control.gamma_per_s[0] == 0.5


def test_equal_response_times_have_no_tail() -> None:
    hand = Hand("uniboost", 1, min_samples=5, window=5, refit_s=0.0, ema=1.0)
    for _ in range(5):
        hand.finish(0, 3.0)
    hand.step([0], 3.0)
    assert hand.state.control.gamma_per_s[0] == 0.006


def test_fits_are_refit_s_apart_and_only_completions_count() -> None:
    hand = fed(0.5, 1000)  # 50 s, of which the first 10 bring too few
    times, values = uniboost.gamma_path(hand.state)
    assert np.diff(times).min() >= 5.0
    assert len(times) == hand.state.control.fits[0] == 9
    assert values[-1] == hand.state.control.gamma_per_s[0]
    held = int(hand.state.control.held[0])
    hooks.on_remove(hand.table, 0, hooks.ABORTED, 99.0, hand.state, hand.params)
    hooks.on_remove(hand.table, 0, hooks.REJECTED, 99.0, hand.state, hand.params)
    assert int(hand.state.control.held[0]) == held


def test_the_path_keeps_the_latest_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uniboost, "PATH", 4)
    hand = fed(0.5, 1000)
    times, values = uniboost.gamma_path(hand.state)
    assert len(times) == len(values) == 4
    assert (np.diff(times) > 0).all()
    assert values[-1] == hand.state.control.gamma_per_s[0]


@pytest.mark.parametrize("name", ["uniboost", "uniboost_rekeyed"])
def test_a_key_keeps_the_gamma_of_its_milestone_unless_all_are_revised(name: str) -> None:
    hand = Hand(name, 2, hysteresis_s=0.0, k_tokens=16, seconds_per_token=1.0, gamma_per_s=0.004)
    old = hand.key(1)
    assert old == 1.0 - boost_s(16.0, 0.004)
    hand.state.control.gamma_per_s[0] = 0.001
    assert hand.key(1) == (old if name == "uniboost" else 1.0 - boost_s(16.0, 0.001))
    hand.admit(1)
    hand.progress(1, 31)
    assert (hand.key(1) == old) == (name == "uniboost")
    hand.progress(1, 32)
    assert hand.key(1) == 1.0 - boost_s(32.0, 0.001)
    assert hand.victim(1) == (False, -hand.key(1))
    hand.preempt(1)
    assert hand.key(1) == 1.0 - boost_s(32.0, 0.001)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gamma_per_s": 0.5}, "gamma_per_s=0.5 must lie between .*gamma_max_per_s=0.006"),
        ({"window": 100}, "window=100 is below min_samples=200"),
    ],
)
def test_what_does_not_go_together_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Hand("uniboost", 1, **given)


def test_a_run_tells_its_gamma() -> None:
    more = {"min_samples": 5, "window": 20, "refit_s": 5.0, "k_tokens": 16, "seconds_per_token": 1.0, **WIDE}
    run = crowded("uniboost", {}, **more)
    assert run.advance() == DRAINED
    tallies = run.policy.tallies(run.engine.state)
    assert tallies["gamma_fits"] > 3
    times, values = run.result().paths["gamma_per_s"]
    assert len(times) == tallies["gamma_fits"]
    assert (np.diff(times) >= 5.0).all()
    assert values[-1] == tallies["gamma_per_s"]
    assert run.result().summary()["paths"] == {"gamma_per_s": {"time_s": times.tolist(), "value": values.tolist()}}
    response = run.records.out["finish_s"] - run.workload.arrival_s
    assert run.engine.state.control.held[0] == 20
    assert set(np.asarray(run.engine.state.recent.ring_s)) <= set(response)
    size = run.workload.prompt_tokens + run.workload.output_tokens
    assert (np.asarray(run.engine.state.guard.revisions) <= 1 + np.maximum(0, np.floor(np.log2(size / 16)))).all()


def test_the_other_reading_is_a_policy_of_its_own_as_its_keys_change_otherwise() -> None:
    assert POLICIES.get("uniboost").keys == hooks.ON_PROGRESS
    assert POLICIES.get("uniboost_rekeyed").keys == hooks.EVERY_STEP
