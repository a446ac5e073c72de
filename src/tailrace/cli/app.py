"""Verbs. Each imports what it needs, so ``--help`` stays quick."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .. import __version__
from . import calibrate as calibrate_verb
from . import reproduce as reproduce_verb
from . import workload as workload_verb
from .options import (
    Bench,
    Classes,
    Engine,
    Figures,
    FirstToken,
    Format,
    Jobs,
    Json,
    Latency,
    Limit,
    NoCache,
    Predictions,
    RateScale,
    Requests,
    Slo,
    SloScale,
    WorkloadArg,
)

__all__ = ["app"]

app = typer.Typer(
    name="tailrace",
    help="Request scheduling for LLM serving: what would my traffic see under another policy?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(workload_verb.app, name="workload")
app.add_typer(reproduce_verb.app, name="reproduce")
app.add_typer(calibrate_verb.app, name="calibrate")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"tailrace {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version")
    ] = False,
) -> None:
    """Request scheduling for LLM serving: what would my traffic see under another policy?"""


@app.command()
def policies(as_json: Json = False) -> None:
    """List policies, workload generators, engines and latency presets with their parameters."""
    from . import catalogue

    catalogue.show(as_json)


@app.command()
def simulate(
    workload: WorkloadArg,
    policy: Annotated[str, typer.Option(help="NAME[:key=value,…] or pkg.module:Class")] = "fcfs",
    engine: Engine = "vllm_v1",
    latency: Latency = "",
    predictions: Predictions = "oracle",
    seed: Annotated[int, typer.Option(help="Seed of generator and prediction errors", min=0)] = 0,
    limit: Limit = 0,
    rate_scale: RateScale = 1.0,
    format: Format = "",
    classes: Classes = "",
    slo: Slo = "",
    slo_scale: SloScale = 1.0,
    first_token_weight: FirstToken = None,
    requests: Requests = "",
    save_bench: Bench = "",
    trace: Annotated[str, typer.Option(help="Write every step and request as a trace for ui.perfetto.dev")] = "",
    figures: Figures = "",
    no_cache: NoCache = False,
    as_json: Json = False,
) -> None:
    """Run one policy over a workload and print what its requests saw."""
    from ..studies.runs import Job
    from ..workloads import Service
    from . import compare as verb

    service = Service(classes, slo, slo_scale, first_token_weight)
    job = Job(workload, policy, engine, latency, predictions, seed, limit or None, rate_scale, format or None, service)
    outputs = verb.Outputs(requests, save_bench, trace, figures)
    verb.simulate(job, outputs, not no_cache, as_json)


@app.command()
def compare(
    workload: WorkloadArg,
    policies: Annotated[str, typer.Option(help="Policies, comma separated: fcfs,qba:k=5,srpt")] = "fcfs,psf,aa,qba",
    engine: Engine = "vllm_v1",
    latency: Latency = "",
    predictions: Predictions = "oracle",
    seeds: Annotated[int, typer.Option(help="Repeat with this many seeds; confidence intervals then", min=1)] = 1,
    limit: Limit = 0,
    rate_scale: RateScale = 1.0,
    format: Format = "",
    classes: Classes = "",
    slo: Slo = "",
    slo_scale: SloScale = 1.0,
    first_token_weight: FirstToken = None,
    report: Annotated[
        str | None, typer.Option(help="HTML report; '' for none", show_default="tailrace-report.html; none with --json")
    ] = None,
    requests: Requests = "",
    save_bench: Bench = "",
    figures: Figures = "",
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown")] = False,
    jobs: Jobs = 0,
    no_cache: NoCache = False,
    as_json: Json = False,
) -> None:
    """Run several policies over the same workload: one table and one HTML report."""
    from ..studies.runs import Job
    from ..workloads import Service
    from . import compare as verb

    service = Service(classes, slo, slo_scale, first_token_weight)
    job = Job(workload, "fcfs", engine, latency, predictions, None, limit or None, rate_scale, format or None, service)
    page = report if report is not None else "" if as_json else "tailrace-report.html"
    options = verb.Options(policies, seeds, markdown, jobs, not no_cache, as_json)
    verb.compare(job, options, verb.Outputs(requests, save_bench, "", figures, page), sys.argv[1:])


@app.command()
def tune(
    workload: WorkloadArg,
    objective: Annotated[
        str,
        typer.Option(help="One or two numbers of a result: [GROUP.]METRIC.STATISTIC, goodput_rps …"),
    ] = "short.e2e.p99,long.e2e.p99",
    policies: Annotated[
        str, typer.Option(help="Policies and the values to try: fcfs,qba:k=2|5|8,aging_quantile=0.5|0.8")
    ] = "",
    engine: Engine = "vllm_v1",
    latency: Latency = "",
    predictions: Predictions = "oracle",
    seeds: Annotated[int, typer.Option(help="Repeat with this many seeds; means and intervals then", min=1)] = 1,
    limit: Limit = 0,
    rate_scale: RateScale = 1.0,
    format: Format = "",
    classes: Classes = "",
    slo: Slo = "",
    slo_scale: SloScale = 1.0,
    first_token_weight: FirstToken = None,
    plot: Annotated[str, typer.Option(help="Draw the settings and their Pareto front: a .png or .svg file")] = "",
    jobs: Jobs = 0,
    no_cache: NoCache = False,
    as_json: Json = False,
) -> None:
    """Search policies and parameters for the best of one objective, or the Pareto front of two."""
    from ..studies import tune as study
    from ..studies.runs import Job
    from ..workloads import Service
    from . import tune as verb

    service = Service(classes, slo, slo_scale, first_token_weight)
    job = Job(workload, "fcfs", engine, latency, predictions, None, limit or None, rate_scale, format or None, service)
    options = verb.Options(objective, policies or study.DEFAULT, seeds, plot, jobs, not no_cache, as_json)
    verb.run(job, options)


@app.command()
def bench(
    trace: Annotated[str, typer.Option(help="Also run this trace, e.g. the Azure 2023 conversation trace")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="Smaller sizes")] = False,
    vllm: Annotated[
        bool, typer.Option("--vllm", help="Instead: what a policy adds to vLLM's schedule() (needs vLLM)")
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure our own speed on this machine, as ratios within one run."""
    if vllm:
        from . import overhead

        overhead.run(quick, as_json)
    else:
        from . import bench as verb

        verb.run(trace, quick, as_json)


