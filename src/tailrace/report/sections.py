"""The tables of a report below its figures: by class, all percentiles, rules and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .. import spec
from ..workloads.workload import LONG_QUANTILE
from .values import (
    METRICS,
    MISSING,
    STATISTIC_NAMES,
    Cell,
    Column,
    Grid,
    comparison,
    difference_cell,
    grid,
    lookup,
    objectives,
    plain,
    time_columns,
)

__all__ = [
    "Block",
    "Rules",
    "Section",
    "by_class",
    "differences",
    "fairness",
    "label_of",
    "percentiles",
    "rules",
    "settings",
]

GROUPINGS: Final = {
    "by_true_class": "By true length class",
    "by_predicted_class": "By predicted length class",
    "by_class": "By class of service",
    "by_tenant": "By tenant",
}
MOST_BLOCKS: Final = 12
"""Classes or tenants shown of one grouping, the largest."""
CLASS_COLUMNS: Final = (
    Column("completed / submitted", ("counts",), "done", 1),
    *time_columns(("wait_s", "p50"), ("wait_s", "p99"), ("ttft_s", "p50"), ("ttft_s", "p99")),
    *time_columns(("tbt_s", "p99"), ("e2e_s", "p50"), ("e2e_s", "p99")),
)

WASTE: Final = (
    Column("Jain, requests", ("fairness", "jain_requests"), "ratio", 1),
    Column("Jain, tenants", ("fairness", "jain_tenants"), "ratio", 1),
    Column("slowdown mean", ("fairness", "slowdown", "mean"), "ratio"),
    Column("slowdown P99", ("fairness", "slowdown", "p99"), "ratio"),
    Column("starved requests", ("starvation", "requests"), "count"),
    Column("preemptions", ("counts", "preemptions"), "count"),
    Column("recompute tax", ("recompute_tax",), "share"),
)
BETTER: Final = (
    "Mean over seeds of the difference, paired by seed, and its 95 % interval; shares in percentage points. Green and "
    "bold: better in all of the interval. Red: worse in all of it. One in twenty such intervals misses by chance."
)


@dataclass(frozen=True)
class Block:
    """Rows of a table that belong together: one class, or one metric."""

    title: str
    rows: list[tuple[str, list[Cell]]]
    """``(label, cells)``"""


@dataclass(frozen=True)
class Section:
    """One table in blocks."""

    title: str
    headings: list[tuple[str, str]]
    blocks: list[Block]
    remark: str = ""


@dataclass(frozen=True)
class Rules:
    """Effective rules: a row a rule, a column a policy; those that differ come first."""

    labels: list[str]
    rows: list[tuple[str, bool, list[str]]]
    """``(rule, differs, values)``"""


def label_of(result: Mapping[str, Any]) -> str:
    """The unique name of a result."""
    return str(result.get("label") or result["policy"])


def by_class(document: Mapping[str, Any]) -> list[Section]:
    """A table for each grouping in which there is more than one group; one partition is shown once."""
    out = []
    same = all(r.get("by_true_class") == r.get("by_predicted_class") for r in document["results"])
    for key, title in GROUPINGS.items():
        if same and key == "by_predicted_class":
            continue
        if same and key == "by_true_class":
            title = "By length class (every prediction is right, so true and predicted classes are the same)"
        sizes: dict[str, float] = {}
        for result in document["results"]:
            for name, record in (result.get(key) or {}).items():
                sizes[name] = max(sizes.get(name, 0), lookup(record, ("counts", "submitted")) or 0)
        if len(sizes) < 2:
            continue
        largest = sorted(sizes, key=lambda name: -sizes[name])[:MOST_BLOCKS]
        shown = [name for name in sizes if name in largest]
        left = len(sizes) - len(shown)
        remark = f"The {len(shown)} largest; {left:,} more are in the JSON output." if left else ""
        if key in ("by_true_class", "by_predicted_class"):
            remark = f"Long: an output above the {_cutoff(document)} quantile of all outputs."
        out.append(_grouped(document, key, title, shown, remark))
    return out


def _cutoff(document: Mapping[str, Any]) -> str:
    """The quantile above which an output is long, by the prediction setting."""
    name, given = spec.parse(str(document["results"][0].get("predictions") or ""))
    return given.get("quantile", f"{LONG_QUANTILE:g}") if name == "label" else f"{LONG_QUANTILE:g}"


def _grouped(document: Mapping[str, Any], key: str, title: str, shown: Sequence[str], remark: str) -> Section:
    found = [
        (name, label_of(result), result[key][name])
        for name in shown
        for result in document["results"]
        if name in (result.get(key) or {})
    ]
    records = [record for _, _, record in found]
    columns = (*CLASS_COLUMNS, *objectives(records))
    cells = grid(records, columns, [name for name, _, _ in found])
    blocks = [
        Block(
            name,
            [(label, row) for (owner, label, _), row in zip(found, cells.rows, strict=True) if owner == name],
        )
        for name in shown
    ]
    return Section(title, cells.headings, blocks, remark)


def percentiles(document: Mapping[str, Any]) -> Section:
    """Every statistic of every metric, a block a metric with one unit."""
    labels = [label_of(result) for result in document["results"]]
    blocks = []
    for metric, title in METRICS.items():
        cells: Grid = grid(document["results"], _statistics(metric))
        blocks.append(Block(f"{title} ({cells.headings[0][1]})", list(zip(labels, cells.rows, strict=True))))
    return Section("All metrics", [(name, "") for name in STATISTIC_NAMES.values()], blocks)


def differences(document: Mapping[str, Any]) -> Section | None:
    """Each policy's differences from the first, paired by seed; None for one seed."""
    results = [r for r in document["results"] if r.get("vs")]
    if not results:
        return None
    base = results[0]["vs"]["policy"]
    columns = [c for c in comparison(results) if c.kind in ("time", "rate", "share")]
    found = [lookup(r, ("vs", "differences")) for r in results]
    rows: list[list[Cell]] = [[] for _ in results]
    headings = []
    for column in columns:
        pairs = [lookup(f, column.path) or {} for f in found]
        unit, factor = column.unit(pair.get("difference") for pair in pairs)
        headings.append((column.title, unit))
        for row, pair in zip(rows, pairs, strict=True):
            row.append(difference_cell(pair, column.better, factor))
    labels = [label_of(r) for r in results]
    return Section(f"Against {base}", headings, [Block("", list(zip(labels, rows, strict=True)))], BETTER)


