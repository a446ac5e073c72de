"""The figures of a report, each an inline SVG with a sentence on what it shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from . import courses, facts
from .marks import DotRow, label_ends, label_width, log_axis, wait_dots
from .style import Style, styles
from .svg import Canvas, clean, drawing, render
from .timeline import timeline
from .values import lookup

if TYPE_CHECKING:
    from ..sim.run import Result

__all__ = ["FLOOR_S", "Figure", "Run", "figures"]

FLOOR_S: Final = 1e-4
"""Shorter times are drawn here: a log axis has no zero."""
TICKS: Final = (50.0, 90.0, 95.0, 99.0, 99.9)
WIDTH, HEIGHT = 470.0, 330.0
THRESHOLDS_S: Final = tuple(step * 10.0**e for e in range(-4, 4) for step in (1, 2, 5))


@dataclass(frozen=True)
class Figure:
    """One figure, ready to put in a page."""

    name: str
    """Unique; begins its ids."""
    title: str
    svg: str
    reading: str
    """Computed facts, one sentence."""
    canvas: Canvas = field(compare=False, repr=False)
    """As matplotlib drew it."""
    wide: bool = False


@dataclass(frozen=True)
class Run:
    """A run and how it is drawn."""

    label: str
    style: Style
    result: Result


def figures(document: Mapping[str, Any], runs: Sequence[tuple[str, Result]]) -> list[Figure]:
    """All figures there are data for. Of runs with the same label the first is drawn.

    Raises UserError if matplotlib is not installed.
    """
    looks = styles(document["results"])
    chosen: dict[str, Run] = {}
    for label, result in runs:
        style = looks.get(label) or styles([{**result.meta, "label": label}])[label]
        chosen.setdefault(label, Run(label, style, result))
    drawn = list(chosen.values())
    seeds = list(document.get("seeds") or [])
    prefix = f"With seed {seeds[0]}, " if len(seeds) > 1 else ""
    out = [_classes(document, looks)]
    if drawn:
        out = [
            *(draw(drawn, metric, prefix) for metric in METRIC_TITLES for draw in (_percentiles, _cdf)),
            *out,
            _timeline(drawn, prefix),
            *(_course(drawn, name, prefix) for name in courses.names([run.result for run in drawn])),
        ]
    return [figure for figure in out if figure is not None]


def percentile_curve(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``(percents, values)`` from P50 to P99.9, or to where the sample still tells percentiles apart."""
    from scipy.special import ndtr, ndtri

    values = values[~np.isnan(values)]
    top = min(99.9, 100 * (1 - 1 / max(len(values), 2)))
    places = 100 * ndtr(np.linspace(0, float(ndtri(0.999)), 120))
    percents = np.unique(np.concatenate([places[places < top], [p for p in TICKS if p <= top], [top]]))
    percents = percents[percents >= 50]
    return percents, np.quantile(values, percents / 100) if len(values) else np.full(len(percents), np.nan)


IN_MS: Final = frozenset({"tpot_s"})
"""Metrics that are drawn in milliseconds."""
METRIC_TITLES: Final = {
    "e2e_s": ("End-to-end latency", "end-to-end latency"),
    "ttft_s": ("Time to first token", "time to first token"),
    "tpot_s": ("Time per output token", "time per output token"),
    "wait_s": ("Queueing delay", "queueing delay"),
}


def _unit(metric: str) -> tuple[str, float]:
    return ("ms", 1e3) if metric in IN_MS else ("s", 1.0)


def _percentiles(runs: Sequence[Run], metric: str, prefix: str) -> Figure | None:
    """Percentile curves, P50 to P99.9 on a probability scale."""
    from scipy.special import ndtri

    (title, words), (unit, factor) = METRIC_TITLES[metric], _unit(metric)
    curves = {run.label: percentile_curve(getattr(run.result.requests, metric)) for run in runs}
    curves = {label: curve for label, curve in curves.items() if np.isfinite(curve[1]).all()}
    if not curves:
        return None
    name = f"fig-{metric.removesuffix('_s')}"
    with drawing(name):
        canvas, axes = _panel([run.label for run in runs])
        ends = []
        for run in _back_to_front(run for run in runs if run.label in curves):
            percents, values = curves[run.label]
            y = factor * np.maximum(values, FLOOR_S)
            marks = [int(i) for i in np.flatnonzero(np.isin(percents, TICKS))]
            axes.plot(ndtri(percents / 100), y, markevery=marks, **run.style.drawn())
            ends.append((clean(run.label), run.style, float(ndtri(percents[-1] / 100)), float(y[-1])))
        axes.set_xlim(-0.08, float(ndtri(0.999)) + 0.08)
        axes.set_xticks([float(ndtri(p / 100)) for p in TICKS], [f"{p:g}" for p in TICKS])
        axes.set_xlabel("percentile of requests (probability scale)")
        log_axis(axes.yaxis, [factor * y for curve in curves.values() for y in curve[1]], factor * FLOOR_S)
        axes.set_ylabel(f"{words} ({unit})")
        label_ends(axes, ends)
        svg = render(canvas, name, f"{title}, percentiles")
    return Figure(name, f"{title}, P50 to P99.9", svg, _percentile_reading(curves, words, prefix), canvas)


def _percentile_reading(curves: Mapping[str, tuple[Any, Any]], words: str, prefix: str) -> str:
    def at(percent: float) -> dict[str, float | None]:
        return {
            label: float(v[int(np.argmin(np.abs(p - percent)))]) if p[-1] >= percent else None
            for label, (p, v) in curves.items()
        }

    top = 99.0 if any(v is not None for v in at(99.0).values()) else 50.0
    return _sentence(f"{prefix}{facts.extremes(at(top), f'P{top:g} {words}')}")


