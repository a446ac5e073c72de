"""The figure of a search: every setting in the plane of two objectives, and the Pareto front.

Everything here takes the document of ``tailrace tune --json``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from . import saving
from .marks import label_width, log_axis, spread
from .style import Style, styles
from .svg import INK, Canvas, clean, drawing

__all__ = ["draw", "write"]

WIDTH, HEIGHT = 900.0, 560.0
Record = Mapping[str, Any]
ROW: Final = 24.0
FLOOR: Final = 1e-4
LINE: Final = 15.0


def write(document: Record, path: str) -> None:
    """The figure as a file, PNG or SVG by its suffix. Raises UserError."""
    with drawing("front"):
        saving.write(draw(document).figure, path)


def draw(document: Record) -> Canvas:
    """Two objectives: a plane; one: a row a setting. Only settings that have a value."""
    looks = styles({**s, "predictions": document["predictions"]} for s in document["settings"])
    shown = [s for s in document["settings"] if None not in s["values"] and not s["unfinished"]]
    return (_plane if len(document["objectives"]) == 2 else _rows)(document, shown, looks)


def _plane(document: Record, shown: list[Record], looks: dict[str, Style]) -> Canvas:
    canvas = Canvas(WIDTH, HEIGHT)
    edge = sorted((s for s in shown if s["on_front"]), key=lambda s: float(s["values"][0]))
    right = WIDTH - label_width([clean(s["label"], 48) for s in edge]) - 40
    axes = canvas.axes(70, 16, right, HEIGHT - 50)
    for setting in shown:
        look = {**looks[setting["label"]].drawn(), "linewidth": 0, "alpha": 1.0 if setting["on_front"] else 0.45}
        axes.plot(*([value] for value in setting["values"]), **look)
    axes.plot(*zip(*(s["values"] for s in edge), strict=True), color=INK, linewidth=1, linestyle=(0, (2, 2)))
    if document["best"] is not None:
        x, y = document["best"]["values"]
        axes.plot([x], [y], "o", markersize=14, markerfacecolor="none", color=INK, markeredgewidth=1.4)
    for index, axis in enumerate((axes.xaxis, axes.yaxis)):
        _scale(axis, document["objectives"][index], [s["values"][index] for s in shown])
    _names(axes, edge, looks)
    return canvas


def _scale(axis: Any, objective: Record, values: list[float]) -> None:
    """Name the axis. Times go on a log scale; others from their own range."""
    unit = f" ({objective['unit']})" if objective["unit"] else ""
    axis.set_label_text(f"{objective['name']}{unit}, {objective['better']} is better")
    if objective["unit"] == "s" and values:
        log_axis(axis, values, FLOOR)


def _names(axes: Any, edge: list[Record], looks: dict[str, Style]) -> None:
    """The front's names beside the plane, joined to their points by thin lines."""
    box = axes.get_window_extent()
    to_axes = axes.transData + axes.transAxes.inverted()
    points = [to_axes.transform(s["values"]) for s in edge]
    places = spread([box.height * p[1] for p in points], LINE, 4, box.height)
    for setting, point, place in zip(edge, points, places, strict=True):
        x, y = 1 + 16 / box.width, place / box.height
        style = looks[setting["label"]]
        axes.plot(
            [point[0], x], [point[1], y], color=style.color, linewidth=0.7, transform=axes.transAxes, clip_on=False
        )
        axes.text(x + 5 / box.width, y, clean(setting["label"], 48), transform=axes.transAxes, va="center_baseline")


def _rows(document: Record, shown: list[Record], looks: dict[str, Style]) -> Canvas:
    height = 30 + ROW * len(shown) + 50
    canvas = Canvas(WIDTH, height)
    axes = canvas.axes(label_width([clean(s["label"], 48) for s in shown]) + 20, 20, WIDTH - 20, height - 50)
    for place, setting in enumerate(shown):
        span = setting["intervals"][0] or []
        axes.plot(
            [max(v, FLOOR) for v in span], [place] * len(span), color=looks[setting["label"]].color, linewidth=1.4
        )
        axes.plot([setting["values"][0]], [place], **{**looks[setting["label"]].drawn(), "linewidth": 0})
    axes.set_yticks(range(len(shown)), [clean(s["label"], 48) for s in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    _scale(axes.xaxis, document["objectives"][0], [s["values"][0] for s in shown])
    return canvas
