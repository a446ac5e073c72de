"""Parts that figures share: labels at the ends of curves, log axes in plain seconds, the dot plot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from .style import Style
from .svg import INK, Canvas

__all__ = ["DotRow", "label_ends", "label_width", "log_axis", "spread", "wait_dots"]

LINE: Final = 15.0
"""Pixels between lines of text."""
CHARACTER: Final = 6.6
DOT_ROW: Final = 26.0
DOT_WIDTH: Final = 960.0

DotRow = tuple[str, Style, Mapping[str, Any], Mapping[str, Any]]
"""Label, style, and the statistics of the short and of the long."""


def label_width(labels: Sequence[str]) -> float:
    """Pixels that the longest of ``labels`` takes, about."""
    return CHARACTER * max((len(label) for label in labels), default=0) + 8


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """``places`` moved as little as it takes to be ``gap`` apart, between ``low`` and ``high``."""
    order = np.argsort(np.asarray(places), kind="stable")
    out = [0.0] * len(places)
    level = low - gap
    for i in order:
        level = out[i] = max(places[i], level + gap)
    level = high + gap
    for i in reversed(order):
        level = out[i] = min(out[i], level - gap)
    return out


def label_ends(axes: Any, ends: Sequence[tuple[str, Style, float, float]]) -> None:
    """Names beside the right ends of curves ``(label, style, x, y)``, joined by thin lines.

    With an end that is NaN: a list of names, in the order given, as a key.
    """
    height = axes.get_window_extent().height
    width = axes.get_window_extent().width
    to_axes = axes.transData + axes.transAxes.inverted()
    points = [to_axes.transform((x, y)) if math.isfinite(y) else None for _, _, x, y in ends]
    wanted = [height * p[1] if p is not None else height - LINE * (i + 0.6) for i, p in enumerate(points)]
    gap = min(LINE, height / max(len(ends), 1))
    for (label, style, _, _), point, place in zip(ends, points, spread(wanted, gap, 4, height), strict=True):
        y, edge = place / height, 1 + 12 / width
        if point is not None:
            axes.plot(
                [point[0], edge],
                [point[1], y],
                color=style.color,
                linewidth=0.8,
                transform=axes.transAxes,
                clip_on=False,
            )
        look = {**style.drawn(), "linewidth": 0}
        axes.plot([edge + 4 / width], [y], transform=axes.transAxes, clip_on=False, **look)
        axes.text(edge + 13 / width, y, label, transform=axes.transAxes, va="center_baseline", fontsize=11.5)


def log_axis(axis: Any, values: Sequence[float], floor: float) -> None:
    """A log scale in plain seconds that holds ``values``; those under ``floor`` lie on it."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    known = [max(v, floor) for v in values if v is not None and math.isfinite(v)]
    low, high = math.log10(min(known)), math.log10(max(known))
    margin = max(0.03 * (high - low), 0.1 - (high - low) / 2, 0.02)
    low, high = low - margin, high + margin
    decades = [10.0**e for e in range(math.floor(low), math.ceil(high) + 1)]
    steps = (1, 2, 5) if high - low < 2 else (1,)
    ticks = [s * d for d in decades for s in steps if low <= math.log10(s * d) <= high]
    if len(ticks) < 2:
        round_ones = MaxNLocator(4).tick_values(10**low, 10**high)
        ticks = [float(t) for t in round_ones if 10**low <= t <= 10**high]
    if axis.axis_name == "y":
        axis.axes.set_yscale("log")
        axis.axes.set_ylim(10**low, 10**high)
    else:
        axis.axes.set_xscale("log")
        axis.axes.set_xlim(10**low, 10**high)
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value, floor)))


def _tick(value: float, floor: float) -> str:
    text = f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= floor else f"{value:.0e}"
    return f"≤ {floor:g}" if math.isclose(value, floor) else text


def wait_dots(rows: Sequence[DotRow], floor: float) -> Canvas:
    """P99 wait by true class, with intervals where they are known."""
    height = 66 + DOT_ROW * len(rows) + 46
    canvas = Canvas(DOT_WIDTH, height)
    axes = canvas.axes(label_width([row[0] for row in rows]) + 20, 40, DOT_WIDTH - 20, height - 46)
    values: list[float] = []
    points: list[float] = []
    for place, (_, style, *pair) in enumerate(rows):
        known = [max(record["p99"], floor) if record.get("p99") is not None else None for record in pair]
        ends = [(record.get("ci") or {}).get("p99") for record in pair]
        if None not in known and not any(ends):
            axes.plot(known, [place, place], color=style.color, linewidth=1, alpha=0.5)
        for value, interval, filled, shift in zip(known, ends, (False, True), (-0.13, 0.13), strict=True):
            if value is None:
                continue
            y = place + (shift if any(ends) else 0)
            span = [max(v, floor) for v in interval] if interval else []
            axes.plot(span, [y] * len(span), color=style.color, linewidth=1.4)
            face = style.color if filled else "none"
            axes.plot([value], [y], "o", markersize=7, color=style.color, markerfacecolor=face, markeredgewidth=1.6)
            values += [value, *span]
            points.append(value)
    axes.set_yticks(range(len(rows)), [row[0] for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    # An interval may reach down to nothing; the points decide how far the axis goes.
    log_axis(axes.xaxis, [max(v, min(points) / 5) for v in values], floor)
    axes.set_xlabel("P99 queueing delay (s)" + (", lines: 95 % interval over seeds" if _has_intervals(rows) else ""))
    _key(canvas, axes)
    return canvas


def _has_intervals(rows: Sequence[DotRow]) -> bool:
    return any((record.get("ci") or {}).get("p99") for row in rows for record in row[2:])


def _key(canvas: Canvas, axes: Any) -> None:
    """Which dot is which, above the first row."""
    box = axes.get_window_extent()
    for text, filled, left in (("true short", False, 4.0), ("true long", True, 96.0)):
        x, y = left / box.width, 1 + 16 / box.height
        face = INK if filled else "none"
        axes.plot([x], [y], "o", transform=axes.transAxes, clip_on=False, markersize=7, color=INK, markerfacecolor=face)
        axes.text(x + 9 / box.width, y, text, transform=axes.transAxes, va="center_baseline")
