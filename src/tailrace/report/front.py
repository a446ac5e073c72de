"""The figure of a search: every setting in the plane of two objectives, and the Pareto front."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from ..errors import UserError
from ..files import write_atomically
from .marks import label_width, log_axis, spread
from .style import Style, styles
from .svg import INK, Canvas, clean, drawing

if TYPE_CHECKING:
    from ..studies.tune import Setting, Tuned

__all__ = ["draw", "kind_of", "write"]

WIDTH, HEIGHT = 900.0, 560.0
ROW: Final = 24.0
FLOOR: Final = 1e-4
LINE: Final = 15.0


def kind_of(path: str) -> str:
    """``png`` or ``svg``, by the suffix. Raises UserError for another."""
    kind = path.rpartition(".")[2].lower()
    if kind not in ("png", "svg"):
        raise UserError(f"{path}: a figure is written as .png or .svg; end the name with one of them")
    return kind


def write(tuned: Tuned, path: str) -> None:
    """The figure as a file that stands alone, of the kind that its suffix says. Raises UserError."""
    kind = kind_of(path)
    with drawing("front"):
        canvas = draw(tuned)
        metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
        write_atomically(
            path, lambda name: canvas.figure.savefig(name, format=kind, dpi=144, facecolor="white", metadata=metadata)
        )


def draw(tuned: Tuned) -> Canvas:
    """Two objectives: a plane; one: a row a setting. Only settings that have a value."""
    looks = styles([{"label": s.label, **_result(tuned, s)} for s in tuned.settings])
    shown = [s for s in tuned.settings if None not in s.values and not s.unfinished]
    return _plane(tuned, shown, looks) if len(tuned.objectives) == 2 else _rows(tuned, shown, looks)


def _result(tuned: Tuned, setting: Setting) -> dict[str, Any]:
    for result in tuned.document["results"]:
        if result["label"] == setting.label:
            return {"policy": result["policy"], "predictions": result["predictions"]}
    return {"policy": setting.policy}


def _plane(tuned: Tuned, shown: list[Setting], looks: dict[str, Style]) -> Canvas:
    canvas = Canvas(WIDTH, HEIGHT)
    edge = sorted((s for s in shown if s.on_front), key=lambda s: s.values[0] or 0.0)
    right = WIDTH - label_width([clean(s.label, 48) for s in edge]) - 40
    axes = canvas.axes(70, 16, right, HEIGHT - 50)
    for setting in shown:
        look = {**looks[setting.label].drawn(), "linewidth": 0, "alpha": 1.0 if setting.on_front else 0.45}
        axes.plot([setting.values[0]], [setting.values[1]], **look)
    axes.plot([s.values[0] for s in edge], [s.values[1] for s in edge], color=INK, linewidth=1, linestyle=(0, (2, 2)))
    if tuned.best is not None:
        x, y = tuned.best.values
        axes.plot([x], [y], "o", markersize=14, markerfacecolor="none", color=INK, markeredgewidth=1.4)
    for axis, objective, index in ((axes.xaxis, tuned.objectives[0], 0), (axes.yaxis, tuned.objectives[1], 1)):
        _scale(axis, [s.values[index] or 0.0 for s in shown], objective.unit)
    axes.set_xlabel(f"{tuned.objectives[0].words}, {_way(tuned, 0)}")
    axes.set_ylabel(f"{tuned.objectives[1].words}, {_way(tuned, 1)}")
    _names(axes, edge, looks)
    return canvas


def _way(tuned: Tuned, index: int) -> str:
    return "larger is better" if tuned.objectives[index].better > 0 else "smaller is better"


def _scale(axis: Any, values: list[float], unit: str) -> None:
    """Times on a log scale; others from their own range."""
    if unit == "s" and values:
        log_axis(axis, values, FLOOR)


def _names(axes: Any, edge: list[Setting], looks: dict[str, Style]) -> None:
    """The front's names beside the plane, joined to their points by thin lines."""
    box = axes.get_window_extent()
    to_axes = axes.transData + axes.transAxes.inverted()
    points = [to_axes.transform(s.values) for s in edge]
    places = spread([box.height * p[1] for p in points], LINE, 4, box.height)
    for setting, point, place in zip(edge, points, places, strict=True):
        x, y = 1 + 16 / box.width, place / box.height
        style = looks[setting.label]
        axes.plot(
            [point[0], x], [point[1], y], color=style.color, linewidth=0.7, transform=axes.transAxes, clip_on=False
        )
        axes.text(x + 5 / box.width, y, clean(setting.label, 48), transform=axes.transAxes, va="center_baseline")


def _rows(tuned: Tuned, shown: list[Setting], looks: dict[str, Style]) -> Canvas:
    height = 30 + ROW * len(shown) + 50
    canvas = Canvas(WIDTH, height)
    axes = canvas.axes(label_width([clean(s.label, 48) for s in shown]) + 20, 20, WIDTH - 20, height - 50)
    for place, setting in enumerate(shown):
        span = setting.intervals[0] or []
        axes.plot([max(v, FLOOR) for v in span], [place] * len(span), color=looks[setting.label].color, linewidth=1.4)
        axes.plot([setting.values[0]], [place], **{**looks[setting.label].drawn(), "linewidth": 0})
    axes.set_yticks(range(len(shown)), [clean(s.label, 48) for s in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    known = [s.values[0] or 0.0 for s in shown if math.isfinite(s.values[0] or 0.0)]
    _scale(axes.xaxis, known, tuned.objectives[0].unit)
    axes.set_xlabel(f"{tuned.objectives[0].words}, {_way(tuned, 0)}")
    return canvas
