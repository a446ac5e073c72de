"""What the QBA paper calls things, and what it states: the only facts here that no document holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..facts import Axis
from ..study import Study, Value

__all__ = ["DEFAULTS", "ERRORS", "METRICS", "POLICIES", "REFERENCE_RPS", "STATED", "by_policy", "printed", "where"]

POLICIES: Final[Mapping[str, str]] = {"fcfs": "FCFS", "psf": "PSF", "aa": "AA", "qba": "QBA"}
METRICS: Final[Mapping[str, str]] = {
    "wait_mean_s": "mean wait",
    "wait_p99_s": "P99 wait",
    "short_wait_p99_s": "true-short P99 wait",
    "long_wait_p99_s": "true-long P99 wait",
    "ttft_p99_s": "P99 TTFT",
    "tokens_per_s": "tokens a second",
    "utilisation": "batch utilisation",
    "over_limit_steps": "steps over the KV limit",
}
REFERENCE_RPS: Final = 32.0
"""The load of all sweeps but that over load."""
DEFAULTS: Final = {"k": 5.0, "aging_quantile": 0.8}
ERRORS: Final = {"fig4": ("eps_sl", "ε_SL", "Short-to-long"), "fig5": ("eps_ls", "ε_LS", "Long-to-short")}
"""By experiment: what it varies, the paper's symbol, and the errors in words."""
STATED: Final[Mapping[str, tuple[str, str]]] = {
    "load": (
        "Poisson; prompts 0.7 N(100, 30²) + 0.3 Pareto(1.4, 40), outputs LogNormal(3 + 0.75 log(1 + prompt), 0.3²), "
        "both at most 4,096",
        "which Pareto: here the classical one, from 40 up",
    ),
    "labels": ("long above the 0.85-quantile of outputs, without errors unless they are varied", "–"),
    "off": ("options, off in its main runs", "their formulas"),
    "requests": ("–", "how many, and whether a warm-up is cut"),
    "seeds": ("100", "–"),
    "engine": (
        "128 tokens a step, decode blocks of 8, KV of 8,192 tokens, admission under 0.7 of it, decodes first, then "
        "continued chunks",
        "what a projection of KV counts, what happens at the hard limit, whether a blocked head stops admission",
    ),
    "latency": ("3 ms, and 20 µs for each token over 64", "–"),
    "aging": (
        "γ = 0.8 of a history of started requests; k = 5",
        "whose waits the history holds, how many, and from how many on anybody is aged",
    ),
}
"""By setting: what the paper states of it, and what it leaves open."""


def by_policy(study: Study, experiment: str, metric: str, at: Mapping[str, object]) -> dict[str, Value | None]:
    """The metric of every policy at one place, by the policies' names."""
    return {name: study.value(experiment, policy, metric, at) for policy, name in POLICIES.items()}


def where(at: Mapping[str, object]) -> str:
    """A place of an error sweep, such as ``ε_SL = 0.05``; no error in either direction is ``ε = 0``."""
    for axis, symbol, _ in ERRORS.values():
        if at.get(axis):
            return f"{symbol} = {Axis().at(float(str(at[axis])))}"
    return "ε = 0"


def printed(study: Study, profile: str) -> dict[tuple[str, str, str], Value]:
    """The numbers printed for the reference load, each once: by place, policy and metric."""
    found: dict[tuple[str, str, str], Value] = {}
    for experiment in ERRORS:
        for at in study.places(experiment, profile):
            for policy in POLICIES:
                for metric in METRICS:
                    value = study.value(experiment, policy, metric, at, profile)
                    if value is not None and value.paper is not None:
                        found.setdefault((where(at), policy, metric), value)
    return found
