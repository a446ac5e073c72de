"""What ``tailrace reproduce uniboost`` does, and prints."""

from __future__ import annotations

from ..studies.reproduce.experiments import choose
from ..studies.reproduce.uniboost import plan, study
from .progress import advancing
from .reproduced import Options, announce, deliver, show

__all__ = ["Options", "run"]


def run(options: Options, as_json: bool, command: str) -> None:
    """Print the article's numbers beside ours and every claim, or the JSON object."""
    announce(options.page)
    only = choose(options.only, plan.EXPERIMENTS)
    wanted = study.Study(plan.Scope(only, options.seeds, options.quick), options.jobs, options.cache)
    with advancing(study.references(wanted), quiet=as_json) as done:
        planned = study.prepare(wanted, done)
    with advancing(planned.runs, quiet=as_json) as done:
        document = {"command": command, **study.run(planned, done)}
    deliver(document, options.page, as_json, show)
