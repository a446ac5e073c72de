"""A dot plot of groups of settings: a value and its interval a line, the default filled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..marks import label_width
from ..svg import INK, Canvas, clean
from .study import Value

__all__ = ["Dot", "draw_dots"]

WIDTH: Final = 960.0
ROW: Final = 21.0
GROUP: Final = 10.0
"""Pixels between groups."""
TOP: Final = 34.0
BOTTOM: Final = 46.0
LONGEST: Final = 44
COLOR: Final = "#0072B2"


@dataclass(frozen=True)
class Dot:
    """One line of the plot."""

    group: str
    label: str
    value: Value
    default: bool


def draw_dots(dots: Sequence[Dot], xlabel: str) -> Canvas:
    """The dots that have a value, group under group in the order given."""
    dots = [dot for dot in dots if dot.value.measured is not None]
    places: list[float] = []
    for i, dot in enumerate(dots):
        step = 0.0 if i == 0 else ROW + (GROUP if dot.group != dots[i - 1].group else 0)
        places.append((places[-1] if places else 0.0) + step)
    height = TOP + ROW + places[-1] + BOTTOM
    canvas = Canvas(WIDTH, height)
    groups = 10 + label_width([clean(dot.group, LONGEST) for dot in dots])
    labels = label_width([clean(dot.label, LONGEST) for dot in dots])
    axes = canvas.axes(groups + labels + 16, TOP, WIDTH - 24, height - BOTTOM)
    for place, dot in zip(places, dots, strict=True):
        face = COLOR if dot.default else "none"
        if dot.value.ci is not None:
            axes.plot(dot.value.ci, [place, place], color=COLOR, linewidth=1.6, alpha=0.7)
        axes.plot([dot.value.measured], [place], "o", color=COLOR, markerfacecolor=face, markersize=7, mew=1.6)
    axes.set_ylim(places[-1] + ROW / 2, -ROW / 2)
    axes.set_yticks(places, [clean(dot.label, LONGEST) for dot in dots])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    ends = [end for dot in dots for end in (dot.value.measured, *(dot.value.ci or ()))]
    axes.set_xlim(0, 1.04 * max(end for end in ends if end is not None) or 1.0)
    axes.set_xlabel(xlabel)
    _headings(canvas, dots, places)
    _key(canvas, groups + labels + 16, any(dot.value.ci is not None for dot in dots))
    return canvas


def _headings(canvas: Canvas, dots: Sequence[Dot], places: Sequence[float]) -> None:
    """Each group's name beside its first line, and a rule between groups."""
    for i, (place, dot) in enumerate(zip(places, dots, strict=True)):
        if i and dot.group == dots[i - 1].group:
            continue
        y = TOP + ROW / 2 + place
        canvas.text(10, y, clean(dot.group, LONGEST), va="center_baseline", fontweight="bold")
        if i:
            canvas.rule(10, canvas.width - 24, y - ROW / 2 - GROUP / 2, color=INK, alpha=0.14, linewidth=0.8)


def _key(canvas: Canvas, left: float, intervals: bool) -> None:
    axes = canvas.axes(left, 0, canvas.width, TOP)
    axes.set_axis_off()
    axes.set_xlim(0, canvas.width - left)
    axes.set_ylim(TOP, 0)
    for x, face, text in ((6, COLOR, "default"), (92, "none", "alternative")):
        axes.plot([x], [TOP / 2], "o", color=COLOR, markerfacecolor=face, markersize=7, mew=1.6)
        axes.text(x + 11, TOP / 2, text, va="center_baseline")
    if intervals:
        axes.plot([208, 232], [TOP / 2] * 2, color=COLOR, linewidth=1.6, alpha=0.7)
        axes.text(238, TOP / 2, "95 % interval", va="center_baseline")
