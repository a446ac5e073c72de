"""The plugin's queue, which needs no vLLM."""

from __future__ import annotations

import pytest

from tailrace.vllm_plugin.queue import RankedQueue

from .hosts import fake


def test_a_queue_keeps_the_order_it_is_given() -> None:
    queue = RankedQueue()
    a, b, c, d = (fake(name) for name in "abcd")
    for request in (a, b, c, d):
        queue.add_request(request)
    pages = [[b], [d], []]
    queue.order([c, a], lambda: pages.pop(0))
    assert queue.peek_request() is c
    assert [queue.pop_request() for _ in range(4)] == [c, a, b, d]
    assert not queue
    with pytest.raises(IndexError):
        queue.peek_request()
    queue.prepend_request(c)
    queue.prepend_requests([b, a])
    assert [r.request_id for r in queue] == ["c", "b", "a"]
    queue.remove_request(c)
    queue.remove_requests([c, a])
    assert len(queue) == 1
    assert b in queue
    assert a not in queue
    assert fake("b") not in queue  # another of the same name
    with pytest.raises(ValueError, match="does not wait"):
        queue.remove_request(a)


def test_a_request_put_back_waits_for_the_next_order() -> None:
    queue = RankedQueue()
    a, b, c = (fake(name) for name in "abc")
    for request in (a, b):
        queue.add_request(request)
    queue.order([a, b])
    assert queue.pop_request() is a
    queue.prepend_request(c)
    assert queue.peek_request() is b
    queue.order([a])  # gone meanwhile: those that nobody ranked come in order of coming
    assert queue.peek_request() is b


def test_a_barred_request_is_not_seen() -> None:
    queue = RankedQueue()
    a, b = fake("a"), fake("b")
    queue.add_request(a)
    queue.add_request(b)
    queue.order([a, b])
    queue.bar(["a"])
    assert len(queue) == 2
    assert queue.pop_request() is b
    assert not queue
    with pytest.raises(IndexError):
        queue.peek_request()
    queue.bar([])
    assert queue.peek_request() is a


def test_a_bounded_queue_seems_empty_once_no_more_may_be_taken() -> None:
    queue, left = RankedQueue(), 2
    for name in "abc":
        queue.add_request(fake(name))
    queue.bound(lambda: left - len(queue.taken))
    queue.order([])
    taken = []
    while queue:
        taken.append(queue.pop_request().request_id)
    assert taken == ["a", "b"]
    assert len(queue) == 1
    queue.order([])  # the next step
    assert queue
