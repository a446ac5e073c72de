"""The queue that the formulas are held to, on a case done by hand and on Lindley's recursion."""

from __future__ import annotations

import numpy as np

from .events import event_waits, lindley_waits


def test_a_case_by_hand() -> None:
    """The long one that came first runs; then the short ones, then the other long one."""
    arrival, service = np.array([0.0, 1.0, 2.0, 3.0]), np.array([5.0, 4.0, 1.0, 2.0])
    tier = np.array([1, 1, 0, 0])
    assert event_waits(arrival, service, tier, 1).tolist() == [0.0, 7.0, 3.0, 3.0]
    assert event_waits(arrival, service, tier * 0, 2).tolist() == [0.0, 0.0, 3.0, 2.0]


def test_customers_at_once_take_idle_servers_at_once() -> None:
    arrival = np.array([4.0, 4.0, 4.0])
    assert event_waits(arrival, np.ones(3), np.zeros(3, dtype=int), 2).tolist() == [0.0, 0.0, 1.0]


def test_one_tier_and_one_server_is_lindleys_recursion() -> None:
    rng = np.random.default_rng(1)
    arrival, service = np.cumsum(rng.exponential(1.0, 3000)), rng.gamma(2.0, 0.45, 3000)
    waits = lindley_waits(arrival, service)
    np.testing.assert_allclose(event_waits(arrival, service, np.zeros(3000, dtype=int), 1), waits, atol=1e-9)
    assert waits.max() > 5