def _cdf(runs: Sequence[Run], metric: str, prefix: str) -> Figure | None:
    """Distribution functions."""
    (title, words), (unit, factor) = METRIC_TITLES[metric], _unit(metric)
    times = {run.label: _known(getattr(run.result.requests, metric)) for run in runs}
    times = {label: values for label, values in times.items() if len(values)}
    if not times:
        return None
    name = f"fig-{metric.removesuffix('_s')}-cdf"
    with drawing(name):
        canvas, axes = _panel([run.label for run in runs])
        for run in _back_to_front(run for run in runs if run.label in times):
            values, share = times[run.label], np.linspace(0, 1, 201)
            look = {**run.style.drawn(), "markevery": [100, 180]}
            axes.plot(factor * np.maximum(np.quantile(values, share), FLOOR_S), 100 * share, **look)
        ends = [factor * float(q) for v in times.values() for q in np.quantile(v, (0.02, 1))]
        log_axis(axes.xaxis, ends, factor * FLOOR_S)
        axes.set_xlabel(f"{words} ({unit})")
        axes.set_ylabel("requests that take no longer (%)")
        axes.set_ylim(0, 103)
        label_ends(axes, [(clean(r.label), r.style, math.nan, math.nan) for r in runs if r.label in times])
        svg = render(canvas, name, f"{title}, cumulative distribution")
    return Figure(name, f"{title}, cumulative distribution", svg, _cdf_reading(times, words, prefix), canvas)


def _cdf_reading(times: Mapping[str, NDArray[np.float64]], words: str, prefix: str) -> str:
    """At the round time where the policies differ most, else where half the requests are done."""
    shares = {t: {label: float(np.mean(values <= t)) for label, values in times.items()} for t in THRESHOLDS_S}

    def telling(t: float) -> tuple[float, float]:
        low, high = min(shares[t].values()), max(shares[t].values())
        return round(high - low, 3), -abs(low + high - 1)

    chosen = max(shares, key=telling)
    return _sentence(f"{prefix}{facts.share_reading(shares[chosen], chosen, words)}")


def _timeline(runs: Sequence[Run], prefix: str) -> Figure | None:
    drawn = [run for run in runs if len(run.result.timeline.get("clock_s", ()))]
    if not drawn:
        return None
    name = "fig-timeline"
    with drawing(name):
        canvas, peaks = timeline([(clean(run.label), run.style, run.result) for run in drawn])
        svg = render(canvas, name, "Waiting and running requests and KV use over time")
    queue = {run.label: peak[0] for run, peak in zip(drawn, peaks, strict=True)}
    kv = {run.label: peak[2] for run, peak in zip(drawn, peaks, strict=True)}
    reading = (
        f"{prefix}the longest queue in the samples is {facts.peak(queue, 'requests')}; "
        f"the most KV in use is {facts.peak(kv, '% of capacity')}"
    )
    return Figure(name, "Queue, running requests and KV use over time", svg, _sentence(reading), canvas, wide=True)


def _course(runs: Sequence[Run], kept: str, prefix: str) -> Figure:
    """A value that policies kept over time (`Policy.paths`)."""
    having = [run for run in runs if kept in run.result.paths]
    name, title = f"fig-path-{kept}", f"{courses.titled(kept)} over time"
    with drawing(name):
        canvas, axes = _panel([run.label for run in having])
        courses.draw(axes, kept, [(clean(run.label), run.style, run.result) for run in having])
        svg = render(canvas, name, title)
    reading = courses.reading(kept, {run.label: run.result for run in having})
    return Figure(name, title, svg, _sentence(f"{prefix}{reading}"), canvas)


def _classes(document: Mapping[str, Any], looks: Mapping[str, Style]) -> Figure | None:
    """P99 wait of the truly short against the truly long."""
    rows: list[DotRow] = []
    for result in document["results"]:
        label = str(result.get("label") or result["policy"])
        pair = [lookup(result, ("by_true_class", kind, "metrics", "wait_s")) or {} for kind in ("short", "long")]
        rows.append((label, looks[label], pair[0], pair[1]))
    short = {label: record.get("p99") for label, _, record, _ in rows}
    long = {label: record.get("p99") for label, _, _, record in rows}
    if all(value is None for value in (*short.values(), *long.values())):
        return None
    name = "fig-classes"
    with drawing(name):
        canvas = wait_dots([(clean(row[0]), *row[1:]) for row in rows], FLOOR_S)
        svg = render(canvas, name, "P99 queueing delay of short and long requests")
    parts = [
        facts.extremes(values, f"P99 wait of the truly {kind}") for values, kind in ((short, "short"), (long, "long"))
    ]
    reading = _sentence("; ".join(parts))
    return Figure(name, "P99 queueing delay by true length", svg, reading, canvas, wide=True)


def _panel(labels: Sequence[str]) -> tuple[Canvas, Any]:
    canvas = Canvas(WIDTH, HEIGHT)
    return canvas, canvas.axes(58, 12, WIDTH - label_width([clean(label) for label in labels]) - 26, HEIGHT - 46)


def _back_to_front(runs: Any) -> list[Run]:
    """Wide lines go over thin ones."""
    return sorted(runs, key=lambda run: run.style.width)


def _known(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[~np.isnan(values)]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
