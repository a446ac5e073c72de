"""LTR and TRAIL: hooks by hand, and TRAIL without an age limit against srpt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tailrace.sim.instance import DRAINED
from tailrace.sim.run import Instance

from .hand import Hand
from .test_boost import crowded


def test_ltr_ranks_by_the_prediction_at_arrival() -> None:
    hand = Hand("ltr", 2)
    hand.records["predicted_output_tokens"] = [30, 20]
    assert [hand.tier_and_key(row) for row in (0, 1)] == [(1, 30.0), (1, 20.0)]
    hand = Hand("ltr", 1, 100, work="total")
    assert hand.key(0) == 110.0


def test_ltr_puts_the_idle_first_for_some_steps_of_service() -> None:
    hand = Hand("ltr", 2, idle_steps=3, quantum_steps=2)
    tiers = []
    for rows in ([0], [0], [0], [1], [0], [1], [1]):
        tiers.append(hand.tier_and_key(1)[0])
        hand.step(rows)
    assert tiers == [1, 1, 1, 0, 0, 0, 1]  # idle for three steps; then until it was served twice
    assert hand.policy.tallies(hand.state) == {"starvation_promotions": 1}
    assert hand.tier_and_key(0)[0] == 1


def test_ltr_without_idle_steps_promotes_nobody() -> None:
    hand = Hand("ltr", 2, idle_steps=0)
    for _ in range(500):
        hand.step([0])
    assert hand.tier_and_key(1)[0] == 1


def test_ltr_forgets_who_left() -> None:
    hand = Hand("ltr", 2, idle_steps=2, quantum_steps=9)
    for rows in ([0], [0], [1]):
        hand.step(rows)
    assert hand.state.service.left_steps[1] == 8
    hand.records["phase"][1] = 4  # done in a step that still names it
    hand.step([1])
    assert hand.state.service.left_steps[1] == 8


@pytest.mark.parametrize(("c", "limit"), [(0.0, 0), (0.8, 8), (1.0, 99)])
def test_trail_protects_past_its_age_limit(c: float, limit: int) -> None:
    hand = Hand("trail", 1, c=c)
    for generated in range(12):
        hand.records["generated_tokens"][0] = generated
        assert hand.may_preempt(0) == (generated < limit)
        assert hand.victim(0) == (generated >= limit, -hand.key(0))


def outcome(run: Instance) -> tuple[list[float], list[int]]:
    assert run.advance() == DRAINED
    return run.records.out["finish_s"].tolist(), run.buffers.table["preemptions"].tolist()


@pytest.mark.parametrize("config", [{"max_seqs": 2}, {"max_seqs": 0, "kv_tokens": 200, "block_tokens": 1}])
def test_without_an_age_limit_trail_is_srpt(config: dict[str, Any]) -> None:
    for work in ("total", "output"):
        trail = outcome(crowded("trail", config, c=1.0, work=work))
        assert trail == outcome(crowded("srpt", config, work=work))
        assert sum(trail[1]) > 0


def test_an_age_limit_of_nothing_displaces_nobody() -> None:
    run = crowded("trail", {"max_seqs": 2, "kv_tokens": 4096}, c=0.0)
    assert sum(outcome(run)[1]) == 0


def test_decode_first_displaces_nobody_and_keeps_decodes_going() -> None:
    run = crowded("trail", {"max_seqs": 4, "kv_tokens": 4096}, rule="decode_first")
    finish, preemptions = outcome(run)
    assert sum(preemptions) == 0
    gaps = run.records.out["gap_max_s"]
    assert np.nanmax(gaps) == pytest.approx(1.0)  # a token in every step of a second
    assert finish != outcome(crowded("trail", {"max_seqs": 4, "kv_tokens": 4096}))[0]


def test_the_rule_is_the_engines_to_carry_out() -> None:
    for rule, want in (("recompute", "recompute"), ("swap", "swap"), ("decode_first", "recompute")):
        hand = Hand("trail", 1, rule=rule)
        assert hand.policy.rules(hand.params)["evict"] == want
