"""What ``tailrace reproduce uniboost`` does, and prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..report import reproduction
from ..studies.reproduce.uniboost import plan, study
from .console import console, print_json
from .progress import advancing
from .reproduced import judged, printed

__all__ = ["Options", "run"]


@dataclass(frozen=True)
class Options:
    """As on the command line."""

    seeds: int
    only: str
    quick: bool
    page: str
    jobs: int
    cache: bool


def run(options: Options, as_json: bool, command: str) -> None:
    """Print the article's numbers beside ours and every claim, or the JSON object."""
    if options.page:
        reproduction.check(options.page)
    wanted = study.Study(
        plan.Scope(plan.choose(options.only), options.seeds, options.quick), options.jobs, options.cache
    )
    with advancing(study.references(wanted), quiet=as_json) as done:
        planned = study.prepare(wanted, done)
    with advancing(planned.runs, quiet=as_json) as done:
        document = {"command": command, **study.run(planned, done)}
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
    table = printed([row for row in document["rows"] if row["paper"] is not None], "article")
    if table.row_count:
        out.print(table)
    out.print(judged(document["claims"], "article"))
    for experiment, why in document["not_run"].items():
        print(f"not run: {experiment}, {why}")
