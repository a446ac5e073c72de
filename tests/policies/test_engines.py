"""prefill_first and sarathi_priority: the engines of ProServe's baselines, in small runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tailrace.latency import Latency, PiecewiseParams
from tailrace.registry import POLICIES
from tailrace.sim.instance import DRAINED, PAUSED
from tailrace.sim.run import Instance
from tailrace.table import DECODE, PREFILL
from tailrace.workloads.workload import Workload

from .hand import instance

pytestmark = pytest.mark.plain

SECOND = Latency("a step a second", PiecewiseParams(constant_s=1.0, per_token_s=0.0), None, "")


def run(name: str, workload: Workload, config: dict[str, Any], **given: Any) -> Instance:
    made = instance(name, workload, SECOND, config, **given)
    assert made.advance() == DRAINED
    return made


def crowd(weights: tuple[float, float]) -> Workload:
    """60 requests of two classes."""
    rng = np.random.default_rng(8)
    return Workload.of(
        np.cumsum(rng.exponential(2.0, 60)),
        rng.integers(4, 90, 60),
        rng.integers(1, 30, 60),
        name="crowd",
        class_id=rng.integers(0, 2, 60),
        class_names=("low", "high"),
        class_weights=weights,
    )


TIGHT = {"kv_tokens": 240}


def mean_ttft_s(run: Instance) -> list[float]:
    """By class."""
    table = run.buffers.table
    ttft = table["first_token_s"] - table["arrival_s"]
    return [float(ttft[table["class_id"] == each].mean()) for each in (0, 1)]


def test_with_equal_weights_sarathi_priority_is_sarathi() -> None:
    for config in ({}, TIGHT):
        mine, sarathi = run("sarathi_priority", crowd((1.0, 1.0)), config), run("sarathi", crowd((1.0, 1.0)), config)
        assert mine.buffers.table.tobytes() == sarathi.buffers.table.tobytes()
    assert mine.buffers.table["preemptions"].sum() > 0


@pytest.mark.parametrize("begun", ["first", "ranked"])
def test_the_heavier_class_waits_less(begun: str) -> None:
    low, high = mean_ttft_s(run("sarathi_priority", crowd((1.0, 2.0)), TIGHT, begun=begun))
    assert high < 0.5 * low


@pytest.mark.parametrize(("weights", "loser"), [((1.0, 2.0), 0), ((1.0, 1.0), 1), ((2.0, 1.0), 1)])
def test_the_lighter_class_yields_kv_then_the_latest_arrival(weights: tuple[float, float], loser: int) -> None:
    workload = Workload.of(
        [0.0, 0.5], 40, 60, name="two", class_id=[0, 1], class_names=("a", "b"), class_weights=weights
    )
    lost = run("sarathi_priority", workload, {"kv_tokens": 140}).buffers.table["preemptions"]
    assert lost[loser] > 0
    assert lost[1 - loser] == 0


@pytest.mark.parametrize(("begun", "first_token_s"), [("first", [4.0, 5.0]), ("ranked", [5.0, 2.0])])
def test_whether_a_long_prompt_that_has_begun_is_overtaken(begun: str, first_token_s: list[float]) -> None:
    workload = Workload.of(
        [0.0, 0.5], [128, 20], 1, name="two", class_id=[0, 1], class_names=("low", "high"), class_weights=(1.0, 2.0)
    )
    found = run("sarathi_priority", workload, {}, begun=begun).buffers.table["first_token_s"]
    assert found.tolist() == first_token_s


def shapes(decodes: str, **config: Any) -> list[tuple[int, int]]:
    """``(prefills, decodes)`` of every step."""
    made = instance("prefill_first", crowd((1.0, 1.0)), SECOND, config, decodes=decodes)
    found: list[tuple[int, int]] = []
    phase = made.buffers.table["phase"]
    while True:
        before = phase.copy()
        if made.advance(steps=1) != PAUSED:
            return found
        e = made.engine
        rows = [int(e.items.row[i]) for i in range(int(e.slots.items[0]))]
        decoding = sum(before[row] == DECODE for row in rows)
        found.append((len(rows) - decoding, decoding))
        assert int(np.isin(phase, (PREFILL, DECODE)).sum()) <= made.config.max_seqs


def test_decodes_wait_for_prefills_or_take_what_is_left() -> None:
    waiting, filling = shapes("wait"), shapes("fill")
    for found in (waiting, filling):
        assert sum(prefills > 0 for prefills, _ in found) > 60
        assert sum(decodes > 0 for _, decodes in found) > 100
    assert not any(prefills and decodes for prefills, decodes in waiting)
    assert any(prefills and decodes for prefills, decodes in filling)


def test_the_engine_bounds_how_many_run() -> None:
    for most in (2, 5):
        assert max(decodes for _, decodes in shapes("wait", max_seqs=most)) == most


def test_the_latest_arrival_yields_and_is_recomputed() -> None:
    """Two outgrow the KV: the first is never preempted."""
    workload = Workload.of([0.0, 0.5], [40, 40], [60, 60], name="two")
    made = run("prefill_first", workload, {"kv_tokens": 140, "max_seqs": 2})
    assert made.buffers.table["preemptions"][0] == 0
    assert made.buffers.table["preemptions"][1] > 0
    assert made.records.counters["recomputed_tokens"][0] > 40


def test_they_are_whole_engines() -> None:
    assert POLICIES.get("prefill_first").rules_alone
    assert not POLICIES.get("sarathi_priority").rules_alone  # its order is its own
