"""Waiting, running and KV use over a run: a row a policy, all on the same axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from .marks import label_width
from .style import Style
from .svg import INK, Canvas

if TYPE_CHECKING:
    from ..sim.run import Result

__all__ = ["POINTS", "highest_of", "since_first", "time_unit", "timeline"]

POINTS: Final = 240
"""Points a line has at most; each is the highest sample in its stretch of the run."""
WIDTH: Final = 960.0
ROW: Final = 74.0
TOP, BOTTOM, GAP = 26.0, 44.0, 46.0
TITLES: Final = ("waiting (requests)", "running (requests)", "KV in use (% of capacity)")

Series = tuple[NDArray[np.float64], list[NDArray[np.float64]]]


def timeline(rows: Sequence[tuple[str, Style, Result]]) -> tuple[Canvas, list[tuple[float, float, float]]]:
    """The figure, and each row's peaks of waiting, running and KV use in per cent."""
    series = [_series(result) for _, _, result in rows]
    span = max(float(clock[-1]) for clock, _ in series) or 1.0
    unit, divisor = time_unit(span)
    peaks = [tuple(float(line.max()) for line in lines) for _, lines in series]
    tops = [max(p[column] for p in peaks) or 1.0 for column in range(3)]
    canvas = Canvas(WIDTH, TOP + ROW * len(rows) + BOTTOM)
    first = label_width([label for label, _, _ in rows]) + 46
    width = (WIDTH - first - 12 - 2 * GAP) / 3
    for place, ((label, style, _), (clock, lines)) in enumerate(zip(rows, series, strict=True)):
        canvas.text(4, TOP + ROW * (place + 0.5), label, va="center")
        for column, line in enumerate(lines):
            left, top = first + column * (width + GAP), TOP + ROW * place
            axes = canvas.axes(left, top + 6, left + width, top + ROW - 8)
            _small(axes, clock / divisor, line, style, column)
            axes.set_xlim(0, span / divisor)
            axes.set_ylim(0, 1.08 * tops[column])
            last = place == len(rows) - 1
            axes.tick_params(axis="x", labelbottom=last)
            if last and column == 1:
                axes.set_xlabel(f"time since the first arrival ({unit})")
            if place == 0:
                canvas.text(left, 14, TITLES[column], va="center")
    return canvas, [(p[0], p[1], p[2]) for p in peaks]


def time_unit(span_s: float) -> tuple[str, float]:
    """``(unit, seconds of it)`` in which a time axis of ``span_s`` reads well."""
    return ("h", 3600.0) if span_s > 4 * 3600 else ("min", 60.0) if span_s > 1800 else ("s", 1.0)


def since_first(times: NDArray[np.float64], result: Result) -> NDArray[np.float64]:
    """Seconds since the run's first arrival, at least 0."""
    first = float(result.requests.arrival_s[0]) if len(result.requests.arrival_s) else 0.0
    return np.maximum(np.asarray(times, dtype=float) - first, 0.0)


def highest_of(
    clock: NDArray[np.float64], line: NDArray[np.float64], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The highest sample of ``line`` between each two ``edges``; NaN where there is none."""
    out = np.full(len(edges) - 1, np.nan)
    np.fmax.at(out, np.clip(np.searchsorted(edges, clock, side="right") - 1, 0, len(out) - 1), line)
    return out


def _series(result: Result) -> Series:
    """Clock and the three lines, thinned."""
    t, meta = result.timeline, result.meta
    clock = since_first(t["clock_s"], result)
    tokens = np.asarray(t["used_blocks"], dtype=float) * meta["rules"]["block_tokens"]
    lines = [np.asarray(t[name], dtype=float) for name in ("waiting", "running")]
    lines.append(100 * tokens / meta["engine"]["kv_tokens"])
    if len(clock) <= POINTS:
        return clock, lines
    edges = np.linspace(0, float(clock[-1]), POINTS + 1)
    thin = [highest_of(clock, line, edges) for line in lines]
    held = ~np.isnan(thin[0])
    return edges[1:][held], [line[held] for line in thin]


def _small(axes: Any, clock: NDArray[np.float64], line: NDArray[np.float64], style: Style, column: int) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.plot(clock, line, color=style.color, linewidth=1.3)
    axes.fill_between(clock, line, color=style.color, alpha=0.18, linewidth=0)
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=column < 2))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    if column == 2 and line.max() > 100:
        axes.axhline(100, color=INK, linewidth=0.8, alpha=0.6)
