"""Numbers as people read them: units, digits, who is best in a column and who ties.

Everything here takes the document of ``tailrace compare --json`` and knows nothing of how
it will be drawn; terminal, Markdown and HTML show the same cells.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from ..metrics.seeds import interval

__all__ = ["COMPARISON", "METRICS", "MISSING", "STATISTIC_NAMES", "Cell", "Column", "Grid", "comparison"]
__all__ += [
    "difference_cell",
    "duration",
    "grid",
    "lookup",
    "mark_best",
    "number",
    "objectives",
    "plain",
    "time_columns",
    "time_unit",
]

MISSING: Final = "–"
METRICS: Final = {"wait_s": "wait", "ttft_s": "TTFT", "tpot_s": "TPOT", "tbt_s": "TBT", "e2e_s": "E2E"}
STATISTIC_NAMES: Final = {
    "mean": "mean",
    "p50": "P50",
    "p90": "P90",
    "p95": "P95",
    "p99": "P99",
    "p999": "P99.9",
    "max": "max",
}
RESOLUTION: Final = {"tbt_s": 0.008}
"""Width of the bins that gaps between tokens are counted in."""
MOST_DECIMALS: Final = 4


@dataclass(frozen=True)
class Column:
    """One column of a table of results."""

    title: str
    path: tuple[str, ...]
    """Keys that lead to its value in a result."""
    kind: Literal["text", "done", "count", "time", "rate", "share", "ratio"] = "time"
    better: int = -1
    """-1: the lowest is best, 1: the highest, 0: neither."""
    scale: str = ""
    """Time columns of one scale share their unit; by default a column has its own."""
    short: str = ""
    """A narrow heading for terminals."""
    resolution: float = 0.0
    """Values this close, relative to the larger, cannot be told apart."""

    def unit(self, values: Iterable[float | None]) -> tuple[str, float]:
        """The unit that suits ``values`` of this column, and its number in the value's own."""
        if self.kind == "time":
            return time_unit(values)
        return {"rate": ("/s", 1.0), "share": ("%", 100.0)}.get(self.kind, ("", 1.0))


@dataclass(frozen=True)
class Cell:
    """A value, as text and as what it is sorted by; times in seconds."""

    text: str
    value: float | str | None
    interval: tuple[float, float] | None = None
    """95 % over seeds."""
    interval_text: str = ""
    best: bool = False
    worse: bool = False
    """Surely worse than what it is compared with; only of differences."""
    by_seed: tuple[float | None, ...] = ()
    """A value a seed, where there are several."""


@dataclass(frozen=True)
class Grid:
    """Headings ``(title, unit)`` and rows of cells."""

    headings: list[tuple[str, str]]
    rows: list[list[Cell]]


def time_columns(*wanted: tuple[str, str]) -> tuple[Column, ...]:
    """Columns of ``(metric, statistic)`` pairs, such as ``("wait_s", "p99")``."""
    return tuple(
        Column(f"{METRICS[m]} {STATISTIC_NAMES[s]}", ("metrics", m, s), resolution=RESOLUTION.get(m, 0.0))
        for m, s in wanted
    )


COMPARISON: Final = (
    Column("load state", ("load_state",), "text", 0),
    Column("completed / submitted", ("counts",), "done", 1, short="done / all"),
    Column("preemptions", ("counts", "preemptions"), "count", short="preemp- tions"),
    *time_columns(("wait_s", "mean"), ("wait_s", "p99"), ("ttft_s", "p50"), ("ttft_s", "p99")),
    *time_columns(("tbt_s", "p99"), ("e2e_s", "p50"), ("e2e_s", "p99")),
    Column("output tokens", ("throughput", "output_tokens_per_s"), "rate", 1),
)

SLO: Final = (
    Column("SLOs met", ("slo", "attainment"), "share", 1),
    Column("goodput", ("slo", "goodput_rps"), "rate", 1),
    Column("token gain", ("gain", "tdg_ratio"), "share", 1),
)


