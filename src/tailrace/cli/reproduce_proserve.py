"""What ``tailrace reproduce proserve`` does, and prints."""

from __future__ import annotations

from .. import workloads
from ..studies.reproduce.experiments import choose
from ..studies.reproduce.proserve import plan, study
from .progress import advancing
from .reproduced import Options, announce, deliver, show

__all__ = ["Options", "run"]


def run(options: Options, as_json: bool, command: str) -> None:
    """Print the paper's numbers beside ours and every claim, or the JSON object."""
    announce(options.page)
    only = choose(options.only, plan.EXPERIMENTS)
    scope = plan.Scope(only, options.seeds, options.quick, options.azure)
    if options.azure:
        workloads.load(options.azure)  # a mistake in it costs a line, not what is run before it is read
    planned = study.prepare(study.Study(scope, options.jobs, options.cache))
    with advancing(planned.runs, quiet=as_json) as done:
        document = {"command": command, **study.run(planned, done)}
    deliver(document, options.page, as_json, lambda made: show(made, "paper"))
