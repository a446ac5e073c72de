"""The production trace: both protocols beside the paper's table II."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...markup import paragraph, table
from ...values import number, plain
from ..cells import cell, of_paper, ratio
from ..facts import known, ranked
from ..study import Study, Value
from .names import METRICS, POLICIES, by_policy
from .performance import kept

__all__ = ["trace"]

PROTOCOLS = {"paper": "the paper's protocol", "demand_matched": "demand matched"}


def trace(study: Study) -> str:
    """The paper's section IV-E; empty without its rows."""
    places = {str(at["protocol"]): at for at in study.places("table2")}
    if not places:
        return ""
    texts = [_reading(study, protocol, at) for protocol, at in places.items()]
    how = (
        "Mean waits are pooled over all windows, P99s are medians over them. The trace is Azure's conversation trace "
        "of 2023, which is not the paper's: compare orders and ratios. Intervals, and whether two policies are told "
        "apart, are of windows that have no request in common."
    )
    return "\n\n".join(["## Production trace", how, *(text for text in texts if text), _table(study, places)])


def _title(protocol: str) -> str:
    return PROTOCOLS.get(protocol, protocol)


def _reading(study: Study, protocol: str, at: Mapping[str, Any]) -> str:
    mean, short, long = (
        by_policy(study, "table2", metric, at) for metric in ("wait_mean_s", "short_wait_p99_s", "long_wait_p99_s")
    )
    windows = {v.seeds for v in known(mean).values()}
    scv, factor = (
        study.value("table2", policy, metric, at) for policy, metric in (("fcfs", "arrival_scv"), ("", "length_factor"))
    )
    what = [f"{max(windows)} windows"] if windows else []
    what += [f"lengths × {plain(factor.measured)}"] if factor and factor.measured else []
    what += [_scv(scv)] if scv and scv.measured is not None else []
    orders = [
        f"{title} {text}"
        for title, values in (("mean wait", mean), ("true-short P99", short), ("true-long P99", long))
        if (text := ranked(values))
    ]
    return paragraph(
        f"**{_title(protocol)[0].upper()}{_title(protocol)[1:]}**" + (f" ({', '.join(what)}):" if what else ":"),
        f"{'; '.join(orders)}." if orders else "",
        kept(mean),
        _printed_order(mean),
    )


def _scv(value: Value) -> str:
    text = f"squared coefficient of variation of the gaps between arrivals {number(value.measured)}"
    return text + (f", in the paper {of_paper(value)}" if value.paper is not None else "")


def _printed_order(values: Mapping[str, Value | None]) -> str:
    both = {n: v for n, v in known(values).items() if v.paper is not None}
    if len(both) < 2:
        return ""
    ours = sorted(both, key=lambda n: both[n].measured or 0.0)
    theirs = sorted(both, key=lambda n: both[n].paper or 0.0)
    same = "also the paper's" if ours == theirs else f"not the paper's, which is {' < '.join(theirs)}"
    return f"The order of the means is {same}."


def _table(study: Study, places: Mapping[str, Mapping[str, Any]]) -> str:
    head = ["metric", "policy", "paper"]
    for protocol in places:
        head += [_title(protocol), "ratio"]
    rows = []
    for metric, title in METRICS.items():
        for policy, name in POLICIES.items():
            values = [study.value("table2", policy, metric, at) for at in places.values()]
            if not any(values):
                continue
            shown = next((v for v in values if v is not None and v.paper is not None), None)
            unit = " (s)" if metric.endswith("_s") and metric != "tokens_per_s" else ""
            row = [title + unit, name, of_paper(shown)]
            rows.append([*row, *(text for value in values for text in (cell(value), ratio(value)))])
    return table(head, rows, 2)