def fairness(document: Mapping[str, Any]) -> Section | None:
    """How evenly requests were served, and what was computed twice; None where nothing says it."""
    results = document["results"]
    columns = [c for c in WASTE if any(lookup(r, c.path) is not None for r in results)]
    if not any(r.get("fairness") for r in results):
        return None
    cells = grid(results, columns)
    rows = list(zip([label_of(r) for r in results], cells.rows, strict=True))
    return Section("Fairness and waste", cells.headings, [Block("", rows)])


def _statistics(metric: str) -> tuple[Column, ...]:
    resolution = time_columns((metric, "p99"))[0].resolution
    return tuple(
        Column(name, ("metrics", metric, key), scale=metric, resolution=resolution)
        for key, name in STATISTIC_NAMES.items()
    )


def rules(document: Mapping[str, Any]) -> Rules:
    """Parameters, predictions and engine rules in effect for each policy."""
    results = document["results"]
    names = dict.fromkeys(name for result in results for name in (result.get("rules") or {}))
    rows = [
        ("parameters", [plain(result.get("params") or {}) for result in results]),
        ("predictions", [plain(result.get("predictions")) for result in results]),
        *((name, [plain((result.get("rules") or {}).get(name)) for result in results]) for name in names),
    ]
    marked = [(name, len(set(values)) > 1, values) for name, values in rows]
    return Rules([label_of(result) for result in results], sorted(marked, key=lambda row: not row[1]))


def settings(document: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """``(title, [(name, value)])`` of the workload, the engine and its latency model."""
    engine = dict(document.get("engine") or {})
    latency = engine.pop("latency", None) or {}
    parts = (("Workload", document.get("workload") or {}), ("Engine", engine), ("Latency model", latency))
    return [(title, _flat(mapping)) for title, mapping in parts]


def _flat(mapping: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    out = []
    for key, value in mapping.items():
        if isinstance(value, Mapping) and value:
            out += _flat(value, f"{prefix}{key}.")
        else:
            out.append((f"{prefix}{key}", plain(value) if value != {} else MISSING))
    return out
