"""A study's rows and claims as tables on the terminal."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from ..report.values import number

__all__ = ["judged", "printed"]


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
