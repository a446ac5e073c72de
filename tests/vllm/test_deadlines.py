"""Policies that limit a step's seconds, in vLLM's real Scheduler: deadlines of requests, and step times learned.

Needs vLLM. The clock is made up: a step takes what a latency model says of what vLLM scheduled.
"""

from __future__ import annotations

import itertools
import logging
from typing import Any

import numpy as np
import pytest

pytest.importorskip("vllm", reason="vLLM is not installed here; run scripts/vllm")

from tailrace import latency
from tailrace.studies import parity
from tailrace.vllm_plugin.learning import FIRST
from tailrace.vllm_plugin.offline import OfflineScheduler, Settings

pytestmark = pytest.mark.plain

TICKS = "piecewise:constant_s=0.01,per_token_s=0.001"
CLASSES = {"basic": {"weight": 1}, "gold": {"weight": 4}}


def _first(params: dict[str, Any], told: list[dict[str, Any]]) -> int:
    """Which of equal requests that came one after another starts first where one may run."""
    settings = {"policy": "slide", "params": params, "latency": TICKS, "classes": CLASSES}
    offline = OfflineScheduler(Settings(max_seqs=1, tailrace=settings))
    for row, of in enumerate(told):
        offline.add(row, [row + 1] * 20, 5, 0.001 * row, 0, {f"tailrace_{name}": value for name, value in of.items()})
    offline.now = 0.1
    step = offline.schedule()
    assert step is not None
    (row,) = step.admitted
    return row


def test_a_requests_slo_decides_when_it_starts() -> None:
    """As it says of itself: the plan of slide, and so vLLM's step, is another."""
    soon, late = {"ttft_slo_ms": 2_000}, {"ttft_slo_ms": 9_000}
    assert _first({}, [{}, {}]) == 0
    assert _first({}, [late, soon]) == 1
    assert _first({}, [soon, late]) == 0
    assert _first({}, [{}, late]) == 1  # without one it has no deadline


def test_a_requests_class_decides_when_it_starts() -> None:
    """Both are urgent, and the heavier gains more for the same work."""
    asks = {"ttft_slo_ms": 500}
    urgent = {"order": "density"}
    assert _first(urgent, [asks, asks]) == 0
    assert _first(urgent, [asks, {**asks, "class": "gold"}]) == 1
    assert _first(urgent, [{**asks, "class": "gold"}, asks]) == 0


@pytest.mark.parametrize(("policy", "case"), [("slide", "base"), ("slide", "async"), ("fairbatching", "base")])
def test_step_times_are_learned_in_vllm(
    policy: str, case: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """From what the plugin itself measures the true coefficients come out, and then seconds bind."""
    made: list[OfflineScheduler] = []
    limits: list[int] = []

    def keep(settings: Settings) -> OfflineScheduler:
        made.append(OfflineScheduler(settings))
        return made[0]

    monkeypatch.setattr(parity, "OfflineScheduler", keep)
    w = parity._workload(parity.WORKLOAD.format(requests=300), False)
    given = (
        {"t_min": "all"} if policy == "slide" else {}
    )  # a late prefill's deadline binds too, so seconds do more often
    plugin = {"policy": policy, "params": given, "classes": parity._classes(w)}
    settings = Settings(tailrace=plugin, steps_in_flight=parity.CASES[case].steps_in_flight)
    cost = latency.build(parity.TIMED).cost
    with caplog.at_level(logging.WARNING, "vllm.tailrace"):
        steps = parity._theirs(w, settings, cost)
        for number, _ in enumerate(itertools.islice(steps, 400)):
            if made[0].scheduler.host._decision.most_tokens is not None:
                limits.append(number)
    assert f"step times are learned; until {FIRST} steps are measured no seconds bind" in caplog.text
    times = made[0].scheduler.host.times
    assert times.fits > 3
    assert times.failures == 0
    np.testing.assert_allclose(times.cost, cost, rtol=1e-6)
    assert min(limits) >= FIRST
    assert len(limits) > 5
