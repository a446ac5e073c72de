"""The page's tables: main results, classes, variants, memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...markup import details, escape, table
from ...values import MISSING, number, plain
from ..study import Study
from .names import MIXES, POLICIES, label, percent, percents, policies, table_rows

__all__ = ["by_load", "classes", "gains", "main", "memory", "over", "sensitivity", "starvation", "workloads"]

SHARES: Final = {
    "attainment": "attainment (%)",
    "high_attainment": "high class",
    "low_attainment": "low class",
    "tdg_ratio": "TDG_Ratio (%)",
}
MAIN: Final = {
    **SHARES,
    "ttft_p99_s": "P99 TTFT (s)",
    "tpot_p99_s": "P99 TPOT (s)",
    "wait_longest_s": "longest wait (s)",
    "preemptions_per_request": "preemptions a request",
}


def main(study: Study, at: Mapping[str, Any]) -> str:
    """Every policy at one place of the main figure."""
    rows = table_rows(study, "fig12", at, MAIN, POLICIES)
    return table(["policy", *MAIN.values()], rows) if rows else ""


def by_load(study: Study, model: str, mix: str) -> str:
    """Every load, to unfold."""
    parts = []
    for at in study.places("fig12"):
        if (at["model"], at["mix"]) == (model, mix):
            parts.append(f"Load {at['load']:g}:\n\n{main(study, at)}")
    return details(f"{MIXES[mix]}, every load", "\n\n".join(parts)) if parts else ""


def gains(study: Study, model: str, mix: str, metric: str) -> str:
    """Per cent above each baseline, by load."""
    places = [at for at in study.places("gain") if (at["model"], at["mix"]) == (model, mix)]
    rows = []
    for policy in POLICIES:
        found = [study.value("gain", policy, f"{metric}_gain", at) for at in places]
        if any(v is not None for v in found):
            rows.append([label(policy), *(percent(v, signed=True) for v in found)])
    return table(["above", *(f"load {at['load']:g}" for at in places)], rows) if rows else ""


def classes(study: Study, experiment: str, axis: str) -> str:
    """Attainment by class over ``axis``."""
    rows = []
    for policy in policies(study, experiment):
        for at in study.places(experiment):
            found = {metric: study.value(experiment, policy, metric, at) for metric in SHARES}
            if any(v is not None for v in found.values()):
                rows.append([label(policy), f"{at[axis]:g}", *(percents(v) for v in found.values())])
    return table(["policy", axis, *SHARES.values()], rows, 1) if rows else ""


def over(study: Study, experiment: str, metric: str, axis: str, names: Sequence[str] = (), **fixed: Any) -> str:
    """A metric by policy and ``axis``."""
    places = [
        at for at in study.places(experiment) if {k: v for k, v in at.items() if k != axis} == fixed and axis in at
    ]
    rows = []
    for policy in names or policies(study, experiment):
        found = [study.value(experiment, policy, metric, at) for at in places]
        if any(v is not None for v in found):
            share = metric.endswith(("attainment", "ratio", "share"))
            rows.append(
                [
                    label(policy),
                    *(percents(v) if share else MISSING if v is None else number(v.measured) for v in found),
                ]
            )
    return table(["", *(f"{axis} {at[axis]:g}" for at in places)], rows) if rows else ""


def workloads(study: Study) -> str:
    """What load 1 is, and the SLOs and budgets that follow."""
    rows = []
    for at in study.places("setting"):
        found = [study.value("setting", "", m, at) for m in ("capacity_rps", "ttft_slo_s", "token_budget")]
        mix = study.document["settings"]["mixes"][at["mix"]]
        rows.append(
            [
                escape(at["model"]),
                MIXES[at["mix"]],
                escape(mix["about"]),
                number(mix["duration_s"]),
                *(MISSING if v is None else plain(float(f"{v.measured:.4g}")) for v in found),
            ]
        )
    head = [
        "model",
        "workload",
        "",
        "arrivals last (s)",
        "load 1 (requests/s)",
        "TTFT SLO (s)",
        "profiled token budget",
    ]
    return table(head, rows, 3) if rows else ""


def sensitivity(study: Study) -> str:
    """Every setting at every load, to unfold."""
    places = study.places("sensitivity")
    loads = list(dict.fromkeys(at["load"] for at in places))
    rows = []
    for at in places:
        if at["load"] == loads[0]:
            cells = [study.value("sensitivity", "tailrace", "attainment", {**at, "load": load}) for load in loads]
            default = "yes" if at["default"] else ""
            rows.append([escape(at["varied"]), escape(at["value"]), default, *(percents(v) for v in cells)])
    head = ["varied", "value", "default", *(f"load {load:g}" for load in loads)]
    return details("Attainment (%) of every setting", table(head, rows, 3)) if rows else ""


STARVED: Final = {
    "attainment": "attainment (%)",
    "low_attainment": "low class",
    "tdg_ratio": "TDG_Ratio (%)",
    "wait_longest_s": "longest wait (s)",
    "low_wait_longest_s": "of the low class (s)",
    "wait_p99_s": "P99 wait (s)",
}
KEPT: Final = {
    "attainment": "attainment (%)",
    "tdg_ratio": "TDG_Ratio (%)",
    "preemptions_per_request": "preemptions a request",
    "recompute_tax": "tokens computed again (%)",
    "swap_tax": "time waiting for copies (%)",
    "swapped_gb": "copied (GB)",
    "completed_share": "finished (%)",
}


def starvation(study: Study) -> str:
    return _by_place(study, "starvation", STARVED)


def memory(study: Study) -> str:
    return _by_place(study, "memory", KEPT)


def _by_place(study: Study, experiment: str, columns: Mapping[str, str]) -> str:
    parts = []
    for at in study.places(experiment):
        rows = table_rows(study, experiment, at, columns)
        where = f", {at['kv_share']:g} times the tight KV" if "kv_share" in at else ""
        parts.append(f"Load {at['load']:g}{where}:\n\n{table(['', *columns.values()], rows)}")
    return "\n\n".join(parts)
