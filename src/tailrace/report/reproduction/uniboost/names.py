"""What the study calls things on its page."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from ...style import Style, style_of
from ..study import Study, Value

__all__ = ["BASES", "METRICS", "MIXES", "POLICIES", "gamma_names", "label", "style"]

POLICIES: Final[Mapping[str, tuple[str, str]]] = {
    "srpt_decode_first": ("SRPT, decodes stay", "trail"),
    "srpt_swap": ("SRPT, swap", "srpt"),
    "srpt_recompute": ("SRPT, recompute", "sjf"),
    "sarathi": ("Sarathi", "sarathi"),
    "sjf": ("SJF", "sjf"),
    "ltr": ("LTR", "ltr"),
    "spf": ("SPF", "spf"),
    "las": ("LAS", "las"),
    "mlfq": ("MLFQ", "mlfq"),
    "dist_boost": ("DistBoost", "dist_boost"),
    "uniboost_base": ("UniBoost-Base", "uniboost_base"),
    "memguard": ("MemGuard", "memguard"),
    "uniboost_low": ("UniBoost, low γ", "uniboost"),
    "uniboost_high": ("UniBoost, high γ", "uniboost"),
    "uniboost_base, δ = 20 s": ("UniBoost-Base, δ = 20 s", "uniboost_base"),
    "memguard, no lock": ("MemGuard without its lock", "memguard"),
    "uniboost": ("UniBoost", "uniboost"),
    "fcfs": ("FCFS", "fcfs"),
    "srpt": ("SRPT", "srpt"),
    "boost_100": ("Boost, γ = 100", "gamma_boost"),
    "boost_0.01": ("Boost, γ = 0.01", "gamma_boost"),
}
"""Name in the study → on the page, and whose colour it has."""
BASES: Final = ("srpt_decode_first", "srpt_swap", "srpt_recompute")
MIXES: Final = {
    "mix-2": "mix-2: 70 % reasoning, 30 % Azure conversation",
    "mix-1": "mix-1: 20 % reasoning, 80 % Azure conversation",
    "reasoning": "reasoning alone (light tail)",
    "azure": "Azure conversation",
    "sharegpt": "ShareGPT-like",
    "heavy": "heavy tail (DeepSeek-R1 service)",
}
METRICS: Final = {
    "ttft_mean": "mean TTFT",
    "ttft_p95": "P95 TTFT",
    "ttft_p99": "P99 TTFT",
    "e2e_mean": "mean E2E",
    "e2e_p95": "P95 E2E",
    "e2e_p99": "P99 E2E",
    "tbt_mean": "mean TBT",
    "tbt_p99": "P99 TBT",
    "requests": "requests/s",
}


def label(policy: str) -> str:
    """A policy's name on the page; variants of memory's study have theirs from the study."""
    return POLICIES[policy][0] if policy in POLICIES else policy


def style(policy: str) -> Style:
    """How it is drawn: the variants of SRPT have perfect predictions, and are dashed."""
    base = style_of(POLICIES[policy][1])
    if policy == "uniboost_low":
        return dataclasses.replace(base, hollow=True, width=2.0)
    return dataclasses.replace(base, dashed=policy in (*BASES, "sjf", "ltr", "srpt"))


def gamma_names(study: Study) -> dict[str, str]:
    """``low γ`` and ``high γ`` with their values."""
    s = study.document["settings"]
    return {
        "uniboost_low": f"γ_max = {s['gamma_low_per_s']:g}/s",
        "uniboost_high": f"γ_max = {s['gamma_high_per_s']:g}/s",
    }


def values(study: Study, experiment: str, metric: str, at: Mapping[str, Any]) -> dict[str, Value]:
    """By policy, those that were measured, in the page's order."""
    found = {policy: study.value(experiment, policy, metric, at) for policy in POLICIES}
    return {policy: v for policy, v in found.items() if v is not None and v.measured is not None}
