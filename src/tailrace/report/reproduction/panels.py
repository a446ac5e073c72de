"""Panels of curves side by side, with confidence bands, published points and one key for all."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..marks import log_axis
from ..style import Style
from ..svg import INK, Canvas
from .study import Curve, Value

__all__ = ["Figure", "Level", "Line", "Panel", "draw"]

WIDTH: Final = 960.0
LEFT: Final = 54.0
GAP: Final = 58.0
"""Pixels between panels, where the labels of the y axis are."""
RIGHT: Final = 14.0
KEY: Final = 34.0
TITLE: Final = 26.0
BOTTOM: Final = 46.0
ROW: Final = 236.0
"""Pixels of a panel's own height."""
LOG_FROM: Final = 30.0
"""Values that span more than this are drawn on a log axis."""
FLOOR_S: Final = 1e-4
MUTED: Final = "#7a7f87"
NARROW: Final = 6.0
"""Pixels a character of the key."""
WIDEST: Final = 2.2
"""Pixels of a line: panels are small."""
WIDE_BAND: Final = 1.6
"""Intervals are cut off at this many times the highest value."""
LEVEL: Final[Mapping[str, Any]] = {"linewidth": 1.4, "linestyle": (0, (5, 3))}
BAND: Final[Mapping[str, Any]] = {"color": MUTED, "alpha": 0.3, "linewidth": 0}
DIAMOND: Final[Mapping[str, Any]] = {"marker": "D", "markersize": 9, "markerfacecolor": "none", "markeredgewidth": 1.3}


@dataclass(frozen=True)
class Figure:
    """One figure, ready to be a file and to be put in a page."""

    name: str
    """Unique; the file's stem."""
    title: str
    svg: str
    caption: str
    """What is drawn, in plain text."""
    canvas: Canvas = field(compare=False, repr=False)
    """As matplotlib drew it."""


@dataclass(frozen=True)
class Line:
    """A curve, with a band where intervals are known and diamonds where the paper prints a number."""

    label: str
    style: Style
    points: Curve
    formula: bool = False


@dataclass(frozen=True)
class Level:
    """A dashed horizontal line: a value that does not depend on what is varied."""

    label: str
    style: Style
    value: Value | None


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    xlabel: str
    ylabel: str
    lines: Sequence[Line]
    levels: Sequence[Level] = ()
    void: str = ""
    """Written over the places where no curve has a value."""
    void_from: float | None = None
    """Where those places begin, if that is known better than from the points."""
    ticks: Mapping[float, str] = field(default_factory=dict)
    """Places of the x axis and what they are called; numbers by default."""
    log_x: bool = False
    bands: bool = True
    """Whether intervals are drawn; of many curves they would hide one another."""

    @property
    def drawn(self) -> bool:
        """Whether there is any value to draw."""
        return any(v.measured is not None for line in self.lines for v in line.points.values())


def draw(panels: Sequence[Panel], columns: int = 3, share_rows: bool = False, across: float = WIDTH) -> Canvas:
    """The panels on a canvas ``across`` pixels wide, ``columns`` a row, on one y axis a row if ``share_rows``."""
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    block = TITLE + ROW + BOTTOM
    key = _placed(panels, across)
    head = KEY * (1 + max((line for line, *_ in key), default=0))
    canvas = Canvas(across, head + rows * block)
    width = (across - LEFT - RIGHT - (columns - 1) * GAP) / columns
    for i, panel in enumerate(panels):
        row, column = divmod(i, columns)
        left, top = LEFT + column * (width + GAP), head + row * block + TITLE
        axes = canvas.axes(left, top, left + width, top + ROW)
        letter = f"({chr(ord('a') + i)}) " if len(panels) > 1 else ""
        axes.set_title(letter + panel.title, loc="left", fontsize=11.5, pad=8)
        group = panels[row * columns : (row + 1) * columns] if share_rows else [panel]
        _panel(axes, panel, group)
    _key(canvas, key, head)
    return canvas


def _panel(axes: Any, panel: Panel, group: Sequence[Panel]) -> None:
    from matplotlib.ticker import MaxNLocator

    for level in panel.levels:
        if level.value is not None and level.value.measured is not None:
            axes.axhline(level.value.measured, color=level.style.color, **LEVEL)
    log = _scale(axes, group)
    for line in sorted(panel.lines, key=lambda line: line.style.width):
        _curve(axes, line, log, panel.bands)
    axes.set_xlabel(panel.xlabel)
    axes.set_ylabel(panel.ylabel)
    xs = [x for line in panel.lines for x in line.points]
    if panel.log_x:
        log_axis(axes.xaxis, xs, FLOOR_S)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
        pad = 0.03 * (max(xs) - min(xs)) or 0.5
        axes.set_xlim(min(xs) - pad, max(xs) + pad)
    if panel.ticks:
        axes.set_xticks(list(panel.ticks), list(panel.ticks.values()))
    _void(axes, panel)


