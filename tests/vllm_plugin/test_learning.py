"""Step times learned while serving."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
import pytest

from tailrace.latency import ProfiledParams, StepShape, mape, step_seconds, step_shape
from tailrace.vllm_plugin import learning
from tailrace.vllm_plugin.learning import FIRST, UNKNOWN, StepTimes

from .hosts import arrive, decide, learner, make_host

pytestmark = pytest.mark.plain

TRUE = ProfiledParams(2e-3, 1e-8, 2e-8, 5e-5, 1e-7, 2e-8, 4e-5)


def _shape(rng: np.random.Generator, mixed: float) -> StepShape:
    """A step: decodes, in a share of them with one or two chunks."""
    chunks = int(rng.integers(1, 3)) if rng.random() < mixed else 0
    prefills = [(int(rng.integers(1, 500)), int(rng.integers(0, 3)) * 400) for _ in range(chunks)]
    return step_shape(prefills, [(1, int(rng.integers(1, 2000))) for _ in range(int(rng.integers(1, 64)))])


def _learn(times: StepTimes, count: int, mixed: float, seed: int, odd: float = 0.0, noise: float = 0.1) -> None:
    """Steps of `TRUE` with noise; in a share of ``odd`` each, held up or with results that came together."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        shape = _shape(rng, mixed)
        times.add(list(shape), step_seconds(shape, TRUE) * rng.lognormal(0.0, noise) * _oddness(rng, odd))


def _oddness(rng: np.random.Generator, odd: float) -> float:
    drawn = rng.random()
    return 10.0 if drawn < odd else 0.001 if drawn < 2 * odd else 1.0


def _error(times: StepTimes, mixed: float) -> float:
    """On steps it has not seen, without noise."""
    rng = np.random.default_rng(99)
    shapes = [_shape(rng, mixed) for _ in range(300)]
    return mape([(shape, step_seconds(shape, TRUE)) for shape in shapes], times.cost)


def test_it_finds_how_long_steps_take() -> None:
    times = StepTimes()
    _learn(times, 3000, 0.3, seed=1, odd=0.01)
    assert _error(times, 0.3) < 0.05
    assert times.mape < 0.14  # 8 % of noise, and 2 % of steps that are off by all or nearly all
    assert times.failures == 0
    assert 10 < times.fits < 25


def test_without_noise_the_model_is_found() -> None:
    times = StepTimes()
    _learn(times, 3000, 0.3, seed=2, noise=0.0)
    np.testing.assert_allclose(times.cost, TRUE, rtol=1e-6)


def test_decodes_do_not_push_out_prefills() -> None:
    times = StepTimes()
    _learn(times, 300, 1.0, seed=3)
    _learn(times, 10_000, 0.0, seed=4)
    assert _error(times, 1.0) < 0.06


def test_it_follows_when_steps_become_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    times = StepTimes()
    _learn(times, 1000, 0.3, seed=5)
    monkeypatch.setitem(globals(), "TRUE", ProfiledParams(*(value / 5 for value in TRUE)))
    _learn(times, 8000, 0.3, seed=6)
    assert _error(times, 0.3) < 0.1


def test_the_window_is_bounded() -> None:
    times, rng = StepTimes(), np.random.default_rng(7)
    for _ in range(5000):
        q, count = int(2 ** rng.uniform(0, 14)), int(2 ** rng.uniform(0, 10))
        times.add(list(step_shape([(q, int(2 ** rng.uniform(0, 17)))], [(1, 50)] * count)), 1.0)
    rows = [row for kept in times._kept.values() for row in kept]
    assert len(rows) == len(set(rows))
    assert len(rows) + len(times._free) == learning.WINDOW
    assert max(map(len, times._kept.values())) == learning.SAME


def test_nothing_takes_time_until_enough_is_known() -> None:
    times = StepTimes()
    _learn(times, FIRST - 1, 0.5, seed=8)
    assert (times.cost, times.fits) == (UNKNOWN, 0)
    assert math.isnan(times.mape)
    _learn(times, 1, 0.5, seed=9)
    assert times.fits == 1
    assert times.cost.constant_s > 0


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.inf, math.nan])
def test_a_clock_that_was_set_teaches_nothing(seconds: float) -> None:
    times = StepTimes()
    assert not times.add(list(step_shape([], [(1, 5)])), seconds)
    assert times.steps == 0


