"""The numbers of arXiv 2606.18431 that are known to us, and where its argument gives margins in words.

Gains are per cent better than TRAIL+ (SRPT with perfect predictions): 1 − ours/its for times, ours/its − 1
for rates. Read from an article on the paper: it names one workload's table and no error bars.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["SOURCE", "TITLE", "value"]

TITLE: Final = "Beyond Prediction: Tail-Aware Scheduling for LLM Inference"
SOURCE: Final = "arXiv 2606.18431"

GAINS: Final[Mapping[str, Mapping[str, float]]] = {
    "uniboost_low": {
        "e2e_p99_gain": 35.1,
        "ttft_p95_gain": 97.4,
        "ttft_mean_gain": 52.1,
        "ttft_p99_gain": 34.0,
        "requests_gain": 1.2,
        "e2e_mean_gain": -19.1,
        "tbt_mean_gain": -25.3,
    },
    "dist_boost": {"e2e_p99_gain": 37.1, "ttft_mean_gain": -22.8},
}
"""§6.1. UniBoost's row stands beside both settings of γ_max: the article does not give it."""

STARVATION: Final[Mapping[tuple[str, str], float]] = {
    ("uniboost", "long_preempted_p99_s"): 9.1,
    ("sjf", "long_preempted_p99_s"): 13.3,
    ("srpt", "long_preempted_p99_s"): 18.6,
    ("sarathi", "long_preempted_p99_s"): 6.6,
    ("uniboost", "short_e2e_p99_s"): 3.62,
    ("sarathi", "short_e2e_p99_s"): 3.84,
    ("srpt", "short_e2e_p99_s"): 3.69,
    ("uniboost", "long_slope_s"): 0.0003,
}
"""§6.5, by what the article calls the policy."""

TOYS: Final[Mapping[tuple[str, str, str], float]] = {
    ("convoy", "fcfs", "mean_steps"): 9.0,
    ("convoy", "srpt", "mean_steps"): 8.6,
    ("convoy", "las", "mean_steps"): 8.6,
    ("convoy", "boost_100", "mean_steps"): 9.0,
    ("convoy", "boost_0.01", "mean_steps"): 8.6,
    ("burst", "fcfs", "max_steps"): 9.0,
    ("burst", "srpt", "max_steps"): 11.0,
    ("burst", "las", "max_steps"): 11.0,
    ("burst", "boost_100", "max_steps"): 9.0,
    ("burst", "boost_0.01", "mean_steps"): 6.2,
}
"""§3, its figure of two schedules."""


def value(experiment: str, policy: str, metric: str, at: Mapping[str, Any]) -> float | None:
    """What the article prints for a row, or None."""
    family = "srpt" if policy.startswith("srpt") else "uniboost" if policy.startswith("uniboost_") else policy
    if experiment == "against" and at.get("mix") == "mix-2":
        return GAINS.get("uniboost_low" if policy == "uniboost_high" else policy, {}).get(metric)
    if experiment == "starvation":
        return STARVATION.get((family, metric)) if policy not in ("uniboost_base",) else None
    if experiment == "toys":
        return TOYS.get((str(at.get("schedule")), policy, metric))
    return None
