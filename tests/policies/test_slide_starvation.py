"""SlideBatching by hand: who starves, where it goes, and whose KV is spared (e)."""

from __future__ import annotations

import math

import pytest

from tailrace import hooks
from tailrace.policies.slide import _rank
from tailrace.registry import POLICIES

from .slide_queue import LATER_URGENT, NORMAL, PROMOTED, STARVING, URGENT, Queue, altered

pytestmark = pytest.mark.plain


def test_the_starving_go_first_in_their_share_of_steps() -> None:
    """A prefill waits since it came, whatever chunks it got; a decode since it was served."""
    queue = Queue(100, 100, 100, starve_s=2.0, starve_share=0.5, promote="head")
    queue.records["ttft_slo_s"] = 100.0
    queue.progress(0, 10, 4.0)
    queue.records["arrival_s"][2] = queue.state.served.at_s[2] = 3.0
    queue.decode(1, 5, 0.1)
    queue.state.served.at_s[1] = 0.5
    seen = []
    for _ in range(4):
        seen.append(queue.tiers(4.5))
        queue.step([2], 4.5)
        queue.state.served.at_s[2] = 3.0
    assert seen[0] == [NORMAL, URGENT, NORMAL]
    assert seen[1] == [STARVING, STARVING, NORMAL]
    assert seen[2:] == seen[:2]
    assert [key for _, key in queue.ranked(4.5)][:2] != [0.0, 0.5]
    queue.step([2], 4.5)
    assert [key for _, key in queue.ranked(4.5)][:2] == [0.0, 0.5]


def test_a_starving_prefill_goes_behind_urgent_decodes_and_before_all_prefills() -> None:
    queue = Queue(100, 50, 100, starve_s=2.0, starve_share=1.0)
    queue.records["ttft_slo_s"][0] = 100.0
    queue.records["arrival_s"][1] = 4.0
    queue.decode(2, 5, 0.1)
    queue.state.served.at_s[2] = 4.4
    assert queue.tiers(4.9) == [PROMOTED, LATER_URGENT, URGENT]


def test_who_nearly_starves_keeps_its_kv_and_else_the_tail_of_the_order_yields_first() -> None:
    """Half of 2 s: the decode was served at 4, the prefills came at 0, 3.5 and 3.9."""
    queue = Queue(100, 50, 60, 70, starve_s=2.0, starve_share=0.0, protect_share=0.5)
    queue.records["arrival_s"] = 0.0, 3.5, 0.0, 3.9
    queue.decode(2, 5, 0.1)
    queue.state.served.at_s[2] = 4.0
    ranked, args = queue.ranked(4.6), (queue.state, queue.scratch, queue.cost, queue.params)
    said = [hooks.victim(queue.table, row, 4.6, *args) for row in range(4)]
    assert [protected for protected, _ in said] == [True, True, False, False]
    last_first = sorted(range(4), key=lambda row: ranked[row], reverse=True)
    assert sorted(range(4), key=lambda row: said[row][1]) == last_first
    assert POLICIES.get("slide").rules(queue.params)["victim"] == "hook"
    assert POLICIES.get("slide").rules(queue.params._replace(starve_s=0.0))["victim"] == "tail"


@pytest.mark.parametrize("keys", [[-math.inf, -1e9, -3.0, 0.0, 1e-9, 5.0, math.inf]])
def test_tier_and_key_are_squeezed_into_one_number_in_order(keys: list[float]) -> None:
    numbers = [_rank(tier, key) for tier in range(3) for key in keys]
    assert numbers == sorted(set(numbers))


def test_steps_are_longer_while_anybody_starves() -> None:
    queue = Queue(10, 10, starve_s=2.0, starve_share=0.0)
    queue.decode(1, 5, 0.1)
    queue.state.served.at_s[1] = 2.0
    assert queue.load(1.9)[0] == pytest.approx(0.9 * 0.05)
    assert queue.load(2.1)[0] == pytest.approx(0.95 * 0.05)
    assert Queue.load(altered(queue, starve_s=0.0), 2.1)[0] == pytest.approx(0.9 * 0.05)
    assert Queue.load(altered(queue, starve_s=2.0, starve_eta=0.5), 2.1)[0] == pytest.approx(0.9 * 0.05)


def test_nobody_starves_unless_asked_for() -> None:
    queue = Queue(100, starve_share=1.0)
    assert STARVING not in queue.tiers(1e6)
