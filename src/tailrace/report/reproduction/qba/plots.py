"""The paper's figures 2 to 5, and those of what the paper leaves open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...style import style_of
from ...svg import Canvas, drawing, render
from ...values import plain
from ..dots import Dot, draw_dots
from ..panels import Figure, Level, Line, Panel, draw
from ..study import Curve, Study, Value
from .names import DEFAULTS, ERRORS, METRICS, POLICIES, REFERENCE_RPS

__all__ = ["figures"]

RATE = "arrival rate λ (req/s)"
PHI_WIDTH = 480.0


def figures(study: Study) -> list[Figure]:
    """Every figure there are rows for, of the first profile, and one that compares the profiles.

    Raises UserError if matplotlib is not installed.
    """
    made = [
        _curves(study, "fig2", "Waiting time against load", _load(study), "by formula and in the simulator"),
        _phi(study),
        _curves(study, "fig3", "Waiting time of QBA over k and γ", _sweeps(study), _at_reference()),
        *(_curves(study, name, _error_title(name), _errors(study, name), _at_reference()) for name in ERRORS),
        _choices(study),
        _profiles(study),
    ]
    return [figure for figure in made if figure is not None]


def _curves(study: Study, name: str, title: str, panels: Sequence[Panel], what: str) -> Figure | None:
    panels = [panel for panel in panels if panel.drawn]
    if not panels:
        return None
    with drawing(name):
        return _figure(name, title, draw(panels), f"{what}{_seeds(study, name)}")


def _figure(name: str, title: str, canvas: Canvas, rest: str) -> Figure:
    return Figure(name, title, render(canvas, name, title), f"{title}, {rest}.", canvas)


def _at_reference() -> str:
    return f"at {plain(REFERENCE_RPS)} req/s"


def _error_title(name: str) -> str:
    _, symbol, words = ERRORS[name]
    return f"Waiting time against {words.lower()} errors ({symbol})"


def _seeds(study: Study, experiment: str) -> str:
    # A formula has no seeds.
    seeds = [v.seeds for key, v in study.values.items() if key[:2] == (study.main, experiment) and v.seeds] or [1]
    return f"; {_count(min(seeds), max(seeds))}"


def _count(low: int, high: int) -> str:
    count = f"{low}" if low == high else f"{low} to {high}"
    return f"means over {count} seeds" if high > 1 else "a single seed"


def _lines(
    study: Study, experiment: str, metric: str, axis: str, policies: Sequence[str] = tuple(POLICIES)
) -> list[Line]:
    found = [
        Line(POLICIES[p], style_of(p), study.curve(experiment, p, metric, axis), metric.startswith("formula"))
        for p in policies
    ]
    return [line for line in found if line.points]


def _load(study: Study) -> list[Panel]:
    wanted = {
        "formula_wait_mean_s": "Formula, mean wait",
        "wait_mean_s": "Simulator, mean wait",
        "wait_p99_s": "Simulator, P99 wait",
    }
    record = (study.document.get("calibration") or {}).get(study.main)
    end = record["servers"] / record["mean_service_s"] if record else None
    return [
        Panel(title, RATE, "wait (s)", _lines(study, "fig2", m, "rate_rps"), void="ρ ≥ 1:\nno value", void_from=end)
        for m, title in wanted.items()
    ]


def _sweeps(study: Study, profile: str | None = None) -> list[Panel]:
    """Mean and P99 over k, P99 over γ; the other policies at their defaults as levels."""
    out = []
    for metric, axis, varied in (
        ("wait_mean_s", "k", ["qba"]),
        ("wait_p99_s", "k", ["qba"]),
        ("wait_p99_s", "aging_quantile", ["aa", "qba"]),
    ):
        lines = [
            Line(POLICIES[p], style_of(p), with_default(study, p, metric, axis, profile))
            for p in varied
            if study.curve("fig3", p, metric, axis, profile)
        ]
        levels = [
            Level(name, style_of(p), study.value("fig3", p, metric, {}, profile))
            for p, name in POLICIES.items()
            if p not in varied
        ]
        what = METRICS[metric][0].upper() + METRICS[metric][1:]
        symbol = {"k": "quota k", "aging_quantile": "aging quantile γ"}[axis]
        out.append(Panel(f"{what} over {symbol[-1]}", symbol, "wait (s)", lines, levels))
    return out


def with_default(study: Study, policy: str, metric: str, axis: str, profile: str | None = None) -> Curve:
    """The curve over k or γ with the run at the defaults put in its place, unless that was swept too."""
    curve = dict(study.curve("fig3", policy, metric, axis, profile))
    default = study.value("fig3", policy, metric, {}, profile)
    if default is not None and curve:
        curve.setdefault(DEFAULTS[axis], default)
    return dict(sorted(curve.items()))


def _errors(study: Study, experiment: str) -> list[Panel]:
    axis, symbol, _ = ERRORS[experiment]
    told = {"eps_sl": "short requests predicted long", "eps_ls": "long requests predicted short"}[axis]
    return [
        Panel(title, f"{told}, {symbol}", "wait (s)", _lines(study, experiment, metric, axis))
        for metric, title in (
            ("wait_mean_s", "Mean wait"),
            ("short_wait_p99_s", "True-short P99 wait"),
            ("long_wait_p99_s", "True-long P99 wait"),
        )
    ]


def _phi(study: Study) -> Figure | None:
    found = (study.document.get("calibration") or {}).get(study.main, {}).get("phi") or {}
    lines = [
        Line(name, style_of(p), {point["rho"]: Value(point["phi"]) for point in found[p]})
        for p, name in POLICIES.items()
        if found.get(p)
    ]
    if not lines:
        return None
    title = "Promoted share of predicted-long requests over load"
    rest = "measured in the simulator: under AA those aged when they start, under QBA those promoted"
    with drawing("phi"):
        panel = Panel("Promoted share φ", "load ρ = λ E[S] / n", "share of predicted-long requests", lines)
        return _figure("phi", title, draw([panel], columns=1, across=PHI_WIDTH), rest)


def choices(study: Study) -> Iterator[tuple[Mapping[str, object], Value]]:
    """The choices that have a score: where, and the score."""
    for at in study.places("choices"):
        value = study.value("choices", "", "mean_abs_log_ratio", at)
        if value is not None and value.measured is not None:
            yield at, value


def _choices(study: Study) -> Figure | None:
    dots = [Dot(str(at["choice"]), str(at["value"]), value, bool(at["default"])) for at, value in choices(study)]
    if not dots:
        return None
    # A choice's values may be apart in the document.
    order = list(dict.fromkeys(dot.group for dot in dots))
    dots.sort(key=lambda dot: order.index(dot.group))
    title = "Distance from the paper by choice"
    rest = "mean absolute log ratio to the printed numbers; one choice is changed at a time"
    with drawing("choices"):
        return _figure("choices", title, draw_dots(dots, "mean |log ratio| to the paper (0: equal)"), rest)


def _profiles(study: Study) -> Figure | None:
    """P99 over k in the upper row and over γ in the lower, a column a profile."""
    columns = [p for p in study.profiles if all(panel.drawn for panel in _sweeps(study, p)[1:])]
    if len(columns) < 2:
        return None
    rows = zip(*(_titled(_sweeps(study, profile)[1:], profile) for profile in columns), strict=True)
    title = "P99 wait over k and γ by profile"
    with drawing("profiles"):
        canvas = draw([panel for row in rows for panel in row], columns=len(columns), share_rows=True)
        return _figure("profiles", title, canvas, f"{_at_reference()}{_seeds(study, 'fig3')}")


def _titled(panels: Sequence[Panel], profile: str) -> list[Panel]:
    return [
        Panel(f"{profile}: {panel.title}", panel.xlabel, panel.ylabel, panel.lines, panel.levels) for panel in panels
    ]
