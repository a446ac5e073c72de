"""The page's tables: gains on SRPT by rule, what was measured, memory, starvation, capabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...markup import details, escape, table
from ...values import MISSING, number, plain
from ..cells import cell, of_paper
from ..study import Study, Value
from .names import BASES, METRICS, MIXES, label, values

__all__ = [
    "absolute",
    "by_policy",
    "capabilities",
    "gains",
    "memory",
    "mixes",
    "percent",
    "sensitivity",
    "starvation",
    "toys",
]

GAINS: Final = ("e2e_mean", "e2e_p95", "e2e_p99", "ttft_mean", "ttft_p95", "ttft_p99", "tbt_mean", "requests")
SECONDS: Final = ("ttft_mean", "ttft_p95", "ttft_p99", "e2e_mean", "e2e_p95", "e2e_p99", "tbt_mean", "tbt_p99")


def gains(study: Study, mix: str) -> str:
    """Per cent better than SRPT under each rule, the article's numbers beside ours."""
    parts = []
    for rule in BASES:
        at = {"mix": mix, "rule": rule}
        found = {metric: values(study, "against", f"{metric}_gain", at) for metric in GAINS}
        policies = list(dict.fromkeys(p for column in found.values() for p in column))
        if not policies:
            continue
        rows = [[label(p), *(percent(found[m].get(p)) for m in GAINS)] for p in policies]
        printed = _printed(study, at)
        head = ["% better", *(METRICS[m] for m in GAINS)]
        parts.append(f"Against {label(rule)}:\n\n{table(head, [*rows, *printed])}")
    return "\n\n".join(parts)


def percent(value: Value | None) -> str:
    """``+8.3 [4.6, 12.1]``; where it takes more than twice as long, how many times as long."""
    if value is None or value.measured is None:
        return MISSING
    if value.measured < -100:
        return f"{1 - value.measured / 100:,.1f} times"
    text = f"{value.measured:+.1f}"
    if value.ci is not None:
        text += f" [{value.ci[0]:.1f}, {value.ci[1]:.1f}]"
    return text.replace("-", "−").replace("+0.0 [0.0, 0.0]", "0")


def _printed(study: Study, at: Mapping[str, Any]) -> list[list[str]]:
    """Rows of what the article prints."""
    out = []
    for policy, name in (("uniboost_low", "*the article's UniBoost*"), ("dist_boost", "*the article's DistBoost*")):
        found = [study.value("against", policy, f"{m}_gain", at) for m in GAINS]
        if any(v is not None and v.paper is not None for v in found):
            out.append([name, *(f"{v.paper:+g}".replace("-", "−") if v and v.paper is not None else "" for v in found)])
    return out


def absolute(study: Study, experiment: str, at: Mapping[str, Any], title: str) -> str:
    """Seconds by policy, to unfold."""
    text = by_policy(study, experiment, at)
    return details(title, text) if text else ""


def by_policy(study: Study, experiment: str, at: Mapping[str, Any], metrics: Sequence[str] = SECONDS) -> str:
    """A table of seconds, throughput, and what preemption cost."""
    columns = {METRICS[m] + " (s)": values(study, experiment, f"{m}_s", at) for m in metrics}
    columns["requests/s"] = values(study, experiment, "requests_per_s", at)
    columns["preemptions a request"] = values(study, experiment, "preemptions_per_request", at)
    columns["swapped GB"] = values(study, experiment, "swapped_gb", at)
    columns["recomputed"] = values(study, experiment, "recompute_tax", at)
    columns = {title: column for title, column in columns.items() if column}
    policies = list(dict.fromkeys(p for column in columns.values() for p in column))
    rows = [[label(p), *(cell(column.get(p)) for column in columns.values())] for p in policies]
    return table(["policy", *columns], rows) if rows else ""


