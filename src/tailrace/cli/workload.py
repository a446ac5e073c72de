"""``tailrace workload``: make, inspect and fetch workloads. Options only; `workload_verbs` does the work."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import Classes, Format, Json, Limit, RateScale, Slo, SloScale, WorkloadArg

__all__ = ["app"]

app = typer.Typer(
    help="Make a synthetic workload, inspect one, fetch a public trace.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Seed = Annotated[int | None, typer.Option(help="Seed of the generator; default: the workload's own, else 0", min=0)]


@app.command()
def make(
    workload: WorkloadArg,
    out: Annotated[str, typer.Option(help="File to write, .csv or .parquet")],
    seed: Seed = None,
    limit: Limit = 0,
    rate_scale: RateScale = 1.0,
    format: Format = "",
    classes: Classes = "",
    slo: Slo = "",
    slo_scale: SloScale = 1.0,
    as_json: Json = False,
) -> None:
    """Write a workload to a CSV or Parquet file that every verb reads."""
    from ..workloads import Service
    from . import workload_verbs as verbs

    asked = verbs.Asked(workload, seed, limit, rate_scale, format, Service(classes, slo, slo_scale))
    verbs.make(asked, out, as_json)


@app.command()
def inspect(
    workload: WorkloadArg,
    plot: Annotated[
        str, typer.Option(help="Draw the lengths' distribution and density to this .png or .svg file")
    ] = "",
    seed: Seed = None,
    limit: Limit = 0,
    rate_scale: RateScale = 1.0,
    format: Format = "",
    classes: Classes = "",
    slo: Slo = "",
    slo_scale: SloScale = 1.0,
    as_json: Json = False,
) -> None:
    """Print span, rate, burstiness, lengths and their tails, classes, sessions, prefix sharing, what was dropped."""
    from ..workloads import Service
    from . import workload_verbs as verbs

    asked = verbs.Asked(workload, seed, limit, rate_scale, format, Service(classes, slo, slo_scale))
    verbs.inspect(asked, plot, as_json)


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="A trace, or the first part of several names; default: all")] = "",
    run: Annotated[str, typer.Option(help="Download into this folder, instead of saying how", metavar="DIR")] = "",
    as_json: Json = False,
) -> None:
    """List the public traces with licence and citation, and say how to download them or do it."""
    from . import workload_verbs as verbs

    verbs.fetch(name, run, as_json)
