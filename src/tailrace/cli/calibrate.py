"""``tailrace calibrate``: latency models, token budgets. Options only; `calibrate_verbs` does the work."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import Json

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
