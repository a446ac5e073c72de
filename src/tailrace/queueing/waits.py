"""Mean waits of an M/G/n queue: first come first served, two priority classes, promotion.

Source: QBA, arXiv 2610.17795 §II-B and §III (its equation numbers are given); the exact cases
that it meets are Pollaczek-Khinchine's M/G/1, the M/M/n queue, and A. Cobham, Priority
Assignment in Waiting Line Problems (1954). Every wait is None where ρ >= 1: the queue has no
steady state and the formula no value.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .checks import number, share, whole
from .erlang import erlang_c
from .moments import Moments

__all__ = ["TwoClass", "allen_cunneen", "matching_servers", "promoted", "two_class", "utilisation"]


class TwoClass(NamedTuple):
    """Mean waits of two non-preemptive priority classes, seconds."""

    short_s: float
    """Of the class that goes first: predicted short, with what is promoted to it."""
    long_s: float
    mean_s: float
    """Of all requests (eq. 11, 15)."""


def utilisation(rate: float, mean: float, servers: int) -> float:
    """ρ = λ·E[S]/n, from λ in requests/s and E[S] in seconds; 1 and above means overload.

    Raises UserError for a negative rate, a mean that is not positive, or no server.
    """
    return number("rate", rate) * number("mean", mean, above=True) / whole("servers", servers)


def allen_cunneen(rate: float, moments: Moments, servers: int, arrival_scv: float = 1.0) -> float | None:
    """Mean wait E[W] in seconds, first come first served (eq. 8); None at ρ >= 1.

    E[W] ≈ (C_a² + C_s²)/2 · P_wait/(n·μ − λ), P_wait by `erlang_c` and μ = 1/E[S];
    ``arrival_scv`` is C_a² of the times between arrivals, 1 for Poisson. Exact for M/G/1 and
    for M/M/n. Raises UserError for a rate or SCV that is negative, or no server.
    """
    rho = utilisation(rate, moments.mean, servers)
    spread = (number("arrival_scv", arrival_scv) + moments.scv) / 2
    if rho >= 1:
        return None
    return spread * erlang_c(servers, rate * moments.mean) * moments.mean / (servers * (1 - rho))


def matching_servers(rate: float, moments: Moments, wait_s: float, arrival_scv: float = 1.0) -> int:
    """The n whose `allen_cunneen` wait is nearest, as a ratio, to a measured ``wait_s`` > 0.

    Another reading of n than the paper's ⌊min(B/q, n_safe)⌋, for engines that run more side by
    side than that. Raises UserError for a rate or wait that is not positive.
    """
    target, offered = number("wait_s", wait_s, above=True), number("rate", rate, above=True) * moments.mean
    n, above = math.floor(offered) + 1, math.inf
    while (found := allen_cunneen(rate, moments, n, arrival_scv)) is None or found > target:
        n, above = n + 1, math.inf if found is None else found
    return n - 1 if above * found < target**2 else n


def two_class(
    rate_short: float,
    short: Moments,
    rate_long: float,
    long: Moments,
    servers: int,
    arrival_scv: float = 1.0,
) -> TwoClass | None:
    """Mean waits where the short go first and nobody is preempted (eq. 9-11); None at ρ >= 1.

    Ω = (1 − ρ)·E[W_FCFS] of both classes together; W_S = Ω/(1 − ρ_S), W_L = Ω/((1 − ρ_S)(1 − ρ)).
    At n = 1 with Poisson arrivals this is Cobham's exact result, as Ω = λ·E[S²]/2; with
    exponential times alike in both classes it is exact for any n. A rate may be 0.
    Raises UserError as `allen_cunneen` does.
    """
    rho_short = utilisation(rate_short, short.mean, servers)
    rho = rho_short + utilisation(rate_long, long.mean, servers)
    rate = rate_short + rate_long
    if rate == 0:
        return TwoClass(0.0, 0.0, 0.0)
    fcfs_s = allen_cunneen(rate, Moments.mix([(rate_short, short), (rate_long, long)]), servers, arrival_scv)
    if fcfs_s is None or rho >= 1:
        return None
    short_s = (1 - rho) * fcfs_s / (1 - rho_short)
    long_s = fcfs_s / (1 - rho_short)
    return TwoClass(short_s, long_s, (rate_short * short_s + rate_long * long_s) / rate)


def promoted(
    rate_short: float,
    short: Moments,
    rate_long: float,
    long: Moments,
    servers: int,
    phi: float,
    arrival_scv: float = 1.0,
) -> TwoClass | None:
    """Mean waits where a fraction ``phi`` of the long go with the short (eq. 12-15); None at ρ >= 1.

    φ = 0 is `two_class` (PSF), φ = 1 is first come first served. The mean over all requests
    moves from the one to the other steadily, up if the long take longer. Who is promoted is
    taken to be a random part of the long (eq. 14). Raises UserError as `two_class` does, and
    for ``phi`` outside [0, 1].
    """
    moved = share("phi", phi) * number("rate_long", rate_long)
    first = number("rate_short", rate_short) + moved
    mixed = Moments.mix([(rate_short, short), (moved, long)]) if first > 0 else short
    return two_class(first, mixed, rate_long - moved, long, servers, arrival_scv)
