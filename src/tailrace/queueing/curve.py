"""Promoted fractions φ as a function of the load, from points measured in a simulator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..errors import UserError
from .checks import number, share

__all__ = ["Curve"]


@dataclass(frozen=True)
class Curve:
    """φ over ρ: straight lines between points, and the nearest point's value outside them.

    The paper (§III-B) interpolates over ρ without saying how, nor what holds beyond the
    loads it measured: linear and clamped are our choice. ``utilisations`` rise strictly and
    may pass 1; ``fractions`` are in [0, 1]. Raises UserError otherwise.
    """

    utilisations: tuple[float, ...]
    fractions: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.utilisations) != len(self.fractions) or not self.utilisations:
            raise UserError(f"{len(self.utilisations)} utilisations and {len(self.fractions)} fractions make no curve")
        for rho, phi in zip(self.utilisations, self.fractions, strict=True):
            number("utilisation", rho)
            share("fraction", phi)
        for before, after in zip(self.utilisations, self.utilisations[1:], strict=False):
            if not before < after:
                raise UserError(f"utilisation={after}: must be above the one before it, {before}")

    @classmethod
    def of(cls, points: Iterable[tuple[float, float]]) -> Curve:
        """From ``(ρ, φ)`` in any order. Raises UserError for none, two at one ρ, or one out of range."""
        ordered = sorted(points)
        return cls(tuple(rho for rho, _ in ordered), tuple(phi for _, phi in ordered))

    def at(self, utilisation: float) -> float:
        """φ at ρ = ``utilisation`` >= 0."""
        found = np.interp(number("utilisation", utilisation), self.utilisations, self.fractions)
        return float(np.clip(found, min(self.fractions), max(self.fractions)))  # rounding must not pass 1
