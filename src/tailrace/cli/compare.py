"""``tailrace simulate`` and ``tailrace compare``."""

from __future__ import annotations

import contextlib
import json
import math
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from .. import __version__, files
from ..errors import UserError
from ..report import facts, tables
from ..sim.run import Result
from ..spec import split_list
from ..studies import runs
from ..workloads import remarks
from .console import console

__all__ = ["Options", "compare", "simulate"]


@dataclass(frozen=True)
class Options:
    """What ``compare`` is asked to do besides the job."""

    policies: str
    seeds: int
    report: str
    requests: str
    markdown: bool
    jobs: int
    cache: bool
    as_json: bool


def simulate(job: runs.Job, requests: str, cache: bool, as_json: bool) -> None:
    """One policy: a table of metrics, or the JSON object."""
    with _progress(1, quiet=as_json) as done:
        document, found = runs.compare(job, [job.policy], [job.seed or 0], 1, cache, done)
    if requests:
        write_requests(requests, found)
    if as_json:
        _print_json(document)
        return
    console().print(tables.single(document))
    _explain(document)


def compare(job: runs.Job, options: Options, arguments: Sequence[str]) -> None:
    """Several policies: a table, a report, and what else was asked for."""
    texts = split_list(options.policies)
    runs.parse_policies(options.policies)
    with _progress(len(texts) * options.seeds, quiet=options.as_json) as done:
        document, found = runs.compare(job, texts, range(options.seeds), options.jobs, options.cache, done)
    if options.seeds > len(document["seeds"]):
        print("one seed run: nothing in this trace under these predictions is random", file=sys.stderr)
    if options.requests:
        write_requests(options.requests, found)
    written = _report(document, found, options, arguments)
    if options.as_json:
        _print_json(document)
        return
    if options.markdown:
        print(tables.markdown(document))
    else:
        console().print(tables.comparison(document))
        _explain(document)
    for line in written:
        print(line)


def _explain(document: dict[str, Any]) -> None:
    """What a reader of the table should know and would not guess."""
    results = document["results"]
    for remark in remarks(document["workload"]):
        print(f"trace: {remark}")
    for state, meaning in facts.MEANING.items():
        if any(r["load_state"] == state for r in results):
            print(f"{state}: {meaning}")
    for r in results:
        if text := facts.starved(r):
            print(f"{r['label']} {text}")
    rejected = max(r["counts"]["rejected"] for r in results)
    if rejected:
        kv = document["engine"]["kv_tokens"]
        print(f"rejected: {rejected:,.0f} requests need more KV than the {kv:,} tokens there are")
    if len(results) > 1 and not any(r["queueing"] for r in results):
        print("nobody waited a millisecond: the policy cannot matter here; try --rate-scale")


def _report(
    document: dict[str, Any], found: list[tuple[str, Result]], options: Options, arguments: Sequence[str]
) -> list[str]:
    if not options.report:
        return []
    from ..report import html

    command = shlex.join(["tailrace", *arguments])
    try:
        path = html.write_html(options.report, document, found, command, __version__)
    except UserError as error:
        if "tailrace[report]" not in str(error):
            raise
        return [f"no report: {error}"]
    return [f"report: {path}"]


def write_requests(path: str, found: list[tuple[str, Result]]) -> None:
    """Per-request results of every policy as one Parquet file. Raises UserError."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = "arrival_s started_s first_token_s finish_s prompt_tokens output_tokens generated_tokens preemptions"
    names += " recomputed_tokens gap_max_s tenant true_class predicted_class reason"
    parts = []
    for label, result in found:
        r = result.requests
        columns: dict[str, Any] = {"policy": np.repeat(label, len(r.arrival_s)), "request": np.arange(len(r.arrival_s))}
        columns["class"] = np.array(result.meta["class_names"])[r.class_id]
        columns |= {name: getattr(r, name) for name in names.split()}
        columns |= {name: getattr(r, name) for name in ("wait_s", "ttft_s", "tpot_s", "e2e_s")}
        parts.append(pa.table(columns))
    files.write_atomically(path, lambda name: pq.write_table(pa.concat_tables(parts), name))


@contextlib.contextmanager
def _progress(total: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, for people only."""
    if quiet or total < 2 or not sys.stderr.isatty():
        yield lambda index: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("simulating"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("runs", total=total)
        yield lambda index: bar.advance(task)


def _print_json(document: dict[str, Any]) -> None:
    print(json.dumps(_finite(document), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    """JSON has no NaN or infinity: null."""
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
