"""Copies ahead: when they are ordered, in which order they are made, and what of them is discarded."""

from __future__ import annotations

import numpy as np
import pytest

from tailrace.schedule.host import build_host
from tailrace.schedule.kv import give_back
from tailrace.schedule.managed import ManagedKV, Management, build_managed, pipelined
from tailrace.schedule.offload import catch_up, order
from tailrace.schedule.transfer import IN, OUT, ask

pytestmark = pytest.mark.plain

BLOCK_S = 2.0


def held(host_blocks: int = 20, layers: int = 1) -> ManagedKV:
    """Three rows that copy every 1, 2 and 4 blocks; a block takes 2 s out and 1 s in."""
    how = Management(16, np.array([1, 2, 4]), layers, 0.0)
    return build_managed(3, build_host(3, host_blocks, BLOCK_S, 1.0), how)


def left(b: ManagedKV) -> list[int]:
    return [int(count) for count in b.orders.left_blocks]


def test_copies_are_made_in_the_order_asked_for_and_none_before_its_step_has_ended() -> None:
    b = held()
    order(b, 0, 1, 10.0)
    order(b, 1, 3, 10.0)
    order(b, 2, 3, 10.0)  # not 4 yet
    assert (left(b), b.stored.blocks.tolist(), b.host.free_blocks[0]) == ([1, 3, 0], [1, 3, 0], 16)
    catch_up(b, 10.0, 10.0)
    assert left(b) == [1, 3, 0]
    catch_up(b, 15.9, 15.9)  # at 12 the first's, at 14 one of the second's
    assert (left(b), b.lanes.blocks[OUT], b.lanes.tokens[OUT]) == ([0, 2, 0], 2, 32)
    order(b, 0, 2, 20.0)
    order(b, 1, 9, 20.0)  # it waits for its first
    catch_up(b, 19.0, 19.0)
    assert (left(b), b.lanes.until_s[OUT], b.offload.queued[0]) == ([1, 0, 0], 18.0, 1)
    catch_up(b, 22.0, 22.0)
    assert (left(b), b.lanes.until_s[OUT], b.offload.queued[0]) == ([0, 0, 0], 22.0, 0)
    assert b.offload.orders[0] == 3


def test_what_is_discarded_costs_the_lane_no_more_time() -> None:
    b = held()
    for row, blocks in ((0, 4), (1, 2), (2, 4)):
        order(b, row, blocks, 0.0)
    catch_up(b, 5.0, 5.0)  # two of row 0 are done, the third has been half copied
    give_back(b, 0)
    assert (left(b), b.stored.blocks.tolist(), b.host.free_blocks[0]) == ([0, 2, 4], [0, 2, 4], 14)
    assert (b.lanes.until_s[OUT], b.offload.wasted_s[0]) == (5.0, 1.0)
    give_back(b, 2)  # the last in the queue: the lane is not at it
    assert (b.lanes.until_s[OUT], b.offload.wasted_s[0], b.offload.queued[0]) == (5.0, 1.0, 1)
    catch_up(b, 9.0, 9.0)
    assert (left(b), b.stored.blocks.tolist(), b.lanes.blocks[OUT]) == ([0, 0, 0], [0, 2, 0], 4)
    noted = int(b.offload.noted[0])
    log = [[column[i].item() for column in (b.log.row, b.log.blocks, b.log.begin_s, b.log.end_s)] for i in range(noted)]
    assert log == [[0, 2, 0, 4], [0, 2, 4, 5], [2, 4, 5, 5], [1, 2, 5, 9]]
    assert b.log.discarded[:noted].tolist() == [0, 1, 1, 0]


def test_nothing_is_ordered_that_host_memory_has_no_room_for() -> None:
    b = held(host_blocks=3)
    order(b, 1, 2, 0.0)
    order(b, 0, 2, 0.0)
    assert (left(b), b.host.free_blocks[0], b.offload.refused[0]) == ([0, 2, 0], 1, 1)


@pytest.mark.parametrize("layers", [1, 4])
@pytest.mark.parametrize(("blocks", "compute_s"), [(8, 4.0), (4, 8.0), (0, 8.0), (6, 6.0)])
def test_a_step_is_as_long_as_its_layers_take_one_by_one(layers: int, blocks: int, compute_s: float) -> None:
    b = held(layers=layers)
    if blocks:
        ask(b.lanes, IN, blocks, blocks * 16)
    done = 0.0
    for layer in range(1, layers + 1):
        done = max(done, layer * blocks / layers) + compute_s / layers
    assert pipelined(b, 100.0, compute_s) == done
    assert b.host.wait_s[0] == done - compute_s
    assert b.lanes.until_s[IN] == (100.0 + blocks if blocks else 0.0)
