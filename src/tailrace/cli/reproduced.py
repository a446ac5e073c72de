"""What becomes of a study's document: a page, JSON, or its rows and claims as tables on the terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from ..report import reproduction
from ..report.values import number
from .console import console, print_json

__all__ = ["Options", "announce", "deliver", "judged", "printed", "show"]


@dataclass(frozen=True)
class Options:
    """What a study is asked for on the command line."""

    seeds: int
    only: str
    quick: bool
    page: str
    jobs: int
    cache: bool
    azure: str = ""


def announce(page: str) -> None:
    """Before anything long is done: raises UserError where ``page`` cannot be written."""
    if page:
        reproduction.check(page)


def deliver(document: dict[str, Any], page: str, as_json: bool, shown: Callable[[dict[str, Any]], None]) -> None:
    """Write ``page`` if it is named, and print the document as JSON or as ``shown`` does."""
    if page:
        reproduction.write(page, document)
    if as_json:
        print_json(document)
        return
    shown(document)
    for experiment, why in document["not_run"].items():
        print(f"not run: {experiment}, {why}")
    if page:
        print(f"page: {page}")


def show(document: dict[str, Any], name: str = "article") -> None:
    """What the paper prints beside ours, and every claim."""
    out = console()
    table = printed([row for row in document["rows"] if row["paper"] is not None], name)
    if table.row_count:
        out.print(table)
    out.print(judged(document["claims"], name))


def printed(rows: list[dict[str, Any]], name: str) -> Table:
    """The rows for which the paper prints a number."""
    table = Table("", "at", "policy", "metric", "paper", "ours", "ratio", title=f"profile {name}")
    for row in rows:
        at = ", ".join(
            f"{key} {value:g}" if isinstance(value, float) else str(value) for key, value in row["at"].items()
        )
        ours, paper = row["measured"], row["paper"]
        ratio = f"{ours / paper:.2f}" if ours is not None and paper else ""
        half = "" if row["ci"] is None else f" ± {number((row['ci'][1] - row['ci'][0]) / 2)}"
        shown = "–" if ours is None else f"{number(ours)}{half}"
        table.add_row(row["experiment"], at, row["policy"], row["metric"], number(paper), shown, ratio)
    return table


def judged(claims: list[dict[str, Any]], name: str) -> Table:
    """Every claim, and what became of it."""
    table = Table("", "claim", "holds", "why", title=f"claims, profile {name}")
    for claim in claims:
        open_ = "not tested" if claim["why"].startswith("not tested") else "undecided"
        holds = {True: "yes", False: "no"}.get(claim["holds"], open_)
        table.add_row(claim["experiment"], claim["claim"], holds, claim["why"])
    return table
