"""The engine with a prefix cache: invariants, and what the cache must and must not change."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tailrace.errors import UserError
from tailrace.rules import EngineRules
from tailrace.sim import invariants
from tailrace.sim.run import Instance
from tailrace.workloads.prefix import Prefix

from .cached_cases import cached
from .test_invariants import walk


def _count(run: Instance, name: str) -> int:
    return int(run.records.counters[name][0])


@pytest.mark.plain
def test_frozen_keys_stay_fresh() -> None:
    """memguard, whose effective work becomes less once it is known how much of a prompt was found."""
    found = revised = 0
    for seed in range(24):
        run = walk(cached("memguard", seed), every=1)
        guard = run.engine.state.guard
        cached_tokens = np.asarray(guard.found_tokens) - 1
        size = np.maximum(run.workload.prompt_tokens + run.workload.output_tokens, run.params.k_tokens)
        bound = 1 + np.floor(np.log2(size / run.params.k_tokens)) + (cached_tokens > 0) * 8
        assert (np.asarray(guard.revisions) <= bound).all()
        found, revised = found + _count(run, "cached_tokens"), revised + int(np.asarray(guard.revisions).max())
    assert found > 500
    assert revised > 24


@pytest.mark.parametrize("name", ["srpt", pytest.param("sink", marks=pytest.mark.plain)])
def test_invariants_hold(name: str) -> None:
    found = displaced = 0
    for seed in range(40):
        run = walk(cached(name, seed), every=1 if seed % 4 == 0 else 3, pure=seed % 4 == 0)
        found, displaced = found + _count(run, "cached_tokens"), displaced + _count(run, "displaced")
        blocks = run.engine.blocks
        done = run.records.out["reason"] > 0
        if done.all():
            assert blocks.pool.free[0] == run.buffers.core["total_blocks"][0]
            assert not np.asarray(blocks.nodes.users).any()
        assert _count(run, "in_vain") <= _count(run, "displaced")
    assert found > 500
    assert displaced > {"sink": 3, "srpt": 20}[name]


def test_a_cache_that_nobody_hits_changes_nothing() -> None:
    hits = 0
    for seed in range(30):
        case = cached("srpt", seed, groups=1)
        case.workload = dataclasses.replace(case.workload, prefix=None)
        case.config = dataclasses.replace(case.config, kv_tokens=100_000)
        plain = dataclasses.replace(case.config.rules, prefix_cache=False)
        other = dataclasses.replace(case, config=dataclasses.replace(case.config, rules=plain))
        runs = [case.instance(), other.instance()]
        for run in runs:
            run.advance()
        if _count(runs[0], "preemptions"):
            hits += 1
            continue  # the preempted find their own blocks again
        for column in ("finish_s", "reason"):
            np.testing.assert_array_equal(runs[0].records.out[column], runs[1].records.out[column])
    assert hits < 25


def test_a_preempted_request_finds_its_own_blocks_again() -> None:
    with_cache = without = 0
    for seed in range(30):
        case = cached("srpt", seed)
        case.workload = dataclasses.replace(case.workload, prefix=None)
        plain = dataclasses.replace(case.config.rules, prefix_cache=False)
        other = dataclasses.replace(case, config=dataclasses.replace(case.config, rules=plain))
        for run in (case.instance(), other.instance()):
            run.advance(steps=300)
            if run.rules.prefix_cache:
                with_cache += _count(run, "recomputed_tokens")
                assert _count(run, "cached_tokens") >= 0
            else:
                without += _count(run, "recomputed_tokens")
    assert 0 < with_cache < without


def test_two_that_start_together_compute_their_common_part_once() -> None:
    case = cached("srpt", 1)
    w = case.workload.of(
        [0.0, 0.0],
        [40, 40],
        [2, 2],
        name="twins",
        prefix=Prefix(16, np.array([7, 8, 7, 8]), np.array([0, 2, 4])),
    )
    rules = EngineRules(prefix_cache=True)
    case.workload = w
    case.config = dataclasses.replace(case.config, rules=rules, token_budget=100, kv_tokens=1600, max_seqs=0)
    run = case.instance()
    run.advance(steps=1)
    assert _count(run, "step_tokens") == 40 + 8
    assert run.buffers.table["cached_tokens"][:2].tolist() == [0, 32]
    invariants.check(run)


def test_what_does_not_go_together() -> None:
    with pytest.raises(UserError, match="prefix_cache needs admit=chunk and kv_limit=enforced"):
        EngineRules(prefix_cache=True, admit="prompt")