def objectives(records: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    """The columns on objectives that any of ``records`` has: none without objectives, no gain without TTFT's."""
    return tuple(column for column in SLO if any(r.get(column.path[0]) for r in records))


def comparison(results: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    """The columns that compare ``results``."""
    return (*COMPARISON, *objectives(results))


def number(value: float | None, digits: int = 3) -> str:
    """``digits`` significant digits, no exponent, at most four decimals; whole parts stay whole."""
    if value is None or not math.isfinite(value):
        return MISSING
    if value == 0:
        return "0"
    decimals = min(max(digits - 1 - math.floor(math.log10(abs(value))), 0), MOST_DECIMALS)
    text = f"{value:,.{decimals}f}"
    if float(text.replace(",", "")) == 0:
        return f"<{10**-MOST_DECIMALS:g}" if value > 0 else "0"
    return text


def plain(value: Any) -> str:
    """A setting as text: whole floats lose their point, mappings become ``key=value``."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{int(value):,}" if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={plain(item)}" for key, item in value.items()) or MISSING
    if isinstance(value, (list, tuple)):
        return ", ".join(map(plain, value)) or MISSING
    return str(value)


def time_unit(seconds: Iterable[float | None]) -> tuple[str, float]:
    """The unit that suits all of ``seconds``, and its number in a second.

    ``ms`` when all are under a second, or most are far below and none is very long.
    """
    known = sorted(abs(s) for s in seconds if s is not None and math.isfinite(s))
    if not known or known[-1] == 0:
        return "s", 1.0
    small = known[-1] < 1 or (known[len(known) // 2] < 0.1 and known[-1] < 100)
    return ("ms", 1e3) if small else ("s", 1.0)


def duration(seconds: float | None) -> str:
    """One duration with its own unit, for sentences."""
    unit, factor = time_unit([seconds])
    return MISSING if seconds is None else f"{number(seconds * factor)} {unit}"


def lookup(result: Mapping[str, Any], path: Sequence[str]) -> Any:
    """What ``path`` leads to in ``result``, None if it ends early."""
    found: Any = result
    for key in path:
        if not isinstance(found, Mapping) or key not in found:
            return None
        found = found[key]
    return found


def grid(records: Sequence[Mapping[str, Any]], columns: Sequence[Column], blocks: Sequence[Any] | None = None) -> Grid:
    """Cells of ``records``; the best of a column are marked within each of ``blocks``.

    One block (and none marked) if there is a single record in it.
    """
    blocks = [0] * len(records) if blocks is None else blocks
    headings, table = [], []
    for column in columns:
        unit, factor = _unit(records, columns, column)
        cells = [_cell(record, column, factor) for record in records]
        for block in dict.fromkeys(blocks):
            places = [i for i, b in enumerate(blocks) if b == block]
            for i, cell in zip(
                places, mark_best([cells[i] for i in places], column.better, column.resolution), strict=True
            ):
                cells[i] = cell
        headings.append((column.title, unit))
        table.append(cells)
    return Grid(headings, [list(row) for row in zip(*table, strict=True)])


def mark_best(cells: Sequence[Cell], better: int, resolution: float = 0.0) -> list[Cell]:
    """``cells`` with the best, and all that tie with it, marked.

    A tie: the same text, values within ``resolution``, or a difference from the best, paired by
    seed, whose 95 % interval holds 0 (where there is no value a seed: intervals that overlap).
    Nobody is marked when all are the same, since then there is nothing to choose.
    """
    known = [c for c in cells if isinstance(c.value, (int, float))]
    if not better or len(known) < 2:
        return list(cells)
    top = max(known, key=lambda c: better * float(c.value or 0))
    if all(_same(c, top, resolution) for c in cells):
        return list(cells)
    return [
        dataclasses.replace(c, best=c.value is not None and (_same(c, top, resolution) or _tied(c, top))) for c in cells
    ]


def _same(cell: Cell, top: Cell, resolution: float) -> bool:
    if cell.text == top.text:
        return True
    if not isinstance(cell.value, float) or not isinstance(top.value, float):
        return False
    return abs(cell.value - top.value) <= resolution * max(cell.value, top.value)


def _tied(cell: Cell, top: Cell) -> bool:
    if cell.by_seed and len(cell.by_seed) == len(top.by_seed):
        pairs = [(a, b) for a, b in zip(cell.by_seed, top.by_seed, strict=True) if a is not None and b is not None]
        ends = interval([a - b for a, b in pairs])
        return ends is not None and ends[0] <= 0 <= ends[1]
    a, b = cell.interval, top.interval
    return a is not None and b is not None and a[0] <= b[1] and b[0] <= a[1]


def _unit(records: Sequence[Mapping[str, Any]], columns: Sequence[Column], column: Column) -> tuple[str, float]:
    shared = [c for c in columns if c is column or (c.scale and c.scale == column.scale)]
    return column.unit(lookup(record, c.path) for record in records for c in shared)


def difference_cell(pair: Mapping[str, Any], better: int, factor: float) -> Cell:
    """A paired difference with its sign; marked if its whole interval is on one side."""
    value, ends = pair.get("difference"), pair.get("ci")
    if value is None:
        return Cell(MISSING, None)
    text = f"{number(ends[0] * factor)} to {number(ends[1] * factor)}" if ends else ""
    good = ends is not None and min(better * end for end in ends) > 0
    bad = ends is not None and max(better * end for end in ends) < 0
    shown = number(value * factor)
    sign = "+" if value > 0 and not shown.startswith("<") else ""
    return Cell(sign + shown, float(value), None, text, good, worse=bad)


def _cell(record: Mapping[str, Any], column: Column, factor: float) -> Cell:
    value = lookup(record, column.path)
    if column.kind == "done":
        return _done(value or {})
    if column.kind == "text":
        return Cell(MISSING if value is None else str(value), value)
    if value is None or not math.isfinite(value):
        return Cell(MISSING, None)
    beside = lookup(record, column.path[:-1]) or {}
    ends = beside.get("ci", {}).get(column.path[-1])
    by_seed = tuple(beside.get("by_seed", {}).get(column.path[-1], ()))
    span = (float(ends[0]), float(ends[1])) if ends else None
    text = f"{number(span[0] * factor)} to {number(span[1] * factor)}" if span else ""
    shown = number(float(value) * factor) if column.kind in ("time", "rate", "share", "ratio") else _count(value)
    return Cell(shown, float(value), span, text, by_seed=by_seed)


def _count(value: float) -> str:
    return f"{int(value):,}" if float(value).is_integer() else number(value)


def _done(counts: Mapping[str, Any]) -> Cell:
    completed, submitted = counts.get("completed"), counts.get("submitted")
    if completed is None or submitted is None:
        return Cell(MISSING, None)
    share = completed / submitted if submitted else None
    return Cell(f"{_count(completed)} / {_count(submitted)}", share)
