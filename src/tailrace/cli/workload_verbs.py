"""What ``tailrace workload`` does, and what it prints for people."""

from __future__ import annotations

import contextlib
import math
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .. import workloads
from ..errors import UserError
from ..workloads import public
from ..workloads.inspect import inspect as facts_of
from ..workloads.workload import Workload
from .console import console, print_json

__all__ = ["Asked", "fetch", "inspect", "make"]


@dataclass(frozen=True)
class Asked:
    """A workload as the command line names it."""

    text: str
    seed: int | None
    limit: int
    rate_scale: float
    format: str
    service: workloads.Service

    def load(self) -> Workload:
        """The workload, with limit, rate and service applied. Raises UserError."""
        if not 0 < self.rate_scale < math.inf:
            raise UserError(f"rate scale {self.rate_scale:g} must be above 0 and finite")
        found = workloads.load(self.text, self.seed, self.limit or None, self.format or None)
        return workloads.promised(found if self.rate_scale == 1.0 else found.scaled(self.rate_scale), self.service)


def make(asked: Asked, out: str, as_json: bool) -> None:
    """Write the workload to ``out`` and say what it holds."""
    workload = asked.load()
    workloads.write(workload, out)
    if as_json:
        print_json(
            {
                "path": out,
                "bytes": Path(out).stat().st_size,
                "requests": len(workload),
                "digest": workload.digest(),
                "workload": workload.name,
                "description": workload.description,
            }
        )
        return
    print(f"{out}: {len(workload):,} requests, {_span(workload.span_s)}, {_number(workload.rate_rps)} requests/s")
    for note in workload.description.get("notes", ()):
        print(note)


def inspect(asked: Asked, plot: str, as_json: bool) -> None:
    """Print what the workload is like, and draw its lengths where asked to."""
    workload = asked.load()
    facts = facts_of(workload)
    if plot:
        from ..report.distributions import write_plot

        facts["plot"] = str(write_plot(workload, plot))
    if as_json:
        print_json(facts)
        return
    out = console()
    first = f"{facts['workload']}: {facts['requests']:,} requests in {_span(facts['span_s'])}, "
    out.print(Text(first + f"{_number(facts['rate_rps'])} requests/s"))
    out.print(_lengths(facts))
    for kind in ("output", "prompt"):
        tail = facts[f"{kind}_tail"]
        out.print(Text(f"{kind} tail: {tail['verdict']} ({tail['why']})"))
    out.print(Text(f"prompt and output: rank correlation {_number(facts['rank_correlation'])}"))
    out.print(_arrivals(facts["arrivals"]))
    for line in _gaps(facts["arrivals"]):
        out.print(Text(line))
    _who(out, facts)
    out.print(_description(facts["description"]))
    if plot:
        out.print(Text(f"plot: {facts['plot']}"))


def _lengths(facts: Mapping[str, Any]) -> Table:
    table = Table("tokens", *LENGTHS, title="Lengths")
    _right(table)
    for kind in ("prompt", "output"):
        found = facts[f"{kind}_tokens"]
        table.add_row(kind, *(_number(found[key]) for key in LENGTHS.values()))
    return table


LENGTHS: Final = {"mean": "mean", "min": "min", "P50": "p50", "P95": "p95", "P99": "p99", "max": "max"}


def _arrivals(found: Mapping[str, Any]) -> Table:
    table = Table("window", "windows", "peak, requests/s", "peak / mean", "variance / mean", title="Arrivals")
    _right(table)
    for window in found["windows"]:
        figures = (_number(window[key]) for key in ("peak_rps", "peak_to_mean", "dispersion"))
        table.add_row(f"{window['window_s']:g} s", f"{window['windows']:,}", *figures)
    return table


def _gaps(found: Mapping[str, Any]) -> list[str]:
    gap = found["gap_s"]
    line = f"gaps: mean {_number(gap['mean'])} s, P50 {_number(gap['p50'])} s, P99 {_number(gap['p99'])} s; "
    lines = [line + f"SCV {_number(found['scv'])} (Poisson: SCV 1, variance / mean 1)"]
    if not math.isnan(found["clock_s"]):
        together = f"{100 * found['simultaneous']:.0f} % come with the one before"
        line = f"the clock of this trace ticks every {_number(found['clock_s'])} s, and {together}: "
        lines.append(line + "SCV and windows near that width show the clock")
    return lines


