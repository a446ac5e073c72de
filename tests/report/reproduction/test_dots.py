"""The dot plot of choices."""

from __future__ import annotations

from typing import Any

from tailrace.report.reproduction.dots import Dot, draw_dots
from tailrace.report.reproduction.study import Value
from tailrace.report.svg import drawing

DOTS = [
    Dot("memory", "counted", Value(0.05, (0.04, 0.06)), True),
    Dot("memory", "not counted", Value(0.3), False),
    Dot("memory", "unknown", Value(None), False),
    Dot("history", "200", Value(0.05), True),
]


def test_the_default_is_filled_and_what_has_no_value_is_left_out() -> None:
    with drawing("test"):
        canvas = draw_dots(DOTS, "score")
    axes: Any
    axes, key = canvas.figure.axes
    marks = [line for line in axes.lines if line.get_marker() == "o"]
    assert [line.get_xdata()[0] for line in marks] == [0.05, 0.3, 0.05]
    assert [line.get_markerfacecolor() == "none" for line in marks] == [False, True, False]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["counted", "not counted", "200"]
    assert [tuple(line.get_xdata()) for line in axes.lines if line.get_marker() != "o"] == [(0.04, 0.06)]
    assert {text.get_text() for text in canvas.figure.texts} == {"memory", "history"}
    assert [text.get_text() for text in key.texts] == ["default", "alternative", "95 % interval"]


def test_without_intervals_the_key_has_none() -> None:
    with drawing("test"):
        key = draw_dots(DOTS[1:], "score").figure.axes[1]
    assert [text.get_text() for text in key.texts] == ["default", "alternative"]
