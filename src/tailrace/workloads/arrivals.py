"""Arrival processes. Each is driven by unit gaps of its own stream.

With every rate doubled and every duration halved the same arrivals come twice as fast, and
fewer requests are the first of more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ..errors import UserError
from ..table import F8
from . import _streams as streams

__all__ = ["gamma", "on_off", "poisson", "spikes"]

MOST_PHASES: Final = 20_000_000
"""Changes of the rate in one workload; more is a slip of a parameter."""
Phases = Callable[[int], tuple[F8, F8]]
"""The next so many phases: their durations, seconds, and rates, requests/s."""


def poisson(seed: int, n: int, rate_rps: float) -> F8:
    """``n`` arrivals, seconds, with exponential gaps."""
    # Unit gaps divided by the rate: another rate stretches the same arrivals.
    gaps = streams.stream(seed, streams.ARRIVALS).exponential(1.0, n)
    arrivals: F8 = np.cumsum(gaps) / rate_rps
    return arrivals


def gamma(seed: int, n: int, rate_rps: float, cv: float) -> F8:
    """Gaps of a gamma distribution with coefficient of variation ``cv``: 0 is a metronome, 1 is Poisson in law."""
    if cv == 0:
        return np.arange(1, n + 1) / rate_rps
    gaps = streams.stream(seed, streams.ARRIVALS).gamma(1 / cv**2, cv**2, n)
    arrivals: F8 = np.cumsum(gaps) / rate_rps
    return arrivals


def on_off(seed: int, n: int, on_rps: float, off_rps: float, on_s: float, off_s: float) -> F8:
    """Poisson arrivals at ``on_rps`` or ``off_rps``, each for an exponential time with this mean.

    The first phase is on with the share of time that on has, so the process is stationary.
    Source: the two-state Markov-modulated Poisson process; Fischer and Meier-Hellstern, The
    Markov-modulated Poisson process (MMPP) cookbook, Performance Evaluation 18 (1993).
    """
    first, durations = streams.stream(seed, streams.STATES).spawn(2)
    turn = int(first.random() >= on_s / (on_s + off_s))
    made = 0

    def phases(count: int) -> tuple[F8, F8]:
        nonlocal made
        off = (np.arange(made, made + count) + turn) % 2
        made += count
        return durations.exponential(1.0, count) * np.where(off, off_s, on_s), np.where(off, off_rps, on_rps)

    mean_rps = (on_s * on_rps + off_s * off_rps) / (on_s + off_s)
    return _modulated(seed, n, phases, mean_rps, (on_s + off_s) / 2)


def spikes(seed: int, n: int, base_rps: float, spike_rps: float, shape: float, spike_s: float, gap_s: float) -> F8:
    """Poisson arrivals at ``base_rps``, broken by spikes after exponential times with mean ``gap_s``.

    A spike lasts an exponential time with mean ``spike_s``, at a rate of its own: Pareto with
    minimum ``spike_rps`` and tail index ``shape`` (above 1). The start is quiet.
    """
    lasting, heights = streams.stream(seed, streams.STATES).spawn(2)

    def phases(count: int) -> tuple[F8, F8]:
        count += count % 2  # quiet and spike go in pairs
        durations = lasting.exponential(1.0, count)
        durations[0::2] *= gap_s
        durations[1::2] *= spike_s
        rates = np.full(count, base_rps)
        rates[1::2] = spike_rps * (1 + heights.pareto(shape, count // 2))
        return durations, rates

    mean_rps = (gap_s * base_rps + spike_s * spike_rps * shape / (shape - 1)) / (gap_s + spike_s)
    return _modulated(seed, n, phases, mean_rps, (gap_s + spike_s) / 2)


def _modulated(seed: int, n: int, phases: Phases, mean_rps: float, phase_s: float) -> F8:
    """Unit arrivals put where the summed rate reaches them (a time-changed Poisson process)."""
    expected = n / mean_rps / phase_s
    if expected > MOST_PHASES:
        raise UserError(
            f"{n} arrivals would take {expected:.2g} changes of the rate; ask for fewer requests or longer phases"
        )
    unit = np.cumsum(streams.stream(seed, streams.ARRIVALS).exponential(1.0, n))
    time_s, reached = [np.zeros(1)], [np.zeros(1)]
    made, more = 0, max(64, int(expected * 1.2))
    while reached[-1][-1] <= unit[-1]:
        if made > 4 * MOST_PHASES:
            raise UserError(f"{n} arrivals take over {made:,} changes of the rate; ask for fewer or longer phases")
        durations, rates = phases(more)
        time_s.append(time_s[-1][-1] + np.cumsum(durations))
        reached.append(reached[-1][-1] + np.cumsum(durations * rates))
        made += more
    arrivals: F8 = np.interp(unit, np.concatenate(reached), np.concatenate(time_s))
    return arrivals