def _who(out: Console, facts: Mapping[str, Any]) -> None:
    for kind, title in (("classes", "Classes"), ("tenants", "Tenants")):
        if facts[kind]:
            out.print(_groups(facts[kind], title))
    if facts["sessions"]:
        found = facts["sessions"]
        turns = f"{_number(found['turns']['mean'])} requests each on average, P99 {_number(found['turns']['p99'])}"
        out.print(Text(f"sessions: {found['count']:,} with {found['requests']:,} requests, {turns}"))
    if facts["prefix"]:
        found = facts["prefix"]
        blocks = f"{found['blocks']:,} blocks of {found['block_tokens']} tokens, {found['distinct_blocks']:,} distinct"
        shared = f"{100 * found['shared_share']:.1f} % of all prompt tokens were in a prompt before"
        out.print(Text(f"prefixes: {found['requests']:,} requests with {blocks}; {shared}"))


def _groups(found: Mapping[str, Any], title: str) -> Table:
    table = Table(title[:-2] if title == "Classes" else title[:-1], "requests", "share", title=title)
    weighted = "weight" in found["largest"][0]
    for column in ("weight",) * weighted + ("prompt P50", "output P50", "output P99", "TTFT SLO", "TPOT SLO"):
        table.add_column(column)
    _right(table)
    for item in found["largest"]:
        row = [item["name"], f"{item['requests']:,}", f"{100 * item['share']:.1f} %"]
        row += [_number(item["weight"])] if weighted else []
        row += [_number(item["prompt_tokens"]["p50"]), *(_number(item["output_tokens"][key]) for key in ("p50", "p99"))]
        row += ["none" if math.isnan(item[slo]) else f"{_number(item[slo])} s" for slo in ("ttft_slo_s", "tpot_slo_s")]
        table.add_row(*map(Text, row))
    more = found["count"] - len(found["largest"])
    table.caption = f"and {more:,} more" if more else None
    return table


def _description(found: Mapping[str, Any]) -> Table:
    table = Table("field", "value", title="Where it comes from", show_header=False)
    for key, value in found.items():
        if isinstance(value, Mapping):
            value = ", ".join(f"{name}={item}" for name, item in value.items()) or "none"
        elif isinstance(value, (list, tuple)):
            value = "\n".join(map(str, value)) or "none"
        table.add_row(Text(key.replace("_", " ")), Text(str(value)))
    return table


def _right(table: Table) -> None:
    for column in table.columns[1:]:
        column.justify = "right"


def fetch(name: str, folder: str, as_json: bool) -> None:
    """List the traces whose names begin with ``name``, or download them into ``folder``."""
    traces = public.find(name)
    if folder and not name:
        raise UserError("fetch --run downloads what you name; the list is `tailrace workload fetch`")
    done: list[public.Fetched] = []
    if folder:
        with _progress(quiet=as_json) as tell:
            done = public.fetch(traces, folder, tell)
    if as_json:
        print_json({"traces": [_trace(trace) for trace in traces], "fetched": [_fetched(item) for item in done]})
    elif folder:
        for item in done:
            print(f"{item.path}: {item.bytes:,} bytes, SHA-256 {item.sha256}" + ("" if item.new else ", was there"))
            print(f"  licence {item.trace.licence}; cite {item.trace.cite}")
    else:
        _list(traces)


def _list(traces: list[public.Trace]) -> None:
    out = console()
    table = Table("trace", "what", "size", "licence", "cite", title="Public traces", show_lines=True)
    for trace in traces:
        table.add_row(trace.name, trace.about, trace.size or "–", trace.licence, trace.cite)
    out.print(table)
    print("download one with `tailrace workload fetch NAME --run DIR`, or by hand:")
    for trace in traces:
        print(f"  curl -fL -o {shlex.quote(trace.file)} {shlex.quote(trace.url)}")


def _trace(trace: public.Trace) -> dict[str, Any]:
    shown = {key: getattr(trace, key) for key in ("name", "about", "url", "file", "licence", "cite")}
    return {**shown, "size": trace.size or None}


def _fetched(item: public.Fetched) -> dict[str, Any]:
    found = {"name": item.trace.name, "path": str(item.path), "bytes": item.bytes}
    return {**found, "sha256": item.sha256, "new": item.new}


@contextlib.contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[public.Trace, int, int], None]]:
    """A bar a file on stderr, for people only."""
    if quiet or not sys.stderr.isatty():
        yield lambda trace, done, total: None
        return
    from rich.progress import DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def tell(trace: public.Trace, done: int, total: int) -> None:
            if trace.name not in tasks:
                tasks[trace.name] = bar.add_task(trace.name, total=total or None)
            bar.update(tasks[trace.name], completed=done)

        yield tell


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    hours, rest = divmod(round(seconds / 60), 60)
    return f"{seconds:,.0f} s ({hours} h {rest} min)" if hours else f"{seconds:,.0f} s ({rest} min)"


def _number(value: float) -> str:
    """Three figures or more, none lost before the point."""
    if math.isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
