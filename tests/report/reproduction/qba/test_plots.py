"""The study's figures: which curves, which points."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from tailrace.report.reproduction.panels import Figure
from tailrace.report.reproduction.qba.plots import figures
from tailrace.report.reproduction.study import Study
from tailrace.report.style import style_of

from ..documents import PRINTED, document


@functools.cache
def all_figures(profiles: tuple[str, ...] = ("paper",), seeds: int = 100) -> dict[str, Figure]:
    return {f.name: f for f in figures(Study(document(profiles, seeds, seeds > 1)))}


def drawn(name: str, **options: Any) -> Figure:
    return all_figures(**options)[name]


def panels(figure: Figure) -> list[Any]:
    """The figure's axes but the last, which is its key."""
    return list(figure.canvas.figure.axes[:-1])


def diamonds(axes: Any) -> set[tuple[float, float]]:
    found = [line.get_data() for line in axes.lines if line.get_marker() == "D"]
    return {(round(float(x), 6), float(y)) for xs, ys in found for x, y in zip(xs, ys, strict=True)}


@pytest.mark.parametrize("name", ["fig4", "fig5"])
def test_every_published_number_is_a_point(name: str) -> None:
    for place, axes in enumerate(panels(drawn(name))):
        wanted = {
            (eps, values[place])
            for (experiment, eps, _), values in PRINTED.items()
            if experiment == name
            if values[place]
        }
        assert wanted
        assert diamonds(axes) == wanted


def test_each_policy_has_its_own_colour_and_no_curve_but_the_formula_is_dashed() -> None:
    formula, mean, tail = panels(drawn("fig2"))
    for axes in (formula, mean, tail):
        curves = [line for line in axes.lines if len(line.get_xdata()) > 2]
        assert {line.get_color() for line in curves} == {style_of(p).color for p in ("fcfs", "psf", "aa", "qba")}
        assert {line.is_dashed() for line in curves} == {axes is formula}
    assert [text.get_text() for text in formula.texts] == ["ρ ≥ 1:\nno value"]
    assert max(float(x) for line in formula.lines for x in line.get_xdata()) == 34
    assert max(float(x) for line in mean.lines for x in line.get_xdata()) == 40


def test_the_run_at_the_defaults_takes_its_place_on_the_curve_over_k() -> None:
    mean, _, gamma = panels(drawn("fig3"))
    (curve,) = [line for line in mean.lines if len(line.get_xdata()) > 2]
    assert list(curve.get_xdata()) == [2, 4, 5, 6, 8, 10, 12, 14]
    assert sorted(line.get_ydata()[0] for line in mean.lines if line.is_dashed()) == [0.8, 2.0, 2.1]
    assert sorted(line.get_ydata()[0] for line in gamma.lines if line.is_dashed()) == [4.2, 9.8]


def test_profiles_are_columns_on_shared_axes() -> None:
    figure = drawn("profiles", profiles=("paper", "enforced", "all_history"))
    axes = panels(figure)
    assert [a.get_title(loc="left") for a in axes[:3]] == [
        "(a) paper: P99 wait over k",
        "(b) enforced: P99 wait over k",
        "(c) all_history: P99 wait over k",
    ]
    assert len({a.get_ylim() for a in axes[:3]}) == len({a.get_ylim() for a in axes[3:]}) == 1
    assert "profiles" not in all_figures()


def test_captions_say_how_many_seeds() -> None:
    assert drawn("fig2").caption.endswith("means over 100 seeds.")
    assert drawn("fig2", seeds=1).caption.endswith("a single seed.")


def test_choices_of_one_kind_stand_together_however_the_rows_are_ordered() -> None:
    made = document()
    scores = [r for r in made["rows"] if r["metric"] == "mean_abs_log_ratio"]
    made["rows"] = [scores[0], scores[3], scores[1], scores[4], scores[2]]
    figure = next(f for f in figures(Study(made)) if f.name == "choices")
    labels = [label.get_text() for label in panels(figure)[0].get_yticklabels()]
    assert labels == ["live, growth and prompt", "live and prompt", "prompt alone", "last 200", "unbounded"]
    assert len(figure.canvas.figure.texts) == 2