def _curve(axes: Any, line: Line, log: bool, bands: bool) -> None:
    points = {x: v for x, v in line.points.items() if v.measured is not None}
    if bands:
        _band(axes, line, log)
    look = dataclasses.replace(line.style, width=min(line.style.width, WIDEST), dashed=line.formula).drawn()
    axes.plot(list(points), [v.measured for v in points.values()], **{**look, "markersize": look["markersize"] - 0.8})
    printed = {x: v.paper for x, v in line.points.items() if v.paper is not None}
    # Over everything and beyond the axes, as the first and the last place are at their edges.
    above = {"linewidth": 0, "alpha": 0.85, "zorder": 5, "clip_on": False}
    axes.plot(list(printed), list(printed.values()), color=line.style.color, **above, **DIAMOND)


def _band(axes: Any, line: Line, log: bool) -> None:
    bottom = axes.get_ylim()[0]
    ends = {x: (max(v.ci[0], bottom) if log else v.ci[0], v.ci[1]) for x, v in line.points.items() if v.ci is not None}
    if len(ends) == 1:
        x, span = next(iter(ends.items()))
        axes.plot([x, x], span, color=line.style.color, linewidth=1.2)
    elif ends:
        lows, highs = zip(*ends.values(), strict=True)
        axes.fill_between(list(ends), lows, highs, color=line.style.color, alpha=0.2, linewidth=0)


def _scale(axes: Any, group: Sequence[Panel]) -> bool:
    """Set the y axis to hold all there is in ``group``; whether it is a log axis."""
    values = [v for p in group for line in p.lines for v in line.points.values()]
    values += [level.value for p in group for level in p.levels if level.value is not None]
    known = [y for v in values for y in (v.measured, v.paper) if y is not None]
    if min(known) > 0 and max(known) / min(known) >= LOG_FROM:
        log_axis(axes.yaxis, known, FLOOR_S)
        return True
    ends = [v.ci[1] for v in values if v.ci is not None and all(p.bands for p in group)]
    # The interval of two or three seeds may be far wider than anything else.
    top = min(max([*known, *ends]), WIDE_BAND * max(known))
    axes.set_ylim(0, 1.06 * top or 1.0)
    return False


def _void(axes: Any, panel: Panel) -> None:
    """Hatch where there are places on the axis and no curve has a value, and say why."""
    xs = sorted({x for line in panel.lines for x in line.points})
    empty = [x for x in xs if all(line.points[x].measured is None for line in panel.lines if x in line.points)]
    if not empty or not panel.void:
        return
    right = axes.get_xlim()[1]
    before = [x for x in xs if x < empty[0]]
    left = (before[-1] + empty[0]) / 2 if before else axes.get_xlim()[0]
    if panel.void_from is not None and before and before[-1] <= panel.void_from <= empty[0]:
        left = panel.void_from
    axes.axvspan(left, right, facecolor="none", edgecolor=INK, alpha=0.16, hatch="////", linewidth=0)
    box = {"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "pad": 2.5}
    axes.text(
        (left + right) / 2,
        0.5,
        panel.void,
        transform=axes.get_xaxis_transform(),
        ha="center",
        va="center",
        color="#1b1f24",
        bbox=box,
    )


def _placed(panels: Sequence[Panel], across: float) -> list[tuple[int, float, str, Mapping[str, Any]]]:
    """``(line, pixels from the left, name, look)`` of the key's entries, in as many lines as they need."""
    out = []
    line, x = 0, LEFT
    for label, look in _entries(panels):
        width = 30 + NARROW * len(label) + 26
        if x > LEFT and x + width > across:
            line, x = line + 1, LEFT
        out.append((line, x, label, look))
        x += width
    return out


def _key(canvas: Canvas, entries: Sequence[tuple[int, float, str, Mapping[str, Any]]], height: float) -> None:
    """What each colour and mark is, at the top."""
    axes = canvas.axes(0, 0, canvas.width, height)
    axes.set_axis_off()
    axes.set_xlim(0, canvas.width)
    axes.set_ylim(height, 0)
    for line, x, label, look in entries:
        y = KEY * (line + 0.5)
        if look is BAND:
            axes.fill_between([x, x + 24], y - 6, y + 6, **look)
        else:
            axes.plot([x, x + 12, x + 24], [y] * 3, markevery=[1], **look)
        axes.text(x + 30, y, label, va="center_baseline")


def _entries(panels: Sequence[Panel]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Names and how they are drawn: policies, then what else there is on the panels."""
    lines = [line for panel in panels for line in panel.lines]
    levels = [level for panel in panels for level in panel.levels]
    values = [v for line in lines for v in line.points.values()]
    curves = {line.label for line in lines}
    styles = {**{level.label: level.style for level in levels}, **{line.label: line.style for line in lines}}
    order = dict.fromkeys([level.label for level in levels] + [line.label for line in lines])
    for label in order:
        look = dataclasses.replace(styles[label], width=min(styles[label].width, WIDEST)).drawn()
        yield label, look if label in curves else {**look, **LEVEL, "marker": ""}
    if any(level.label in curves for level in levels):
        yield "at its defaults", {"color": INK, **LEVEL}
    if any(line.formula for line in lines):
        yield "formula", {"color": INK, "linewidth": 1.6, "linestyle": (0, (5, 2))}
    if any(v.ci is not None for panel in panels if panel.bands for line in panel.lines for v in line.points.values()):
        yield "95 % interval", BAND
    if any(v.paper is not None for v in values):
        yield "printed in the paper", {"color": MUTED, "linewidth": 0, **DIAMOND}
