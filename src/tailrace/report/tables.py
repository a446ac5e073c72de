"""Tables for the terminal and for pasting: many policies side by side, or one run in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from . import values
from .lines import note
from .markup import escape
from .values import METRICS, STATISTIC_NAMES, Cell, Column, grid, objectives

__all__ = ["comparison", "markdown", "single"]

WIDE: Final = 104
"""Characters from which columns are set apart by two spaces."""
STATE_COLOURS: Final = {"STABLE": "green", "BACKLOGGED": "yellow", "OVERLOADED": "red"}


def comparison(document: Mapping[str, Any]) -> Table:
    """A row a policy, the best of each column bold; its caption is `lines.note`."""
    columns = values.comparison(document["results"])
    cells = grid(document["results"], columns)
    table = _table(document)
    table.add_column("policy", overflow="fold", min_width=6)
    for column, (title, unit) in zip(columns, cells.headings, strict=True):
        text, folds = column.kind == "text", column.kind in ("text", "done")
        heading = Text(_stacked(column.short or title, unit))
        table.add_column(heading, justify="left" if text else "right", overflow="fold", no_wrap=not folds)
    for result, row in zip(document["results"], cells.rows, strict=True):
        table.add_row(Text(_label(result)), *map(_rich, row))
    return table


def single(document: Mapping[str, Any]) -> Table:
    """Metrics × statistics of the document's first result, then by class and true length class."""
    result = document["results"][0]
    records = [("all requests", result), *_classes(result), *_true_classes(result)]
    table = _table({**document, "results": [result]})
    table.title = Text(f"{_label(result)} · {result.get('load_state', '')}", style="bold")
    table.title_justify = "left"
    table.add_column("", no_wrap=True)
    for name in STATISTIC_NAMES.values():
        table.add_column(name, justify="right", no_wrap=True)
    by_metric = {metric: grid([r for _, r in records], _statistics(metric)) for metric in METRICS}
    for place, (name, record) in enumerate(records):
        done = grid([record], (Column("", ("counts",), "done"),)).rows[0][0].text
        table.add_section()
        table.add_row(Text(f"{name}, {done} completed", style="italic"))
        for metric, title in METRICS.items():
            cells = by_metric[metric]
            table.add_row(f"  {title} ({cells.headings[0][1]})", *(Text(c.text) for c in cells.rows[place]))
        for title, text in _objectives(record):
            table.add_row(f"  {title}", text)
    return table


def markdown(document: Mapping[str, Any]) -> str:
    """The comparison as a Markdown table and its note, to paste."""
    columns = values.comparison(document["results"])
    cells = grid(document["results"], columns)
    titles = [f"{title} ({unit})" if unit else title for title, unit in cells.headings]
    rules = [":--" if column.kind == "text" else "--:" for column in columns]
    lines = [_pipes(["policy", *titles]), _pipes([":--", *rules])]
    for result, row in zip(document["results"], cells.rows, strict=True):
        marked = (f"**{escape(c.text)}**" if c.best else escape(c.text) for c in row)
        lines.append(_pipes([escape(_label(result)), *marked]))
    return "\n".join([*lines, "", escape(note(document)), ""])


class _Fitting(Table):
    """A table that draws its columns together on a narrow terminal."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.padding = (0, 1) if options.max_width >= WIDE else 0
        yield from super().__rich_console__(console, options)


def _table(document: Mapping[str, Any]) -> Table:
    return _Fitting(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        header_style="",
        caption=Text(note(document)),
        caption_justify="left",
    )


def _objectives(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Rows on objectives, where there are any; a share or a rate has no percentiles."""
    columns = objectives([record])
    if not columns:
        return []
    cells = grid([record], columns)
    return [(f"{title} ({unit})", c.text) for (title, unit), c in zip(cells.headings, cells.rows[0], strict=True)]


def _statistics(metric: str) -> tuple[Column, ...]:
    return tuple(Column(name, ("metrics", metric, key), scale=metric) for key, name in STATISTIC_NAMES.items())


def _classes(result: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The operator's classes, where there are several."""
    found = result.get("by_class") or {}
    return [(f"class {name}", record) for name, record in found.items()] if len(found) > 1 else []


def _true_classes(result: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(f"true {name}", record) for name, record in (result.get("by_true_class") or {}).items()]


def _label(result: Mapping[str, Any]) -> str:
    return str(result.get("label") or result["policy"])


def _stacked(title: str, unit: str) -> str:
    """A heading on as many lines as it has words, so columns are as narrow as their numbers."""
    words = title.replace(" / ", " /\u00a0").split(" ")
    return "\n".join([*words, f"({unit})"] if unit else words)


def _rich(cell: Cell) -> Text:
    style = STATE_COLOURS.get(cell.text, "")
    return Text(cell.text, style="bold" if cell.best else style)


def _pipes(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"
