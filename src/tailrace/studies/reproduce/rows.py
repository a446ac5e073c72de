"""How a number stands in a study's document: where, measured, what the paper prints, over how many seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...metrics.seeds import interval
from .measure import F8
from .verdicts import Ratio

__all__ = ["Rows"]


@dataclass(frozen=True)
class Rows:
    """Rows under one profile."""

    profile: str
    printed: Callable[[str, str, str, Mapping[str, Any]], float | None]
    """What the paper prints for experiment, policy, metric and place."""

    def seeds(self, experiment: str, policy: str, metric: str, at: Mapping[str, Any], values: F8) -> dict[str, Any]:
        """The mean over seeds with its interval, and each seed's value to six digits, to pair by seed."""
        known = values[~np.isnan(values)]
        row = self.one(experiment, policy, metric, at, float(known.mean()) if len(known) else None)
        by_seed = [None if np.isnan(v) else float(f"{v:.6g}") for v in values]
        return {**row, "ci": interval(list(known)), "seeds": len(known), "by_seed": by_seed}

    def ratio(
        self, experiment: str, policy: str, metric: str, at: Mapping[str, Any], found: Ratio, seeds: int
    ) -> dict[str, Any]:
        """One number with the interval it has already."""
        row = self.one(experiment, policy, metric, at, found.value if np.isfinite(found.value) else None)
        ends = [found.low, found.high]
        return {**row, "ci": ends if np.isfinite(ends).all() else None, "seeds": seeds}

    def one(
        self, experiment: str, policy: str, metric: str, at: Mapping[str, Any], measured: float | None
    ) -> dict[str, Any]:
        """One number without an interval."""
        return {
            "profile": self.profile,
            "experiment": experiment,
            "policy": policy,
            "metric": metric,
            "at": dict(at),
            "paper": self.printed(experiment, policy, metric, at),
            "measured": measured,
            "ci": None,
            "seeds": 1,
        }
