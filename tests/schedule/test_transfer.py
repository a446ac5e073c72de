"""Copies: one after the other in a lane, both lanes at once, and the step waits for the later one."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.schedule.blocks import counted
from tailrace.schedule.host import build_host
from tailrace.schedule.transfer import IN, OUT, ask, finished_s, lanes_wait_s, with_copies

OUT_S, IN_S = 0.25, 0.5


def lanes() -> Any:
    return build_host(4, 10, OUT_S, IN_S).lanes


def test_copies_of_one_lane_come_one_after_the_other() -> None:
    both = lanes()
    ask(both, OUT, 2, 20)
    ask(both, OUT, 3, 33)
    assert finished_s(both, OUT, 1.0) == 5 * OUT_S
    assert both.until_s[OUT] == 1.0 + 5 * OUT_S
    assert (both.blocks[OUT], both.tokens[OUT], both.asked[OUT]) == (5, 53, 0)


def test_a_busy_lane_begins_when_it_is_free() -> None:
    both = lanes()
    ask(both, IN, 4, 40)
    assert finished_s(both, IN, 1.0) == 2.0  # until 3
    ask(both, IN, 1, 10)
    assert finished_s(both, IN, 2.5) == 0.5 + IN_S
    assert both.until_s[IN] == 3.5
    ask(both, IN, 1, 10)
    assert finished_s(both, IN, 10.0) == IN_S  # idle since 3.5


@pytest.mark.parametrize(("out", "back", "want"), [(6, 1, 6 * OUT_S), (1, 6, 6 * IN_S), (4, 2, 1.0), (3, 0, 3 * OUT_S)])
def test_the_lanes_work_at_the_same_time(out: int, back: int, want: float) -> None:
    both = lanes()
    ask(both, OUT, out, out)
    ask(both, IN, back, back)
    assert lanes_wait_s(both, 7.0) == want
    assert lanes_wait_s(both, 7.0 + want) == 0.0  # nothing asked since


def test_a_step_is_as_much_longer_as_its_copies_take() -> None:
    held = build_host(4, 10, OUT_S, IN_S)
    assert with_copies(held, 1.0, 0.125) == 0.125
    ask(held.lanes, IN, 2, 20)
    assert with_copies(held, 2.0, 0.125) == 1.125
    ask(held.lanes, OUT, 1, 20)
    assert with_copies(held, 4.0, 0.125) == 0.375
    assert held.host.wait_s[0] == 1.25


def test_without_host_memory_a_step_takes_what_it_computes() -> None:
    assert with_copies(counted(), 3.0, 0.125) == 0.125
