"""The reduced M/G/n model of a serving engine: mean waits of fcfs, psf, aa and qba over the load.

Source: QBA, arXiv 2610.17795 §II-B, §III-B.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import UserError, nearest
from .checks import columns, number, share, whole
from .curve import Curve
from .moments import Moments
from .waits import TwoClass, promoted, utilisation

__all__ = ["Surrogate"]

FCFS: Final = "fcfs"
PSF: Final = "psf"
PROMOTING: Final = ("aa", "qba")
"""The paper's policies that promote: they need a curve of their own."""


@dataclass(frozen=True)
class Surrogate:
    """Service times by predicted class, n servers, and the promoted fractions of aging policies.

    Raises UserError for a share outside [0, 1], no server, or a negative SCV.
    """

    short: Moments
    long: Moments
    share_long: float
    """Of requests, predicted long; `predicted_rates` and `predicted_moments` give it under label errors."""
    servers: int
    phi: Mapping[str, Curve] = field(default_factory=dict)
    """By policy, φ over ρ: ``aa``, ``qba``, or any name for a variant of them."""
    arrival_scv: float = 1.0

    def __post_init__(self) -> None:
        share("share_long", self.share_long)
        whole("servers", self.servers)
        number("arrival_scv", self.arrival_scv)
        for name in self.phi:
            if name in (FCFS, PSF):
                raise UserError(f"phi: {name} promotes nobody, give it no curve")

    @classmethod
    def of(
        cls,
        seconds: ArrayLike,
        predicted_long: ArrayLike,
        servers: int,
        phi: Mapping[str, Curve] | None = None,
        arrival_scv: float = 1.0,
    ) -> Surrogate:
        """From service times (n,) and whether each request is predicted long (n,), 0 or 1.

        A class that has nobody gets share 0, and the moments of all in place of its own.
        Raises UserError for samples or settings that cannot be.
        """
        times, labels = columns(seconds=seconds, predicted_long=predicted_long)
        if not np.isin(labels, (0, 1)).all():
            raise UserError("predicted_long: must be true or false, or 1 or 0")
        long: NDArray[np.bool_] = labels == 1
        classes = [Moments.of(times[of_class] if of_class.any() else times) for of_class in (~long, long)]
        return cls(classes[0], classes[1], float(long.mean()), servers, phi or {}, arrival_scv)

    @property
    def moments(self) -> Moments:
        """Service times of all requests."""
        return Moments.mix([(1 - self.share_long, self.short), (self.share_long, self.long)])

    @property
    def capacity_rps(self) -> float:
        """The rate at which ρ = 1, requests/s."""
        return self.servers / self.moments.mean

    def utilisation(self, rate: float) -> float:
        """ρ at ``rate`` requests/s."""
        return utilisation(rate, self.moments.mean, self.servers)

    def waits(self, policy: str, rate: float) -> TwoClass | None:
        """Mean waits by predicted class at ``rate`` requests/s; None at ρ >= 1.

        Under fcfs both classes wait alike. Under a promoting policy ``short_s`` is of the
        predicted short and the promoted long together. Raises UserError for a policy that is
        not known, or that promotes and has no curve.
        """
        phi = self._phi(policy, rate)
        short, long = rate * (1 - self.share_long), rate * self.share_long
        found = promoted(short, self.short, long, self.long, self.servers, phi, self.arrival_scv)
        if found is None or policy != FCFS:
            return found
        return TwoClass(found.mean_s, found.mean_s, found.mean_s)

    def wait_s(self, policy: str, rate: float) -> float | None:
        """E[W] over all requests in seconds (eq. 8, 11, 15); None at ρ >= 1. UserError as `waits`."""
        found = self.waits(policy, rate)
        return None if found is None else found.mean_s

    def response_s(self, policy: str, rate: float) -> float | None:
        """E[T] = E[S] + E[W] in seconds; None at ρ >= 1. UserError as `waits`."""
        wait = self.wait_s(policy, rate)
        return None if wait is None else self.moments.mean + wait

    def _phi(self, policy: str, rate: float) -> float:
        """The promoted fraction: nobody's under psf, everybody's under fcfs."""
        rho = self.utilisation(rate)
        if policy in self.phi:
            return self.phi[policy].at(rho)
        if policy in PROMOTING:
            raise UserError(f"policy {policy}: phi has no curve for it; give Curve.of([(rho, fraction), …])")
        if policy not in (FCFS, PSF):
            raise UserError(f"unknown policy {policy!r}{nearest(policy, [FCFS, PSF, *PROMOTING, *self.phi])}")
        return 1.0 if policy == FCFS else 0.0