@app.command()
def parity(
    workload: Annotated[str, typer.Argument(help="Arrivals, one second a step; default: near saturation")] = "",
    policies: Annotated[
        str,
        typer.Option(
            help="Policies; vllm_fcfs and vllm_priority run as vLLM's own scheduler, others in it. Default: all "
            "that `make parity` compares"
        ),
    ] = "",
    cases: Annotated[
        str, typer.Option(help="Cases, comma separated; all: every one; planned: each policy's, as `make parity` does")
    ] = "base,async",
    steps: Annotated[int, typer.Option(help="Steps a case", min=1)] = 2000,
    resume: Annotated[
        bool, typer.Option("--resume", help="Do not run what has been run with the same sources")
    ] = False,
    jobs: Jobs = 1,
    table: Annotated[
        str, typer.Option(help="Also write a Markdown table of all that is planned and has been run, of every vLLM")
    ] = "",
    as_json: Json = False,
) -> None:
    """Compare our engine with vLLM's own scheduler, step by step (needs vLLM; see scripts/vllm)."""
    from . import parity as verb

    verb.run(verb.Options(workload, policies, cases, steps, resume, jobs, table, as_json))


@app.command()
def live(
    policies: Annotated[
        str, typer.Option(help="Policies; stock is vLLM's own scheduler without the plugin, all others run in it")
    ] = "stock,fcfs,sjf,psf,qba",
    seed: Annotated[int, typer.Option(help="Seed of the burst", min=0)] = 0,
    pairs: Annotated[
        int,
        typer.Option(
            help="Instead, so many pairs of saturated runs: each policy's output tokens/s against stock's", min=0
        ),
    ] = 0,
    as_json: Json = False,
) -> None:
    """Serve a burst of long and short requests by real vLLM under several policies (needs vLLM; see scripts/vllm)."""
    from . import live as verb

    verb.run(policies, seed, pairs, as_json)
