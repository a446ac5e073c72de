"""A latency model fitted to measured steps, and its error on steps that it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..latency import Errors, ProfiledParams, Sample, errors_by_regime, fit_profiled, split
from ..params import show
from ..spec import write

__all__ = ["Fit", "fit"]


@dataclass(frozen=True)
class Fit:
    """Coefficients, and how well they do by `latency.REGIMES`."""

    cost: ProfiledParams
    fitted: dict[str, Errors]
    """On the steps that they were fitted to."""
    held_out: dict[str, Errors]

    @property
    def text(self) -> str:
        """What ``--latency`` takes; a coefficient of 0 is left out."""
        return write("profiled", {name: value for name, value in show(self.cost).items() if value or name == FIRST})

    def show(self) -> dict[str, Any]:
        """As plain values."""
        errors = {"fitted": self.fitted, "held_out": self.held_out}
        plain = {part: {name: found._asdict() for name, found in of.items()} for part, of in errors.items()}
        return {"latency": self.text, "coefficients": show(self.cost), **plain}


FIRST = ProfiledParams._fields[0]


def fit(samples: Sequence[Sample], holdout: float = 0.25, seed: int = 0) -> Fit:
    """The profiled model of a share of the steps, and its errors on them and on the rest.

    Deterministic by ``seed``. Raises UserError as `latency.split` and `latency.fit_profiled` do.
    """
    kept, held = split(samples, holdout, seed)
    cost = fit_profiled(kept)
    return Fit(cost, errors_by_regime(kept, cost), errors_by_regime(held, cost))
