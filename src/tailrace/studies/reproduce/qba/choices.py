"""What the paper leaves unstated, one choice changed at a time."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Final

from ..points import Point
from .profiles import Profile, label
from .published import AT_32_RPS

__all__ = ["Choice", "Fitted", "choices", "fit_points"]


Fitted = tuple[str, tuple[str, str, float], Point]
"""Policy, key of `AT_32_RPS`, point: one of the six runs a seed that hold the 15 printed values."""


@dataclass(frozen=True)
class Choice:
    """One way to read the paper."""

    choice: str
    value: str
    default: bool
    points: list[Fitted]


ALTERNATIVES: Final[dict[str, dict[str, dict[str, Any]]]] = {
    "length of a run, requests": {"2500": {"requests": 2500}, "5000": {}, "10000": {"requests": 10_000}},
    "first requests left out of the waits": {"none": {}, "10 %": {"skipped": 0.1}, "20 %": {"skipped": 0.2}},
    "KV projection at admission": {
        "live + the first chunk": {"engine": {"projection": "chunk"}},
        "live + prompt": {"engine": {"projection": "live_prompt"}},
        "live + growth + prompt": {},
    },
    "KV beyond its capacity": {
        "reported": {},
        "decodes stall": {"engine": {"kv_limit": "enforced", "kv_short": "stall"}},
        "the newest is preempted": {"engine": {"kv_limit": "enforced"}},
    },
    "a head that does not fit": {"stops admission": {}, "is passed over": {"engine": {"blocked_head": "skip"}}},
    "waits that the aging module remembers": {
        "predicted long": {},
        "all started": {"aging": {"reference": "history_all"}},
        "the queue's": {"aging": {"reference": "queue"}},
    },
    "how many of them": {
        "50": {"aging": {"window": 50}},
        "100": {"aging": {"window": 100}},
        "200": {},
        "400": {"aging": {"window": 400}},
        "all": {"aging": {"window": 0}},
    },
    "fewest before anybody is aged": {
        "5": {"aging": {"min_samples": 5}},
        "20": {},
        "50": {"aging": {"min_samples": 50}},
    },
    "a second debt": {"waits for the first": {}, "accumulates": {"qba": {"debts": "accumulate"}}},
    "first output token": {
        "in the step after the prefill": {},
        "in the prefill's last step": {"engine": {"prefill_emits": True}},
    },
    "timing jitter, off in the paper": {
        "none": {},
        "10 % of a step": {"engine": {"step_jitter": 0.1}},
        "50 % of a step": {"engine": {"step_jitter": 0.5}},
    },
    "concurrency, s a sequence, off in the paper": {
        "0": {},
        "5e-6": {"latency": {"per_seq_s": 5e-6}},
        "1e-5": {"latency": {"per_seq_s": 1e-5}},
    },
}
"""Choice → its values → what of the profile they change; nothing = as in the profile ``paper``."""


def choices(profile: Profile) -> list[Choice]:
    """Every choice with every value, from ``profile``."""
    return [
        Choice(choice, value, not changed, fit_points(dataclasses.replace(profile, **changed)))
        for choice, values in ALTERNATIVES.items()
        for value, changed in values.items()
    ]


def fit_points(profile: Profile) -> list[Fitted]:
    """The points behind the 15 printed values at 32 requests/s."""
    out = []
    for policy, error, rate in AT_32_RPS:
        out.append((policy, (policy, error, rate), profile.point(policy, predictions=label(error, rate))))
    return out
