"""``tailrace calibrate``: latency models, token budgets. Options only; `calibrate_verbs` does the work."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import Format, Json, Latency, Limit, RateScale, WorkloadArg

__all__ = ["app"]

app = typer.Typer(
    help="Fit a latency model to measured steps; find the token budget that meets a TPOT SLO.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def fit(
    profile: Annotated[
        str, typer.Argument(metavar="PROFILE", help="Measured steps, a row each: CSV, Parquet or JSON Lines")
    ],
    holdout: Annotated[float, typer.Option(help="Share of the steps that the fit does not see")] = 0.25,
    seed: Annotated[int, typer.Option(help="Seed of which steps those are", min=0)] = 0,
    kv_tokens: Annotated[int, typer.Option(help="KV capacity to write with it, in tokens; 0 = none", min=0)] = 0,
    output: Annotated[str, typer.Option(help="Write the model to this .toml or .json file, for --latency")] = "",
    as_json: Json = False,
) -> None:
    """Fit the coefficients of the profiled latency model, and measure their error on steps held out."""
    from . import calibrate_verbs as verbs

    verbs.fit(profile, verbs.Fitting(holdout, seed, kv_tokens, output), as_json)


@app.command()
def error(
    workload: WorkloadArg,
    latency: Annotated[
        str, typer.Option(help="Model that times the steps; one that is no sum over requests, as a roofline")
    ] = "roofline:model=qwen2-7b,device=a100-80gb",
    policy: Annotated[str, typer.Option(help="Policy of the run")] = "sarathi",
    engine: Annotated[str, typer.Option(help="Engine of the run")] = "sarathi",
    jitter: Annotated[str, typer.Option(help="Coefficients of variation of a step's time, comma separated")] = (
        "0,0.05,0.15"
    ),
    elsewhere: Annotated[str, typer.Option(help="Also try the fit on the steps of this workload")] = "",
    holdout: Annotated[float, typer.Option(help="Share of the steps that the fit does not see")] = 0.25,
    seed: Annotated[int, typer.Option(help="Seed of which steps those are", min=0)] = 0,
    as_json: Json = False,
) -> None:
    """Measure how well the profiled model, fitted to steps of a simulation, estimates the others."""
    from . import calibrate_verbs as verbs

    asked = verbs.Asked(workload, engine, latency, policy=policy)
    verbs.error(asked, verbs.Trial(jitter, elsewhere, holdout, seed), as_json)


@app.command()
def budget(
    tpot_slo: Annotated[float, typer.Option(help="Time that a step with decodes must stay under, in seconds")] = 0.05,
    latency: Latency = "",
    workload: Annotated[
        str, typer.Option(help="Take the decodes from a run of it: a trace file or a generator, name:key=value,…")
    ] = "",
    decodes: Annotated[
        int | None, typer.Option(help="Instead: so many decodes in a step", min=1, show_default=False)
    ] = None,
    kv: Annotated[
        float | None, typer.Option(help="Tokens of KV that each of them has, in the mean", min=0, show_default=False)
    ] = None,
    prefill_kv: Annotated[
        int | None,
        typer.Option(
            help="Tokens of its prompt that the chunk in the step stands on; default: 0, with a workload what its run "
            "shows",
            min=0,
            show_default=False,
        ),
    ] = None,
    engine: Annotated[str, typer.Option(help="Engine of the run; its token budget is put aside")] = "sarathi",
    seed: Annotated[int | None, typer.Option(help="Seed of the workload", min=0)] = None,
    limit: Limit = 0,
    rate_scale: RateScale = 1.0,
    format: Format = "",
    as_json: Json = False,
) -> None:
    """Find the largest token budget whose steps meet a TPOT SLO: of a prefill alone, and beside decodes."""
    from . import calibrate_verbs as verbs

    run = verbs.Asked(workload, engine, latency, seed, limit, rate_scale, format)
    verbs.budget(run, verbs.Mixture(tpot_slo, decodes, kv, prefill_kv), as_json)