def starvation(study: Study) -> str:
    """§6.5's numbers beside ours."""
    metrics = {
        "short_e2e_p99_s": "short P99 E2E (s)",
        "long_e2e_mean_s": "long mean E2E (s)",
        "long_e2e_p99_s": "long P99 E2E (s)",
        "long_preempted_mean_s": "long, mean time lost to preemption (s)",
        "long_preempted_p99_s": "long, P99 of it (s)",
        "long_slope_s": "slope (s a request)",
    }
    found = {m: values(study, "starvation", m, {}) for m in metrics}
    policies = list(dict.fromkeys(p for column in found.values() for p in column))
    rows = [[label(p), *(_beside(found[m].get(p)) for m in metrics)] for p in policies]
    return table(["policy", *metrics.values()], rows) if rows else ""


def _beside(value: Value | None) -> str:
    """Measured, and in brackets what is printed."""
    text = cell(value)
    return f"{text} (article: {of_paper(value)})" if value is not None and value.paper is not None else text


def memory(study: Study) -> str:
    """§5.3 where KV is short."""
    places = study.places("memory")
    if not places:
        return ""
    titles = {
        "swapped_gb": "swapped GB",
        "preemptions_per_request": "preemptions a request",
        "revisions_over_bound": "requests with more keys than the bound",
        "escapes": "locked ones that yielded",
        "e2e_mean_s": "mean E2E (s)",
        "e2e_p99_s": "P99 E2E (s)",
        "ttft_p95_s": "P95 TTFT (s)",
    }
    policies = list(dict.fromkeys(key[2] for key in study.values if key[1] == "memory"))
    rows = [[label(p), *(cell(study.value("memory", p, m, places[0])) for m in titles)] for p in policies]
    return table([f"KV of {plain(places[0]['kv_tokens'])} tokens", *titles.values()], rows)


def sensitivity(study: Study) -> str:
    """Every setting, to unfold."""
    metrics = {
        "ttft_mean_s": "mean TTFT (s)",
        "ttft_p95_s": "P95 TTFT (s)",
        "e2e_mean_s": "mean E2E (s)",
        "e2e_p99_s": "P99 E2E (s)",
        "tbt_mean_s": "mean TBT (s)",
    }
    rows = [
        [
            escape(str(at["varied"])),
            escape(str(at["value"])),
            "yes" if at["default"] else "",
            *(cell(study.value("sensitivity", "uniboost", m, at)) for m in metrics),
        ]
        for at in study.places("sensitivity")
    ]
    return details("Every setting", table(["varied", "value", "default", *metrics.values()], rows, 3)) if rows else ""


def toys(study: Study) -> str:
    """§3's two schedules."""
    rows = []
    for at in study.places("toys"):
        for policy in dict.fromkeys(key[2] for key in study.values if key[1] == "toys"):
            pair = [study.value("toys", policy, m, at) for m in ("mean_steps", "max_steps")]
            if any(v is not None for v in pair):
                rows.append([str(at["schedule"]), label(policy), *(_beside(v) for v in pair)])
    return table(["schedule", "policy", "mean steps", "most steps"], rows, 2) if rows else ""


def capabilities(study: Study) -> str:
    """§3's table, measured."""
    records = study.document.get("capabilities") or []
    if not records:
        return ""
    rows = [
        [
            label(r["policy"]),
            _mark(r["light_tail"], r["near"]),
            _mark(r["heavy_tail"], r["near"]),
            {True: "no", False: "yes"}.get(r["needs_predictions"], MISSING),
            number(r["preemptions_per_request"]),
            _share(r["swap_tax"]),
            _share(r["recompute_tax"]),
        ]
        for r in records
    ]
    head = ["policy", "light tail", "heavy tail", "works without predictions", "preemptions a request"]
    return table([*head, "time spent waiting for swaps", "tokens computed again"], rows)


def _mark(ratio: float | None, near: float) -> str:
    if ratio is None:
        return MISSING
    return f"{'yes' if ratio <= near else 'no'} ({ratio:.2f})"


def _share(value: float | None) -> str:
    return MISSING if value is None else f"{100 * value:.1f} %"


def mixes(study: Study) -> list[str]:
    """Those that were run, in the page's order."""
    found = {at["mix"] for at in study.places("main")}
    return [mix for mix in MIXES if mix in found]
