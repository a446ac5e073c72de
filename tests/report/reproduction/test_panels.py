"""Panels of curves: what is drawn of what is known."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.report.reproduction.panels import Level, Line, Panel, draw
from tailrace.report.reproduction.study import Value
from tailrace.report.style import style_of
from tailrace.report.svg import drawing

FCFS, QBA = style_of("fcfs"), style_of("qba")


def axes_of(*panels: Panel, **options: Any) -> list[Any]:
    """The axes of the panels; the last is the key."""
    with drawing("test"):
        return list(draw(panels, **options).figure.axes)


def panel(points: dict[float, Value], **changes: Any) -> Panel:
    return Panel("title", "x", "y", [Line("QBA", QBA, points, changes.pop("formula", False))], **changes)


def diamonds(axes: Any) -> list[tuple[float, float]]:
    return [(x, y) for line in axes.lines if line.get_marker() == "D" for x, y in zip(*line.get_data(), strict=True)]


def texts(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_published_points_are_drawn_where_they_are_given_and_nowhere_else() -> None:
    axes, key = axes_of(panel({0.0: Value(1.0, None, 1.2), 0.1: Value(2.0), 0.2: Value(None, None, 3.0)}))
    assert diamonds(axes) == [(0.0, 1.2), (0.2, 3.0)]
    assert "printed in the paper" in texts(key)
    axes, key = axes_of(panel({0.0: Value(1.0), 0.1: Value(2.0)}))
    assert not diamonds(axes)
    assert texts(key) == ["QBA"]


def test_a_band_covers_the_intervals() -> None:
    axes, key = axes_of(panel({0.0: Value(1.0, (0.5, 1.5)), 1.0: Value(2.0, (1.5, 2.5))}))
    (band,) = axes.collections
    corners = {tuple(map(float, corner)) for corner in band.get_paths()[0].vertices}
    assert corners >= {(0.0, 0.5), (0.0, 1.5), (1.0, 1.5), (1.0, 2.5)}
    assert "95 % interval" in texts(key)


def test_an_enormous_interval_does_not_flatten_the_curves() -> None:
    axes, _ = axes_of(panel({0.0: Value(1.0, (-99.0, 101.0)), 1.0: Value(2.0, (-50.0, 54.0))}))
    assert axes.get_ylim()[1] < 4


@pytest.mark.parametrize(("top", "scale"), [(20.0, "linear"), (40.0, "log")])
def test_values_that_span_decades_get_a_log_axis(top: float, scale: str) -> None:
    axes, _ = axes_of(panel({0.0: Value(1.0, (-0.1, 2.0)), 1.0: Value(top)}))
    assert axes.get_yscale() == scale


def test_a_zero_keeps_the_axis_linear() -> None:
    axes, _ = axes_of(panel({0.0: Value(0.0), 1.0: Value(100.0)}))
    assert axes.get_yscale() == "linear"
    assert axes.get_ylim()[0] == 0


def test_places_without_a_value_are_hatched_and_named() -> None:
    points = {float(x): Value(1.0 if x < 3 else None) for x in range(6)}
    axes, key = axes_of(panel(points, void="no value", formula=True))
    assert texts(axes) == ["no value"]
    (area,) = axes.patches
    assert area.get_extents().transformed(axes.transData.inverted()).x0 == pytest.approx(2.5)
    assert "formula" in texts(key)
    axes, _ = axes_of(panel(points, void="no value", void_from=2.8))
    assert axes.patches[0].get_extents().transformed(axes.transData.inverted()).x0 == pytest.approx(2.8)
    axes, _ = axes_of(panel({0.0: Value(1.0), 1.0: Value(1.0)}, void="no value"))
    assert not texts(axes)


def test_levels_are_dashed_and_in_the_key() -> None:
    levels = [Level("FCFS", FCFS, Value(3.0)), Level("QBA", QBA, None)]
    axes, key = axes_of(panel({0.0: Value(1.0), 1.0: Value(2.0)}, levels=levels))
    assert [line.get_ydata()[0] for line in axes.lines if line.is_dashed()] == [3.0]
    assert axes.get_ylim()[1] > 3
    assert texts(key)[0] == "FCFS"


def test_panels_of_a_row_can_share_their_axis() -> None:
    small, large = panel({0.0: Value(1.0), 1.0: Value(2.0)}), panel({0.0: Value(5.0), 1.0: Value(9.0)})
    apart = axes_of(small, large, columns=2)
    together = axes_of(small, large, columns=2, share_rows=True)
    assert apart[0].get_ylim() != apart[1].get_ylim()
    assert together[0].get_ylim() == together[1].get_ylim()
    assert [axes.get_title(loc="left") for axes in apart[:2]] == ["(a) title", "(b) title"]


def test_a_single_point_is_drawn_with_its_interval() -> None:
    axes, _ = axes_of(panel({5.0: Value(1.0, (0.5, 1.5))}))
    assert any(list(line.get_ydata()) == [0.5, 1.5] for line in axes.lines)
    assert axes.get_xlim() == (4.5, 5.5)
