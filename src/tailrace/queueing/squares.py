"""Linear least squares over any number of traces, without holding them.

Of samples (1, x_1, …, x_k, y) only the triangular factor R of a QR decomposition is kept,
which has the same least-squares solution; factors of two traces, stacked and decomposed
again, are the factor of both. Unlike sums of products this loses no digits. Source: Golub &
Van Loan, Matrix Computations (2013), §5.3, §6.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..errors import UserError
from .checks import F8

__all__ = ["LeastSquares"]

COLLINEAR: Final = 1e-9
"""A direction that varies by less than this share of the others is no direction."""

ROUNDING: Final = 1e-12
"""A spread below this share of the target's mean is none."""


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """What least squares needs to know of ``count`` samples; ``+`` puts two lots together."""

    factor: F8
    """R, (k + 2, k + 2): the constant, k features, the target."""
    count: int

    @classmethod
    def of(cls, features: Sequence[F8], target: F8) -> LeastSquares:
        """Of k features and a target, each (n,)."""
        width = len(features) + 2
        samples = np.column_stack([np.ones(len(target)), *features, target])
        return cls(_triangle(np.vstack([samples, np.zeros((width, width))])), len(target))

    def __add__(self, other: LeastSquares) -> LeastSquares:
        return LeastSquares(_triangle(np.vstack([self.factor, other.factor])), self.count + other.count)

    def solve(self, names: Sequence[str]) -> list[float]:
        """The k + 1 coefficients, the constant's first; ``names`` are what errors call them.

        Raises UserError for fewer samples than coefficients, or features that do not vary
        independently of one another and of the constant.
        """
        if self.count < len(names):
            raise UserError(f"{self.count} samples are too few to fit {', '.join(names)}: at least {len(names)}")
        # Tokens squared are of the order of 1e7 times the constant: unscaled, a rank means little.
        scale = np.linalg.norm(self.factor[:, :-1], axis=0)
        known = self.factor[:-1, :-1] / np.where(scale > 0, scale, 1.0)
        for n, name in enumerate(names, start=1):
            if np.linalg.matrix_rank(known[:, :n], tol=COLLINEAR) < n:
                before = ", ".join(names[: n - 1])
                raise UserError(f"the samples do not vary enough to tell {name} from {before}; take more sizes")
        return [float(c) for c in np.linalg.solve(known, self.factor[:-1, -1]) / scale]

    @property
    def r_squared(self) -> float:
        """Share of the target's variance that the fit explains; 1 where the target does not vary."""
        squares = self.factor[:, -1] ** 2
        rounding = (ROUNDING * self.factor[0, -1]) ** 2
        return float(1 - squares[-1] / squares[1:].sum()) if squares[1:].sum() > rounding else 1.0


def _triangle(rows: F8) -> F8:
    return np.asarray(np.linalg.qr(rows, mode="r"), dtype=np.float64)
