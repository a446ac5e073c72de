"""The numbers that arXiv 2610.17795 prints, in seconds unless a name says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["AT_32_RPS", "SOURCE", "TABLE_2", "TITLE", "value"]

TITLE: Final = "Quota-Based Aging for Prediction-Guided Scheduling in LLM Serving"
SOURCE: Final = "arXiv 2610.17795"

AT_32_RPS: Final[Mapping[tuple[str, str, float], Mapping[str, float]]] = {
    ("psf", "eps_sl", 0.0): {"wait_mean_s": 0.83, "short_wait_p99_s": 1.24, "long_wait_p99_s": 11.10},
    ("qba", "eps_sl", 0.0): {"wait_mean_s": 1.42, "short_wait_p99_s": 3.44, "long_wait_p99_s": 7.64},
    ("psf", "eps_sl", 0.05): {"short_wait_p99_s": 7.03},
    ("qba", "eps_sl", 0.1): {"wait_mean_s": 1.13, "short_wait_p99_s": 7.59, "long_wait_p99_s": 9.45},
    ("psf", "eps_ls", 0.4): {"wait_mean_s": 0.91, "long_wait_p99_s": 17.29},
    ("qba", "eps_ls", 0.4): {"wait_mean_s": 1.92, "short_wait_p99_s": 5.23, "long_wait_p99_s": 5.27},
}
"""§IV-D, 32 requests/s: (policy, error, its rate) → the 15 values. Without errors, both directions are alike."""

_COLUMNS: Final = ("wait_mean_s", "wait_p99_s", "short_wait_p99_s", "long_wait_p99_s", "ttft_p99_s")
_ALIKE: Final = {"tokens_per_s": 24_700.0, "utilisation": 0.9, "over_limit_steps": 0.0}
TABLE_2: Final[Mapping[str, Mapping[str, float]]] = {
    policy: {
        **dict(zip(_COLUMNS, values, strict=True)),
        "tokens_per_s": 24_700.0,
        "utilisation": 0.9,
        "over_limit_steps": 0.0,
    }
    for policy, values in {
        "fcfs": (0.179, 0.771, 0.771, 0.766, 0.804),
        "psf": (0.123, 1.376, 0.285, 2.097, 1.428),
        "aa": (0.178, 0.949, 0.970, 0.491, 0.975),
        "qba": (0.146, 0.951, 0.565, 1.446, 0.998),
    }.items()
}
"""Table II, and what §IV-E says of all four policies (of utilisation the middle of its 0.89 to 0.91)."""

UTILISATION: Final = (0.89, 0.91)
ARRIVAL_SCV: Final = 2.9
TOKENS_PER_S: Final = 24_700.0


def value(experiment: str, policy: str, metric: str, at: Mapping[str, object]) -> float | None:
    """What the paper prints for a row, or None."""
    if experiment == "table2":
        if metric == "arrival_scv":
            return ARRIVAL_SCV
        return TABLE_2.get(policy, {}).get(metric)
    for error in ("eps_sl", "eps_ls"):
        rate = at.get(error)
        if isinstance(rate, float) and experiment in ("fig4", "fig5"):
            found = AT_32_RPS.get((policy, error if rate else "eps_sl", rate), {})
            return found.get(metric)
    return None
