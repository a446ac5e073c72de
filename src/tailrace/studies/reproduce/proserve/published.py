"""The numbers of arXiv 2512.12928 that are known to us: read from excerpts or second-hand, without error bars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["SOURCE", "TITLE", "value"]

TITLE: Final = "ProServe: Unified Multi-Priority Request Scheduling for LLM Serving"
SOURCE: Final = "arXiv 2512.12928"

HEADLINE: Final[Mapping[str, float]] = {"tdg_ratio_gain": 35.0, "attainment_gain": 52.0}
"""Its abstract's "up to", per cent over the baselines."""
ESTIMATOR_MAPE: Final = 4.5
"""Per cent; second-hand."""
MEASURED_JITTER: Final = 0.05
"""Ours that its measured steps stand beside."""


def value(experiment: str, policy: str, metric: str, at: Mapping[str, Any]) -> float | None:
    """What the paper prints for a row, or None."""
    if experiment == "headline" and policy == "tailrace":
        return HEADLINE.get(metric)
    return ESTIMATOR_MAPE if experiment == "estimator" and at.get("jitter") == MEASURED_JITTER else None
