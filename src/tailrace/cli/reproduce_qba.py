"""What ``tailrace reproduce qba`` does, and prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.table import Table

from ..report import reproduction
from ..report.values import number
from ..studies.reproduce.qba import plan, profiles, study, windows
from .console import console, print_json
from .progress import progress

__all__ = ["Options", "run"]


@dataclass(frozen=True)
class Options:
    """As on the command line."""

    seeds: int
    only: str
    profile: str
    azure: str
    quick: bool
    page: str
    jitter: float
    concurrency_s: float
    jobs: int
    cache: bool


def run(options: Options, as_json: bool, command: str) -> None:
    """Print the paper's numbers beside ours and every claim, or the JSON object."""
    if options.page:
        reproduction.check(options.page)
    factor = windows.demand_factor(options.azure) if options.azure else 0.0
    scope = plan.Scope(plan.choose(options.only), options.seeds, options.quick, options.azure, factor)
    chosen = [p.with_options(options.jitter, options.concurrency_s) for p in profiles.choose(options.profile)]
    wanted = study.Study(chosen, scope, options.jobs, options.cache)
    with progress(study.count(wanted), quiet=as_json) as done:
        document = {"command": command, **study.run(wanted, done)}
    if options.page:
        reproduction.write(options.page, document)
    if as_json:
        print_json(document)
        return
    _print(document)
    if options.page:
        print(f"page: {options.page}")


def _print(document: dict[str, Any]) -> None:
    out = console()
    for name in document["settings"]["profiles"]:
        table = _numbers([row for row in document["rows"] if row["profile"] == name and row["paper"] is not None], name)
        if table.row_count:
            out.print(table)
        fit = document["fit"].get(name)
        if fit:
            low, high = fit["ci"]
            print(
                f"{name}: the {fit['values']} numbers printed for 32 requests/s: mean absolute log ratio "
                f"{fit['mean_abs_log_ratio']:.3f} [{low:.3f}, {high:.3f}]"
            )
            if fit["adjusted"]:
                low, high = fit["adjusted"]["ci"]
                score = fit["adjusted"]["mean_abs_log_ratio"]
                print(f"{name}: with each mean moved to the expected load {score:.3f} [{low:.3f}, {high:.3f}]")
        out.print(_claims([claim for claim in document["claims"] if claim["profile"] == name], name))
    for experiment, why in document["not_run"].items():
        print(f"not run: {experiment}, {why}")


def _numbers(rows: list[dict[str, Any]], name: str) -> Table:
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


def _claims(claims: list[dict[str, Any]], name: str) -> Table:
    table = Table("", "claim", "holds", "why", title=f"claims, profile {name}")
    for claim in claims:
        open_ = "not tested" if claim["why"].startswith("not tested") else "undecided"
        holds = {True: "yes", False: "no"}.get(claim["holds"], open_)
        table.add_row(claim["experiment"], claim["claim"], holds, claim["why"])
    return table
