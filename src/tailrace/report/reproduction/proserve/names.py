"""What the study calls things on its page, and how its numbers are found there."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from ...style import Style, style_of
from ...values import MISSING, number
from ..study import Curve, Study, Value

__all__ = ["FIGURE", "MIXES", "POLICIES", "Column", "curve", "label", "percent", "percents", "policies", "scaled"]
__all__ += ["style", "table_rows"]

POLICIES: Final[Mapping[str, tuple[str, Style]]] = {
    "tailrace": ("SlideBatching, ours", style_of("slide")),
    "paper": ("SlideBatching, the paper's", Style("#4477AA", "P", 2.0)),
    "xllm": ("SlideBatching, xLLM's", Style("#8877CC", "d", 2.0)),
    "srpt": ("SJF by remaining work (SRPT)", dataclasses.replace(style_of("srpt"), dashed=True)),
    "sjf": ("SJF", dataclasses.replace(style_of("sjf"), dashed=True)),
    "prefill_first": ("vLLM-FCFS (prefill first)", style_of("prefill_first")),
    "vtc": ("weighted VTC", style_of("vtc")),
    "sarathi": ("Sarathi-FCFS", style_of("sarathi")),
    "sarathi_priority": ("Sarathi-Priority", style_of("sarathi_priority")),
    "fairbatching": ("FairBatching", style_of("fairbatching")),
    "edf": ("EDF", style_of("edf")),
    "priority": ("strict priority", style_of("priority")),
    "vllm_fcfs": ("vLLM V1 FCFS", style_of("vllm_fcfs")),
    "best of the paper's": ("best of the paper's baselines", style_of("fcfs")),
}
"""Name in the study → on the page, and how it is drawn; dashed: it is told output lengths."""
FIGURE: Final = (
    *("tailrace", "paper", "xllm", "srpt", "prefill_first", "vtc", "sarathi", "sarathi_priority", "fairbatching"),
    "edf",
)
"""Whom figures show: the paper's baselines, and SJF that is told all lengths."""
MIXES: Final = {"azure": "Azure", "sharegpt": "ShareGPT-like", "bursty": "bursty", "reasoning": "reasoning mix"}
VARIANTS: Final = (
    *(Style("#882255", "o", 2.6), Style("#228833", "^"), Style("#0072B2", "s"), Style("#E69F00", "D")),
    *(
        Style("#CC6677", "v"),
        Style("#56B4E9", "P"),
        Style("#999933", "<"),
        Style("#4477AA", "X"),
        Style("#8877CC", "d"),
    ),
)
"""Of variants of one policy, in their order."""
Column = tuple[str, str, float]
"""Title, metric, and what its numbers are multiplied by."""


def label(policy: str) -> str:
    """A policy's name on the page; variants have theirs from the study."""
    return POLICIES[policy][0] if policy in POLICIES else policy


def style(policy: str, variant: int = 0) -> Style:
    """How it is drawn; ``variant``: the place of one that is no policy of its own."""
    return POLICIES[policy][1] if policy in POLICIES else VARIANTS[variant % len(VARIANTS)]


def policies(study: Study, experiment: str) -> list[str]:
    """Those of an experiment, in the document's order."""
    return list(dict.fromkeys(key[2] for key in study.values if key[1] == experiment))


def scaled(value: Value, factor: float) -> Value:
    """The value in another unit."""
    if value.measured is None or factor == 1:
        return value
    ends = None if value.ci is None else (factor * value.ci[0], factor * value.ci[1])
    by_seed = tuple(None if v is None else factor * v for v in value.by_seed)
    return Value(factor * value.measured, ends, value.paper, value.seeds, by_seed)


def curve(study: Study, experiment: str, policy: str, metric: str, axis: str, **fixed: Any) -> Curve:
    """Values over ``axis`` with the rest of the place as in ``fixed``; shares in per cent."""
    factor = 100.0 if metric.endswith(("attainment", "ratio", "share")) else 1.0
    found = {}
    for at in study.places(experiment):
        if {name: value for name, value in at.items() if name != axis} == fixed and axis in at:
            value = study.value(experiment, policy, metric, at)
            if value is not None:
                found[float(at[axis])] = scaled(value, factor)
    return dict(sorted(found.items()))


def percent(value: Value | None, signed: bool = False) -> str:
    """``+12 % [8, 15]`` of a number that is in per cent already."""
    if value is None or value.measured is None:
        return MISSING
    text = f"{value.measured:+,.0f} %" if signed else f"{value.measured:,.1f} %"
    if value.ci is not None:
        text += f" [{value.ci[0]:,.0f}, {value.ci[1]:,.0f}]" if signed else f" [{value.ci[0]:.1f}, {value.ci[1]:.1f}]"
    return text.replace("-", "−")


def percents(value: Value | None) -> str:
    """A share as ``95.2 [94.8, 95.6]``, in per cent."""
    if value is None or value.measured is None:
        return MISSING
    text = f"{100 * value.measured:.1f}"
    return text if value.ci is None else f"{text} [{100 * value.ci[0]:.1f}, {100 * value.ci[1]:.1f}]"


def table_rows(
    study: Study, experiment: str, at: Mapping[str, Any], columns: Mapping[str, str], names: Any = None
) -> list[list[str]]:
    """A row a policy: shares in per cent with intervals, other numbers as they are."""
    rows = []
    for policy in names or policies(study, experiment):
        found = {metric: study.value(experiment, policy, metric, at) for metric in columns}
        if any(v is not None and v.measured is not None for v in found.values()):
            rows.append([label(policy), *(_shown(metric, value) for metric, value in found.items())])
    return rows


def _shown(metric: str, value: Value | None) -> str:
    if metric.endswith(("attainment", "ratio", "share", "tax")):
        return percents(value)
    return MISSING if value is None else number(value.measured)