@pytest.mark.parametrize(
    "outcome", [RuntimeError("too many iterations"), np.linalg.LinAlgError("singular"), ZeroDivisionError(), math.nan]
)
def test_a_fit_that_fails_leaves_the_model(
    outcome: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*args: Any) -> ProfiledParams:
        if isinstance(outcome, Exception):
            raise outcome
        return ProfiledParams(outcome)

    times = StepTimes()
    _learn(times, 100, 0.5, seed=10)
    before, fits = times.cost, times.fits
    monkeypatch.setattr(learning, "fit_features", fails)
    with caplog.at_level(logging.WARNING, "vllm.tailrace"):
        _learn(times, 300, 0.5, seed=11)
    assert (times.cost, times.fits) == (before, fits)
    assert times.failures > 1
    assert f"1 of {1 + fits} fits of step times failed" in caplog.text


def test_what_it_learned_is_said(caplog: pytest.LogCaptureFixture) -> None:
    times = StepTimes()
    with caplog.at_level(logging.INFO, "vllm.tailrace"):
        _learn(times, 300, 0.5, seed=12)
    said = [record.getMessage() for record in caplog.records]
    assert said[0].startswith("tailrace: step times learned from 64 steps: {'constant_s': ")
    assert "% on the " in said[1]


def test_the_host_measures_what_steps_hold() -> None:
    host = make_host("fairbatching", times=StepTimes())
    arrive(host, "a", 0.0, prompt_tokens=30)
    first = host.commit(decide(host, [], 900, 0.0), {"a": 20}, {"a": 0}, [])
    assert StepShape(*first.sums.tolist()) == step_shape([(20, 0)])
    host.complete(first, [0], [20], [False], 1.0)
    arrive(host, "b", 1.0, prompt_tokens=50)
    second = host.commit(decide(host, ["a"], 900, 1.0), {"a": 10, "b": 18}, {"b": 32}, [])  # 32 were cached
    assert StepShape(*second.sums.tolist()) == step_shape([(10, 20), (18, 32)])
    host.complete(second, [1, 1], [30, 50], [False, False], 2.0)
    third = host.commit(decide(host, ["a", "b"], 900, 2.0), {"a": 1, "b": 1}, {}, [])
    assert StepShape(*third.sums.tolist()) == step_shape([], [(1, 30), (1, 50)])
    assert host.times is not None
    assert host.times.steps == 2


def test_a_step_lasts_from_the_end_of_the_one_before() -> None:
    """Two are in flight; and the time in which nothing runs is no step's."""
    took = []

    class Noting(StepTimes):
        def add(self, sums: list[int], seconds: float) -> bool:
            took.append(seconds)
            return False

    host = make_host("fairbatching", times=Noting())
    arrive(host, "a", 10.0, prompt_tokens=20)
    first = host.commit(decide(host, [], 900, 10.0), {"a": 10}, {"a": 0}, [])
    second = host.commit(decide(host, ["a"], 900, 10.5), {"a": 10}, {}, [])
    host.complete(first, [0], [10], [False], 12.0)
    host.complete(second, [1], [20], [False], 15.0)
    third = host.commit(decide(host, ["a"], 900, 20.0), {"a": 1}, {}, [])
    host.complete(third, [2], [21], [False], 20.25)
    assert took == [2.0, 3.0, 0.25]


def test_a_step_that_is_not_known_whole_is_not_measured() -> None:
    host = make_host("fairbatching", capacity=1, times=StepTimes())
    for name in "ab":
        arrive(host, name, 0.0)
    step = host.commit(decide(host, [], 900, 0.0), {"a": 10, "b": 10}, {"a": 0, "b": 0}, [])
    host.complete(step, [1], [10], [False], 1.0)
    assert host.times is not None
    assert host.times.steps == 0


def test_seconds_bind_once_step_times_are_known() -> None:
    """0.5 s a step and 8 tokens a second: the decode has 5 s left, and 36 tokens fit."""
    host = make_host("fairbatching", times=learner(0.5, 0.125))
    arrive(host, "a", 0.0, prompt_tokens=10, ttft_slo_s=6.0, tpot_slo_s=1.0)
    host.complete(host.note({"a": 10}, {"a": 0}, [], 0.0), [1], [10], [False], 2.0)
    arrive(host, "b", 2.0, prompt_tokens=200, ttft_slo_s=6.0, tpot_slo_s=1.0)
    decision = decide(host, ["a"], 900, 2.0)
    assert decision.most_tokens is None
    host.complete(host.commit(decision, {"a": 1}, {}, []), [1], [11], [False], 2.625)
    assert host.engine.cost.constant_s == pytest.approx(0.5)
    assert decide(host, ["a"], 900, 2.0).most_tokens == 36
