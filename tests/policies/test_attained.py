"""LAS and MLFQ: hooks by hand; whole runs against the reference are in tests/sim."""

from __future__ import annotations

import numpy as np
import pytest

from tailrace.policies.attained import MLFQ
from tailrace.sim.instance import DRAINED

from .hand import Hand
from .test_boost import crowded


def test_las_ranks_by_what_was_ever_computed() -> None:
    hand = Hand("las", 2)
    assert hand.key(0) == hand.key(1) == 0.0
    hand.admit(0)
    hand.progress(0, 12)
    hand.preempt(0)
    assert hand.key(0) == 12.0


def queues(hand: Hand, attained: range) -> list[int]:
    found = []
    for tokens in attained:
        hand.records["attained_tokens"][0] = tokens
        found.append(hand.tier_and_key(0)[0])
    return found


def test_a_request_moves_down_a_queue_with_each_quantum() -> None:
    hand = Hand("mlfq", 1, quantum_tokens=4, ratio=2, queues=4, join="top")
    assert queues(hand, range(32)) == [0] * 4 + [1] * 8 + [2] * 16 + [3] * 4
    assert queues(hand, range(1000, 1001)) == [3]  # the last has no quantum


def test_it_joins_the_queue_whose_quantum_holds_its_prompt() -> None:
    for prompt, queue in ((4, 0), (5, 1), (8, 1), (9, 2), (1000, 3)):
        hand = Hand("mlfq", 1, prompt, quantum_tokens=4, ratio=2, queues=4)
        assert queues(hand, range(1)) == [queue]
    hand = Hand("mlfq", 1, 9, quantum_tokens=4, ratio=2, queues=4)
    assert queues(hand, range(14, 18)) == [2, 2, 3, 3]


def test_who_waits_too_long_begins_anew_in_the_first_queue() -> None:
    hand = Hand("mlfq", 1, 100, quantum_tokens=4, starve_s=10.0)
    hand.records["attained_tokens"][0] = 150
    down = hand.tier_and_key(0)[0]
    hand.preempt(0, now=20.0)
    assert [hand.tier_and_key(0, now)[0] for now in (30.0, 30.5)] == [down, 0]
    hand.admit(0, now=30.5)
    assert hand.policy.tallies(hand.state) == {"starvation_promotions": 1}
    assert queues(hand, range(150, 156)) == [0, 0, 0, 0, 1, 1]
    hand.preempt(0, now=31.0)
    hand.admit(0, now=32.0)
    assert hand.policy.tallies(hand.state) == {"starvation_promotions": 1}


def test_least_service_leaves_long_requests_behind_and_promotion_helps_them() -> None:
    waits = {}
    for starve_s in (0.0, 20.0):
        run = crowded(MLFQ.name, {"max_seqs": 2}, 60, quantum_tokens=16, starve_s=starve_s)
        assert run.advance() == DRAINED
        waits[starve_s] = np.asarray(run.records.out["finish_s"] - run.workload.arrival_s)
    promoted = run.policy.tallies(run.engine.state)["starvation_promotions"]
    assert promoted > 0
    assert waits[20.0].max() != pytest.approx(waits[0.0].max())
