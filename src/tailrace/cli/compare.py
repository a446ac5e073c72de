"""``tailrace simulate`` and ``tailrace compare``."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import __version__, exports, files
from ..errors import UserError
from ..report import facts, tables
from ..sim.run import Result
from ..spec import split_list
from ..studies import runs
from ..workloads import remarks
from .console import console, print_json
from .progress import progress

__all__ = ["Options", "Outputs", "compare", "simulate"]


@dataclass(frozen=True)
class Outputs:
    """Files to write; an empty name writes none."""

    requests: str = ""
    """Parquet."""
    bench: str = ""
    """vLLM's benchmark result; of several policies one each."""
    trace: str = ""
    """Trace events of the first policy."""
    figures: str = ""
    """A folder."""
    report: str = ""

    def check(self) -> None:
        """Raise UserError for a place that cannot be written, before anything runs."""
        for path in (self.requests, self.bench, self.trace, self.report):
            if path:
                files.check_place(path)
        if self.figures:
            files.check_place(self.figures, folder=True)


@dataclass(frozen=True)
class Options:
    """What ``compare`` is asked to do besides the job and its files."""

    policies: str
    seeds: int
    markdown: bool
    jobs: int
    cache: bool
    as_json: bool


def simulate(job: runs.Job, outputs: Outputs, cache: bool, as_json: bool) -> None:
    """One policy: a table of metrics, or the JSON object."""
    outputs.check()
    with progress(1, quiet=as_json) as done:
        document, found = runs.compare(job, [job.policy], [job.seed or 0], 1, cache, done)
    written = _write(job, [job.policy], document, found, outputs, as_json)
    if as_json:
        print_json(document)
        return
    console().print(tables.single(document))
    _explain(document)
    _say(written)


def compare(job: runs.Job, options: Options, outputs: Outputs, arguments: Sequence[str]) -> None:
    """Several policies: a table, a report, and what else was asked for."""
    outputs.check()
    texts = split_list(options.policies)
    runs.parse_policies(options.policies)
    with progress(len(texts) * options.seeds, quiet=options.as_json) as done:
        document, found = runs.compare(job, texts, range(options.seeds), options.jobs, options.cache, done)
    if options.seeds > len(document["seeds"]):
        print("one seed run: nothing in this trace under these predictions is random", file=sys.stderr)
    written = _write(job, texts, document, found, outputs, options.as_json)
    written += _report(document, found, outputs.report, arguments)
    if options.as_json:
        print_json(document)
        return
    if options.markdown:
        print(tables.markdown(document))
    else:
        console().print(tables.comparison(document))
        _explain(document)
    _say(written)


def _say(written: Sequence[str]) -> None:
    for line in written:
        print(line)


def _write(
    job: runs.Job,
    texts: Sequence[str],
    document: dict[str, Any],
    found: list[tuple[str, Result]],
    outputs: Outputs,
    quiet: bool,
) -> list[str]:
    """Write the files asked for, and say which; of several seeds the first."""
    written = []
    if outputs.requests:
        exports.write_requests(outputs.requests, found)
        written.append(f"requests: {outputs.requests}")
    if outputs.figures:
        from ..report import write_figures

        written.append(f"figures: {len(write_figures(outputs.figures, document, found))} files in {outputs.figures}")
    if outputs.bench or outputs.trace:
        several = len(texts) > 1
        names = exports.per_policy(outputs.bench, [label for label, _ in found]) if several else [outputs.bench]
        with progress(len(texts), quiet) as done:
            for i, text in enumerate(texts):
                written += _watched(job, text, document, i, outputs, names[i])
                done(i)
    return written


def _watched(job: runs.Job, text: str, document: dict[str, Any], place: int, outputs: Outputs, bench: str) -> list[str]:
    """Files that need every step: the policy is run once more, step by step."""
    watched, written = runs.watch_job(dataclasses.replace(job, policy=text, seed=document["seeds"][0])), []
    if outputs.bench:
        row = {"label": document["results"][place]["label"], **watched.result.summary()}
        alone = {**document, "seeds": document["seeds"][:1], "results": [row]}
        exports.write_bench(bench, watched, alone)
        written.append(f"benchmark: {bench}")
    if outputs.trace and place == 0:
        exports.write_trace(outputs.trace, watched)
        written.append(f"trace: {outputs.trace} (open it at ui.perfetto.dev)")
    return written


def _explain(document: dict[str, Any]) -> None:
    """What a reader of the table should know and would not guess."""
    results = document["results"]
    for remark in remarks(document["workload"]):
        print(f"trace: {remark}")
    for state, meaning in facts.MEANING.items():
        if any(r["load_state"] == state for r in results):
            print(f"{state}: {meaning}")
    for r in results:
        for text in (facts.starved(r), facts.promoted(r)):
            if text:
                print(f"{r['label']} {text}")
    rejected = max(r["counts"]["rejected"] for r in results)
    if rejected:
        kv = document["engine"]["kv_tokens"]
        print(f"rejected: {rejected:,.0f} requests need more KV than the {kv:,} tokens there are")
    if len(results) > 1 and facts.quiet(results):
        print("nobody waited a millisecond: the policy cannot matter here; try --rate-scale")


def _report(
    document: dict[str, Any], found: list[tuple[str, Result]], report: str, arguments: Sequence[str]
) -> list[str]:
    if not report:
        return []
    from ..report import html

    command = shlex.join(["tailrace", *arguments])
    try:
        path = html.write_html(report, document, found, command, __version__)
    except UserError as error:
        if "tailrace[report]" not in str(error):
            raise
        return [f"no report: {error}"]
    return [f"report: {path}"]
