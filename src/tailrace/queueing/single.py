"""M/G/1 by order of service: the mean response time, and how the tail of response times decays.

One server, Poisson arrivals at λ requests/s, service times S from a `ServiceTimes`, preemption
without cost. Response time T is from arrival to end of service, seconds. Sources:

    fcfs_mean_s          Pollaczek-Khinchine.
    las_mean_s           L. Kleinrock, Queueing Systems II (1976), §4.6; I. A. Rai, G. Urvoy-Keller,
                         E. W. Biersack, Analysis of LAS scheduling (SIGMETRICS 2003).
    srpt_mean_s          L. E. Schrage, L. W. Miller, The queue M/G/1 with the shortest remaining
                         processing time discipline (Operations Research 14, 1966).
    decay_rate           Cramér and Lundberg; the γ of G. Yu, Z. Scully, Strongly tail-optimal
                         scheduling in the light-tailed M/G/1 (arXiv 2404.08826, 2024).
    …_tail_constant      Yu & Scully; the second is rederived in its docstring.

Every value is None where ρ = λ·E[S] >= 1: the queue has no steady state. A rate that is negative
or not finite raises UserError.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import UserError
from .checks import F8, columns, number

__all__ = ["ServiceTimes", "boost_tail_constant", "decay_rate", "fcfs_mean_s", "fcfs_tail_constant"]
__all__ += ["las_mean_s", "srpt_mean_s"]


@dataclass(frozen=True, eq=False)
class ServiceTimes:
    """A discrete distribution of service times, such as that of a sample; made by `of`."""

    seconds: F8
    """(n,) each value once, above 0, ascending."""
    shares: F8
    """(n,) its probability; they add up to 1."""

    @classmethod
    def of(cls, seconds: ArrayLike, weights: ArrayLike | None = None) -> ServiceTimes:
        """Of values (n,) with weights (n,) of which only the ratios matter; all alike by default.

        Raises UserError for a value that is not above 0, a negative weight, or none above 0.
        """
        given, mass = columns(seconds=seconds, weights=np.ones(np.size(seconds)) if weights is None else weights)
        if not (given > 0).all():
            raise UserError(f"seconds: {given.min():g} must be above 0")
        if not mass.sum() > 0:
            raise UserError("weights: at least one must be above 0")
        values, place = np.unique(given[mass > 0], return_inverse=True)
        return cls(values, np.bincount(place, mass[mass > 0]) / mass.sum())

    def mean(self, of: F8 | None = None) -> float:
        """E[S], or the mean of ``of`` (n,), one number for each of ``seconds``."""
        return float(np.dot(self.shares, self.seconds if of is None else of))


def _stable(rate: float, times: ServiceTimes) -> bool:
    return number("rate", rate) * times.mean() < 1


def _beyond(times: ServiceTimes) -> F8:
    """P(S > s) of each value s, (n,)."""
    return np.maximum(0.0, 1.0 - np.cumsum(times.shares))


def fcfs_mean_s(rate: float, times: ServiceTimes) -> float | None:
    """E[T] first come first served, seconds: E[S] + λ·E[S²]/(2·(1 − ρ))."""
    if not _stable(rate, times):
        return None
    return times.mean() + rate * times.mean(times.seconds**2) / (2 * (1 - rate * times.mean()))


def las_mean_s(rate: float, times: ServiceTimes) -> float | None:
    """E[T] under least attained service, seconds; those who attained equally much share the server.

    E[T(x)] = λ·E[min(S, x)²]/(2·(1 − ρ_x)²) + x/(1 − ρ_x), ρ_x = λ·E[min(S, x)]. It holds for
    values that several requests have, too: of equals all reach the end together.
    """
    if not _stable(rate, times):
        return None
    x, p, beyond = times.seconds, times.shares, _beyond(times)
    first = np.cumsum(p * x) + x * beyond
    second = np.cumsum(p * x**2) + x**2 * beyond
    idle = 1 - rate * first
    return times.mean(rate * second / (2 * idle**2) + x / idle)


def srpt_mean_s(rate: float, times: ServiceTimes) -> float | None:
    """E[T] under shortest remaining processing time, seconds; of equals the earlier arrival first.

    E[T(x)] = λ·(E[S²; S ≤ x] + x²·P(S > x)) / (2·(1 − ρ⁻(x))·(1 − ρ(x))) + ∫₀ˣ dt/(1 − ρ⁻(t)),
    with ρ(x) = λ·E[S; S ≤ x] and ρ⁻(x) = λ·E[S; S < x], which differ where a value has a
    probability: those who come later with the same value do not overtake.
    """
    if not _stable(rate, times):
        return None
    x, p = times.seconds, times.shares
    load = rate * np.cumsum(p * x)
    idle, idle_before = 1 - load, 1 - np.concatenate([[0.0], load[:-1]])
    ahead = rate * (np.cumsum(p * x**2) + x**2 * _beyond(times)) / 2
    residence = np.cumsum(np.diff(x, prepend=0.0) / idle_before)
    return times.mean(ahead / (idle_before * idle) + residence)


def decay_rate(rate: float, times: ServiceTimes) -> float | None:
    """γ in 1/s with P(T > t) ~ C·e^{−γt}, the fastest decay there is: γ = λ·(E[e^{γS}] − 1), γ > 0.

    First come first served and γ-Boost have it. λ·E[e^{γS} − 1]/γ rises from ρ at γ = 0, and is above
    1 from γ = 2·(1 − ρ)/(λ·E[S²]) on, as e^x − 1 >= x + x²/2: bisected between, to the last digit.
    Raises UserError for a rate of 0.
    """
    if not _stable(number("rate", rate, above=True), times):
        return None
    low, high = 0.0, 2 * (1 - rate * times.mean()) / (rate * times.mean(times.seconds**2))
    with np.errstate(over="ignore"):  # infinite is above 1
        while low < (middle := (low + high) / 2) < high:
            if rate * times.mean(np.expm1(middle * times.seconds)) < middle:
                low = middle
            else:
                high = middle
    return high


def fcfs_tail_constant(rate: float, times: ServiceTimes) -> float | None:
    """C of P(T > t) ~ C·e^{−γt} first come first served: C_W·E[e^{γS}].

    C_W = (1 − ρ)/(λ·E[S·e^{γS}] − 1) is that of the work found at arrival (Cramér and Lundberg).
    """
    gamma = decay_rate(rate, times)
    return None if gamma is None else _work_constant(rate, times, gamma) * times.mean(np.exp(gamma * times.seconds))


def boost_tail_constant(rate: float, times: ServiceTimes, boost_gamma_per_s: float | None = None) -> float | None:
    """C of P(T > t) ~ C·e^{−γt} in order of a − b(S), b(s) = (1/γ_b)·ln(1/(1 − e^{−γ_b·s})).

    ``boost_gamma_per_s`` is γ_b, by default the decay rate γ: γ-Boost, whose C is the least of any
    order. Preemptive or not is the same. A request whose boosted arrival is at 0 arrives at b(s)
    and, with much work in the system, is done when three things are: the work W present at 0, as
    who came before 0 is boosted to before 0; its own s; and the work of those who come at a > 0 with
    b(S) > a. The last are Poisson and independent of W, so

        C = C_W · E[e^{γ(S − b(S))}] · exp(λ·E[b(S)·(e^{γS} − 1)]).
    """
    gamma = decay_rate(rate, times)
    if gamma is None:
        return None
    s, boost = times.seconds, gamma if boost_gamma_per_s is None else boost_gamma_per_s
    x = number("boost_gamma_per_s", boost, above=True) * s
    b = -np.where(x < math.log(2), np.log(-np.expm1(-x)), np.log1p(-np.exp(-x))) / boost
    overtaken = math.exp(rate * times.mean(b * np.expm1(gamma * s)))
    return _work_constant(rate, times, gamma) * times.mean(np.exp(gamma * (s - b))) * overtaken


def _work_constant(rate: float, times: ServiceTimes, gamma_per_s: float) -> float:
    s = times.seconds
    return (1 - rate * times.mean()) / (rate * times.mean(s * np.exp(gamma_per_s * s)) - 1)
