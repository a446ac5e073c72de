"""Arguments and options that several verbs take, each declared once."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["Bench", "Classes", "Engine", "Figures", "FirstToken", "Format", "Jobs", "Json", "Latency"]
__all__ += ["Limit", "NoCache", "Predictions", "RateScale", "Requests", "Slo", "SloScale", "WorkloadArg"]

WorkloadArg = Annotated[
    str,
    typer.Argument(
        metavar="WORKLOAD",
        help="A trace file, a generator: name:key=value,… (see `tailrace policies`), or a TOML, YAML or JSON file",
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        help="Engine preset with settings, vllm_v1:token_budget=512,max_seqs=128, or a TOML, YAML or JSON file of them"
    ),
]
Latency = Annotated[
    str,
    typer.Option(
        help="Latency model or preset, e.g. llama-3-8b-a100-derived, or a TOML, YAML or JSON file of one; default: "
        "the engine's"
    ),
]
Predictions = Annotated[
    str, typer.Option(help="What policies are told: oracle, none, label:eps_sl=0.05,eps_ls=0, noise:cv=0.5")
]
Limit = Annotated[int, typer.Option(help="Only the first so many requests; 0 = all", min=0)]
RateScale = Annotated[float, typer.Option(help="Multiply the arrival rate")]
Classes = Annotated[
    str, typer.Option(help="Classes of service drawn for each request: high@0.5 weight=2 + low@0.5", metavar="MIX")
]
Slo = Annotated[
    str,
    typer.Option(
        help="Objectives: ttft_s=1,tpot_s=0.05 or a preset (see `tailrace policies`), by class gold:chat+low:ttft_s=4"
    ),
]
SloScale = Annotated[float, typer.Option(help="Multiply all objectives, the workload's own too")]
FirstToken = Annotated[
    float | None,
    typer.Option(
        help="What a first token is worth in later ones, in token gain; default: mean prompt / mean output tokens",
        show_default=False,
    ),
]
Format = Annotated[str, typer.Option(help="NAME or NAME:key=value,… of the trace's format; default: by its content")]
Jobs = Annotated[int, typer.Option(help="Processes; 0 = one a core", min=0)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else")]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Run again even if the result is known")]
Requests = Annotated[str, typer.Option(help="Write per-request results to this Parquet file")]
Bench = Annotated[
    str, typer.Option(help="Write a result as `vllm bench serve --save-detailed` does; of several policies one each")
]
Figures = Annotated[str, typer.Option(help="Write every figure of the report to this folder, as PNG and SVG")]
