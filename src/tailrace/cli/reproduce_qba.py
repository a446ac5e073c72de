"""What ``tailrace reproduce qba`` does, and prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..studies.reproduce.experiments import choose
from ..studies.reproduce.qba import plan, profiles, study, windows
from .console import console
from .progress import advancing
from .reproduced import announce, deliver, judged, printed

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
    announce(options.page)
    factor = windows.demand_factor(options.azure) if options.azure else 0.0
    scope = plan.Scope(choose(options.only, plan.EXPERIMENTS), options.seeds, options.quick, options.azure, factor)
    chosen = [p.with_options(options.jitter, options.concurrency_s) for p in profiles.choose(options.profile)]
    wanted = study.Study(chosen, scope, options.jobs, options.cache)
    with advancing(study.count(wanted), quiet=as_json) as done:
        document = {"command": command, **study.run(wanted, done)}
    deliver(document, options.page, as_json, _print)


def _print(document: dict[str, Any]) -> None:
    out = console()
    for name in document["settings"]["profiles"]:
        table = printed([row for row in document["rows"] if row["profile"] == name and row["paper"] is not None], name)
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
        out.print(judged([claim for claim in document["claims"] if claim["profile"] == name], name))
