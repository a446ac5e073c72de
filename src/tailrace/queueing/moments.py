"""The first two moments of a service time: all that the formulas ask of a distribution."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from numpy.typing import ArrayLike

from ..errors import UserError
from .checks import columns, number

__all__ = ["Moments"]

ROUNDING: Final = 1e-9
"""By how much of it E[S²] may fall short of E[S]², as sums of equal values do."""


@dataclass(frozen=True)
class Moments:
    """E[S] > 0 in seconds and E[S²] >= E[S]² in s²."""

    mean: float
    second: float

    def __post_init__(self) -> None:
        mean, second = number("mean", self.mean, above=True), number("second", self.second, above=True)
        if second < mean**2 * (1 - ROUNDING):
            raise UserError(f"second={second:g} must be at least the mean's square, {mean**2:g}")

    @property
    def variance(self) -> float:
        """Var(S), s²."""
        return max(0.0, self.second - self.mean**2)

    @property
    def scv(self) -> float:
        """C_s² = Var(S)/E[S]²: 0 for equal times, 1 for exponential ones."""
        return self.variance / self.mean**2

    @classmethod
    def of(cls, seconds: ArrayLike) -> Moments:
        """Of a sample (n,) of seconds, each counting alike. Raises UserError for none, or one that cannot be."""
        (values,) = columns(seconds=seconds)
        return cls(float(values.mean()), float((values**2).mean()))

    @classmethod
    def mix(cls, classes: Iterable[tuple[float, Moments]]) -> Moments:
        """Of a population made of ``(weight, moments)``: the weighted means of both moments (eq. 14).

        Weights are rates, counts or shares: only their ratios matter. Samples of several
        traces combine with their sizes as weights. Raises UserError for a weight that is
        negative or not finite, or if none is above 0.
        """
        parts = [(number("weight", weight), moments) for weight, moments in classes]
        total = sum(weight for weight, _ in parts)
        if not total > 0:
            raise UserError("weight: at least one class must have a weight above 0")
        mean = sum(weight / total * m.mean for weight, m in parts)
        return cls(mean, sum(weight / total * m.second for weight, m in parts))
