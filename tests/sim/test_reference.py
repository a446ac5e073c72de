"""The engine against the reference, step by step: who works how much, who leaves, who enters, when."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tailrace.policies.slide import FINDINGS
from tailrace.rules import managed
from tailrace.sim.instance import DRAINED, STUCK
from tailrace.sim.memory import MANAGED
from tailrace.sim.run import Instance

from ..schedule.slow_cache import queue
from .cached_cases import cached, tiered
from .cases import NAMES, PROFILED, TICK, Case, draw, managing, parking, swapping
from .model import Step
from .sink import SinkOracle


def latest(run: Instance) -> tuple[list[tuple[int, int, int]], list[int], list[int]]:
    """The step that started last: ``[(row, tokens, blocks)]``, evicted, admitted."""
    e = run.engine
    width = len(e.slots.items)
    slot = int(e.core.first_slot[0] + e.core.in_flight[0] - 1) % width
    base, count = slot * len(e.seats.run), int(e.slots.items[slot])
    work = [(int(e.items.row[i]), int(e.items.tokens[i]), int(e.items.blocks[i])) for i in range(base, base + count)]
    evicted = [int(row) for row in e.seats.evicted[: int(e.plan.evicted[0])]]
    return work, evicted, [int(row) for row in e.seats.admitted[: int(e.plan.admitted[0])]]


def expected(step: Step) -> tuple[list[tuple[int, int, int]], list[int], list[int]]:
    work = [(w.req.row, w.tokens, w.blocks) for w in step.work]
    return work, [r.row for r in step.evicted], [r.row for r in step.admitted]


def away(run: Instance) -> dict[int, tuple[int, bool]]:
    """Host blocks of those that hold any, and whether they are only reserved."""
    stored = run.engine.blocks.stored
    return {int(row): (int(stored.blocks[row]), bool(stored.place[row])) for row in np.flatnonzero(stored.blocks)}


PATIENCE = 300
"""Steps in which nobody gets further than before: a livelock."""


def compare(case: Case) -> Instance:
    """Run both to the end; returns the engine. Raises AssertionError at the first step that differs."""
    run, ref = case.instance(), case.reference()
    requests = list(ref.later)
    number = attained = since = 0
    while since < PATIENCE:
        before = int(run.records.counters["steps"][0])
        code = run.advance(steps=1)
        step = ref.advance()
        where = f"{case.label}, step {number}\n{case.config}\n{case.params}"
        if step is None:
            assert run.records.counters["steps"][0] == before, where
            assert code == (STUCK if ref.waiting or ref.running else DRAINED), where
            break
        assert latest(run) == expected(step), where
        assert run.engine.core.clock_s[0] == ref.clock, where
        running = run.engine.seats.run[: int(run.engine.core.running[0])]
        assert [int(row) for row in running] == [r.row for r in ref.running], where
        assert (run.engine.plan.pressure[0], run.engine.plan.escapes[0]) == (step.pressure, step.escapes), where
        if run.rules.evict == "swap":
            held = {r.row: (r.host, r.parked) for r in ref.waiting + ref.running if r.host}
            assert away(run) == held, where
        assert not run.rules.prefix_cache or queue(run.engine.blocks) == ref.cache.queue, where
        number, since = number + 1, since + 1
        if (total := sum(r.attained + r.delivered for r in requests)) > attained:
            attained, since = total, 0
    _outcomes(case, run, requests)
    if run.rules.evict == "swap":
        host = run.engine.blocks.host
        assert (host.parked[0], host.kept[0]) == (ref.parked, ref.kept), case.label
    found = [int(run.records.counters[name][0]) for name in ("displaced", "in_vain", "cached_tokens")]
    assert not run.rules.prefix_cache or found == [ref.displaced, ref.in_vain, ref.found], case.label
    if run.rules.evict == "swap":
        assert run.engine.blocks.lanes.blocks.tolist() == ref.copied, case.label
    if managed(run.rules):
        told = [int(getattr(run.engine.blocks.offload, name)[0]) for name in MANAGED if name != "orders"]
        want = [ref.discarded, ref.refused, ref.lost_tokens, ref.partial, ref.dropped, ref.skipped]
        assert told == want, case.label
    return run


def _outcomes(case: Case, run: Instance, requests: list[Any]) -> None:
    table, out = run.buffers.table, run.records.out
    for name in ("started", "first_token", "finish"):
        source = out if name == "finish" else table
        want = [np.nan if getattr(r, name) is None else getattr(r, name) for r in requests]
        np.testing.assert_array_equal(source[f"{name}_s"], want, err_msg=f"{case.label} {name}")
    assert [r.delivered for r in requests] == table["generated_tokens"].tolist(), case.label
    assert [r.preemptions for r in requests] == table["preemptions"].tolist(), case.label
    assert [r.lost for r in requests] == out["preempted_s"].tolist(), case.label
    assert [r.attained for r in requests] == table["attained_tokens"].tolist(), case.label
    if isinstance(case.oracle, SinkOracle):
        for name in ("admitted", "first", "progress", "prefilled", "preempted", "removed"):
            told = getattr(run.engine.state.told, name)
            assert [case.oracle.told[name, r.row] for r in requests] == told.tolist(), f"{case.label} {name}"
        ended = int(run.records.counters["steps"][0] - run.engine.core.in_flight[0])
        assert run.engine.state.told.steps[0] == ended, case.label


@pytest.mark.parametrize("name", NAMES)
def test_every_step_is_as_in_the_reference(name: str) -> None:
    for seed in range(240 if name == "sink" else 30):
        compare(draw(name, seed))


@pytest.mark.plain
def test_sliding_boundaries_are_as_in_the_reference() -> None:
    """Under both latency models, as one charges a decode like a prefill; whatever can decide a step does."""
    found = dict.fromkeys(FINDINGS, 0)
    for seed in range(100, 160):
        case = draw("slide", seed)
        if seed % 2:
            rules = dataclasses.replace(case.config.rules, decode_block_tokens=1)
            case.config = dataclasses.replace(case.config, rules=rules)
            case.latency = dataclasses.replace(case.latency, cost=PROFILED)
        run = compare(case)
        for name, count in run.policy.findings(run.engine.scratch).items():
            found[name] += int(count)
    assert min(found.values()) > 50, found


def _timed(seed: int, in_flight: tuple[int, ...], seconds: float, **rules: Any) -> Case:
    """A case whose steps are limited in time."""
    case = draw("sink", seed, in_flight)
    case.params = case.params._replace(seconds=seconds, sign=-1, protect=0, tokens=0)
    case.oracle = SinkOracle(case.params)
    case.config = dataclasses.replace(case.config, rules=dataclasses.replace(case.config.rules, **rules))
    return case


def test_limited_seconds_under_pressure() -> None:
    """The time of planned work is given back with it when it is evicted."""
    for seed in range(1, 200, 2):
        compare(_timed(seed, (1,), (2 + seed % 5) * TICK, victim="hook"))


@pytest.mark.plain
def test_seconds_as_tokens() -> None:
    """As a live engine has to take them: what is cut ends the step's tokens, and what the evicted give back is free."""
    differ = 0
    for seed in range(36):
        seconds = (TICK / 8, 2 * TICK, 4 * TICK, 16 * TICK)[seed % 4]
        victim = ("tail", "hook")[seed // 4 % 2]
        given = {"min_last_chunk": 0, "victim": victim, "phase_order": "running_first"}
        runs = [compare(_timed(seed, (1, 2), seconds, seconds_as=kind, **given)) for kind in ("tokens", "work")]
        counts = [int(run.records.counters["steps"][0]) for run in runs]
        differ += counts[0] != counts[1]
    assert differ > 2


CACHING = (
    "fcfs",
    "priority",
    "psf",
    "srpt",
    "qba",
    "sink",
    "uniboost_base",
    "memguard",
    "uniboost",
    "las",
    "mlfq",
    "ltr",
    "slide",
    "edf",
    "fairbatching",
    "vtc",
)


@pytest.mark.plain
@pytest.mark.parametrize("name", CACHING)
def test_a_prefix_cache_is_as_in_the_reference(name: str) -> None:
    """Down to the order of the free queue, so the same blocks lose their content."""
    found = displaced = 0
    for seed in range(5000, 5040 if name == "sink" else 5010):
        counters = compare(cached(name, seed)).records.counters
        found, displaced = found + int(counters["cached_tokens"][0]), displaced + int(counters["displaced"][0])
    assert found > 100
    assert displaced > 0 or name in ("fcfs", "psf", "qba", "fairbatching", "vtc")


SWAPPING = (
    *("fcfs", "priority", "psf", "sjf", "srpt", "qba", "sink", "gamma_boost", "dist_boost", "uniboost_base"),
    *("memguard", "uniboost", "uniboost_rekeyed", "las", "mlfq", "ltr", "trail"),
    *("edf", "fairbatching", "vtc", "slide"),
)
"""Policies that leave ``evict`` to the engine, and trail by swap."""
COMPILED = ("fcfs", "srpt", "qba", "sink", "memguard")
"""Compiled with host memory in other tests too; the others are held to the reference as plain Python."""
BOTH_WAYS = [name if name in COMPILED else pytest.param(name, marks=pytest.mark.plain) for name in SWAPPING]


def hosts(make: Callable[[str, int], Case], name: str, first: int, many: int) -> list[Any]:
    """Host memory after ``many`` cases of ``name``, as in the reference; after six times as many of the sink."""
    seeds = range(first, first + (6 * many if name == "sink" else many))
    return [compare(make(name, seed)).engine.blocks.host for seed in seeds]


@pytest.mark.parametrize("name", BOTH_WAYS)
def test_swapping_is_as_in_the_reference(name: str) -> None:
    found = hosts(swapping, name, 3000, 20)
    assert sum(host.swapped[0] for host in found) > 10
    assert sum(host.full[0] for host in found) > 0


@pytest.mark.parametrize("name", BOTH_WAYS)
def test_swapping_when_room_is_needed_is_as_in_the_reference(name: str) -> None:
    found = hosts(parking, name, 4000, 30)
    assert sum(host.swapped[0] for host in found) > 10
    assert sum(host.kept[0] for host in found) > 0


MANAGING = {"fcfs": 10, "srpt": 16, "psf": 10, "memguard": 10, "trail": 10, "slide": 24, "sink": 50}
"""How many cases of each; what it does depends little on the policy, but for the seconds of its steps."""


@pytest.mark.plain
@pytest.mark.parametrize("name", MANAGING)
def test_block_management_is_as_in_the_reference(name: str) -> None:
    """Whatever of it is on. Where the policy limits no seconds the copy budget binds nobody."""
    did = dict.fromkeys(MANAGED, 0)
    for seed in range(8000, 8000 + MANAGING[name]):
        run = compare(managing(name, seed))
        for counter in MANAGED:
            did[counter] += int(getattr(run.engine.blocks.offload, counter)[0])
    if name == "sink":
        assert min(did.values()) > 0, did
    assert did["orders"] > 100
    assert did["lost_tokens"] > 100


TIERED = ("fcfs", "srpt", "sink", "dist_boost", "uniboost_base", "memguard", "uniboost", "trail", "edf", "vtc")


@pytest.mark.plain
@pytest.mark.parametrize("name", TIERED)
def test_swapping_with_a_prefix_cache_is_as_in_the_reference(name: str) -> None:
    """Together with the order of the free queue, the blocks copied each way."""
    swapped = full = found = 0
    for seed in range(7000, 7050 if name == "sink" else 7012):
        run = compare(tiered(name, seed))
        host = run.engine.blocks.host
        swapped, full = swapped + int(host.swapped[0]), full + int(host.full[0])
        found += int(run.records.counters["cached_tokens"][0])
    assert swapped > 10
    assert full > 0
    assert found > 100


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_many_more_runs(name: str) -> None:
    for seed in range(10_000, 10_200 if name != "sink" else 10_500):
        compare(draw(name, seed, most=60))
