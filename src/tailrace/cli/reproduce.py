"""``tailrace reproduce``: a paper's experiments, its numbers beside ours, and whether its claims hold."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

import typer

from .options import Jobs, Json, NoCache

__all__ = ["app"]

Ten = Annotated[int | None, typer.Option(help="Runs of each setting", min=2, show_default="10; 3 with --quick")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer seeds, points and policies; what they cannot test says so")]
Page = Annotated[str, typer.Option(help="Also write the study as a Markdown page, its figures beside it")]

app = typer.Typer(help="Run a paper's experiments: its numbers beside ours, and whether its claims hold")


@app.callback()
def _root() -> None:
    """Run a paper's experiments: its numbers beside ours, and whether its claims hold."""


@app.command()
def qba(
    seeds: Annotated[
        int | None, typer.Option(help="Runs of each setting", min=2, show_default="100; 20 with --quick")
    ] = None,
    only: Annotated[str, typer.Option(help="Of fig2, fig3, fig4, fig5, table2, choices; default: all")] = "",
    profile: Annotated[
        str, typer.Option(help="Readings of what the paper leaves open: paper, enforced, all_history; or all")
    ] = "paper",
    azure: Annotated[
        str,
        typer.Option(help="Azure's 2023 conversation trace, for table2 (tailrace workload fetch azure-2023-conv)"),
    ] = "",
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer seeds and points; what they cannot test says so")
    ] = False,
    page: Page = "",
    jitter: Annotated[
        float, typer.Option(help="Coefficient of variation of step times, off in the paper", min=0, max=10)
    ] = 0.0,
    concurrency: Annotated[
        float, typer.Option(help="Seconds a step takes longer for each sequence in it, off in the paper", min=0, max=1)
    ] = 0.0,
    jobs: Jobs = 0,
    no_cache: NoCache = False,
    as_json: Json = False,
) -> None:
    """Quota-Based Aging, arXiv 2610.17795: figures 2 to 5, Table II, the queueing model, the claims."""
    from . import reproduce_qba as verb

    options = verb.Options(
        seeds or (20 if quick else 100), only, profile, azure, quick, page, jitter, concurrency, jobs, not no_cache
    )
    verb.run(options, as_json, shlex.join(["tailrace", *sys.argv[1:]]))


@app.command()
def uniboost(
    seeds: Ten = None,
    only: Annotated[
        str,
        typer.Option(
            help="Of toys, lengths, main, loads, bursts, models, percentiles, ablation, slo, starvation, gamma, "
            "staircase, memory, sensitivity, tails, noise, capabilities; default: all"
        ),
    ] = "",
    quick: Quick = False,
    page: Page = "",
    jobs: Jobs = 0,
    no_cache: NoCache = False,
    as_json: Json = False,
) -> None:
    """UniBoost, arXiv 2606.18431: against SRPT with perfect predictions, ablation, tails, starvation, γ, the claims."""
    from . import reproduce_uniboost as verb

    options = verb.Options(seeds or (3 if quick else 10), only, quick, page, jobs, not no_cache)
    verb.run(options, as_json, shlex.join(["tailrace", *sys.argv[1:]]))


@app.command()
def proserve(
    seeds: Ten = None,
    only: Annotated[
        str,
        typer.Option(
            help="Of fig3, fig45, fig8, fig12, regimes, ablation, sensitivity, weights, starvation, vtc, noise, slo, "
            "memory, estimator, overhead; default: all"
        ),
    ] = "",
    azure: Annotated[
        str,
        typer.Option(help="Azure's 2023 conversation trace: its own arrivals, expanded to each rate"),
    ] = "",
    quick: Quick = False,
    page: Page = "",
    jobs: Jobs = 0,
    no_cache: NoCache = False,
    as_json: Json = False,
) -> None:
    """ProServe, arXiv 2512.12928: SlideBatching's attainment and token gain on one engine, ablations, the claims."""
    from . import reproduce_proserve as verb

    options = verb.Options(seeds or (3 if quick else 10), only, quick, page, jobs, not no_cache, azure)
    verb.run(options, as_json, shlex.join(["tailrace", *sys.argv[1:]]))
