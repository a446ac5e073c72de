"""A queue by events, written from its definition alone: n servers, tiers, nobody preempted."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

F8 = NDArray[np.float64]


def event_waits(arrival_s: F8, service_s: F8, tier: NDArray[Any], servers: int) -> F8:
    """Wait of each customer, (n,): the lowest tier goes first, the earlier within a tier."""
    free, waits = [0.0] * servers, np.zeros(len(arrival_s))
    queue: list[tuple[int, int]] = []
    arrivals, services, tiers = arrival_s.tolist(), service_s.tolist(), tier.tolist()
    came, now = 0, 0.0
    for _ in arrivals:
        now = max(now, free[0])
        if not queue:
            now = max(now, arrivals[came])
        while came < len(arrivals) and arrivals[came] <= now:
            heapq.heappush(queue, (tiers[came], came))
            came += 1
        _, customer = heapq.heappop(queue)
        waits[customer] = now - arrivals[customer]
        heapq.heapreplace(free, now + services[customer])
    return waits


def lindley_waits(arrival_s: F8, service_s: F8) -> F8:
    """Waits at one server, first come first served: W' = max(0, W + S − T), in closed form."""
    walk = np.concatenate([[0.0], np.cumsum(service_s[:-1] - np.diff(arrival_s))])
    return np.asarray(walk - np.minimum.accumulate(walk))


def interval(values: Sequence[float], confidence: float = 0.999) -> tuple[float, float]:
    """Student's t interval of the mean of independent runs."""
    found = np.array(values)
    half = float(stdtrit(len(found) - 1, (1 + confidence) / 2)) * float(found.std(ddof=1)) / math.sqrt(len(found))
    return float(found.mean()) - half, float(found.mean()) + half


def meets(values: Sequence[float], expected: float, within: float) -> bool:
    """Whether ``expected`` lies in the interval, which is no wider than ``within`` of it either side."""
    low, high = interval(values)
    assert (high - low) / 2 < within * expected, f"{low} to {high} is too wide to say anything of {expected}"
    return low <= expected <= high
