"""The article's figures, each from the document's rows."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ...style import Style
from ...svg import Canvas, drawing, render
from ...values import plain
from ..dots import Dot, draw_dots
from ..panels import Figure, Level, Line, Panel, draw
from ..study import Curve, Study, Value
from .names import POLICIES, label, style, values

__all__ = ["figures"]

PERCENTILES: Final = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
LEVELS: Final = (
    *(round(0.05 * i, 2) for i in range(1, 19)),
    *(round(0.9 + 0.01 * i, 2) for i in range(1, 10)),
    *(0.995, 0.999),
)
TIMES: Final = {"ttft": "TTFT", "e2e": "E2E (TTLT)", "tbt": "TBT"}
MIX_STYLES: Final = {
    "reasoning": ("light tail: reasoning", Style("#0072B2", "o")),
    "heavy": ("heavy tail: R1 service", Style("#D55E00", "s")),
    "mix-2": ("mix-2", Style("#009E73", "D")),
}


def figures(study: Study) -> list[Figure]:
    """Every figure there are rows for. Raises UserError if matplotlib is not installed."""
    made = [
        _lengths(study),
        _over(study, "loads", "Latency against load", "Llama-3-8B, mix-2", ("ttft_p95", "e2e_mean", "e2e_p99")),
        _percentiles(study),
        _over(study, "ablation", "Ablation", "CodeLlama-34B, mix-2", ("e2e_mean", "e2e_p90", "e2e_p99")),
        _slo(study),
        _path(study),
        _staircase(study),
        _sensitivity(study),
        _noise(study),
    ]
    return [figure for figure in made if figure is not None]


def _figure(name: str, title: str, canvas: Canvas, rest: str) -> Figure:
    return Figure(name, title, render(canvas, name, title), f"{title}: {rest}.", canvas)


def _drawn(name: str, title: str, panels: Sequence[Panel], rest: str, columns: int = 3) -> Figure | None:
    panels = [panel for panel in panels if panel.drawn]
    if not panels:
        return None
    with drawing(name):
        return _figure(name, title, draw(panels, columns), rest)


def _seeds(study: Study) -> str:
    return f"means over {plain(study.document['settings']['seeds'])} seeds"


def _over(study: Study, experiment: str, title: str, what: str, metrics: Sequence[str]) -> Figure | None:
    """Times over ρ."""
    panels = []
    for metric in metrics:
        curves = {p: study.curve(experiment, p, f"{metric}_s", "rho") for p in POLICIES}
        lines = [Line(label(p), style(p), curve) for p, curve in curves.items() if curve]
        of, _, at = metric.partition("_")
        panels.append(Panel(f"{'Mean' if at == 'mean' else at.upper()} {TIMES[of]}", "load ρ", "seconds", lines))
    return _drawn(experiment, title, panels, f"{what}; {_seeds(study)}")


def _percentiles(study: Study) -> Figure | None:
    """§6.2's figure: times over the percentile, on a probability scale."""
    places = study.places("percentiles")
    if not places:
        return None
    ticks = {_place(q): f"{100 * q:g}" for q in PERCENTILES.values()}
    panels = []
    for of, name in TIMES.items():
        lines = []
        for policy in POLICIES:
            found = {
                _place(q): study.value("percentiles", policy, f"{of}_{at}_s", places[0])
                for at, q in PERCENTILES.items()
            }
            curve = {x: v for x, v in found.items() if v is not None and v.measured}
            if curve:
                lines.append(Line(label(policy), style(policy), curve))
        panels.append(Panel(name, "percentile", "seconds", lines, ticks=ticks, bands=False))
    return _drawn(
        "percentiles", "Times by percentile", panels, f"{places[0]['model']}, reasoning, ρ = 0.99; {_seeds(study)}"
    )


def _place(q: float) -> float:
    return -math.log10(1 - q)


def _level(q: float) -> str:
    return "p" + f"{100 * q:g}".replace(".", "")


SLO_SHOWN: Final = (
    "srpt_decode_first",
    "srpt_swap",
    "sarathi",
    "sjf",
    "las",
    "dist_boost",
    "uniboost_low",
    "uniboost_high",
)


def _slo(study: Study) -> Figure | None:
    """§6.4's figure: attainment over the SLO, from the quantiles."""
    panels = []
    for at in study.places("slo"):
        for of in ("e2e", "ttft"):
            lines = []
            for policy in SLO_SHOWN:
                curve: dict[float, Value] = {}
                for q in LEVELS:
                    value = study.value("slo", policy, f"{of}_{_level(q)}_s", at)
                    if value is not None and value.measured:
                        curve[value.measured] = Value(100 * q)
                if curve:
                    lines.append(Line(label(policy), dataclasses.replace(style(policy), marker=""), curve))
            panels.append(Panel(f"{TIMES[of]}, {at['mix']}", "SLO (s)", "attainment (%)", lines, log_x=True))
    return _drawn("slo", "Attainment over the SLO", panels, f"ρ = 0.97; mean quantiles; {_seeds(study)}", 2)


def _lengths(study: Study) -> Figure | None:
    """§2.1's figure: light and heavy tails side by side."""
    panels = []
    for kind in ("prompt", "output"):
        lines = []
        for mix, (name, look) in MIX_STYLES.items():
            curve: dict[float, Value] = {}
            for at in study.places("lengths"):
                if at["mix"] == mix and at["quantile"] != "mean":
                    value = study.value("lengths", kind, "tokens", at)
                    if value is not None and value.measured:
                        curve[value.measured] = Value(100 * float(at["quantile"]))
            if curve:
                lines.append(Line(name, look, dict(sorted(curve.items()))))
        panels.append(Panel(f"{kind.capitalize()} lengths", "tokens", "share of requests (%)", lines, log_x=True))
    return _drawn("lengths", "Lengths", panels, "cumulative shares of 20,000 drawn requests, up to P99.9", 2)


def _path(study: Study) -> Figure | None:
    """§5.4's figure: arrivals, and what γ does."""
    paths = study.document.get("paths") or []
    if not paths:
        return None
    path = paths[0]
    ours = style("uniboost_high")
    peaks = {i * path["bin_s"]: Value(float(n)) for i, n in enumerate(path["most_arrivals_in_a_second"])}
    gammas = {t: Value(g) for t, g in zip(path["time_s"], path["gamma_per_s"], strict=True)}
    bare = Style("#808080", "", 1.2)
    panels = [
        Panel("Most arrivals in a second, of ten", "time (s)", "requests/s", [Line("arrivals", bare, peaks)]),
        Panel("γ after each fit", "time (s)", "γ (1/s)", [Line("γ", Style(ours.color, "", 1.8), gammas)]),
    ]
    return _drawn("gamma", "γ under spikes", panels, f"Azure's lengths; {path['policy']}; one seed", 2)


def _staircase(study: Study) -> Figure | None:
    """§5.3's figure."""
    lines = []
    gammas = sorted({at["gamma_per_s"] for at in study.places("staircase")})
    for gamma, color in zip(gammas, ("#0072B2", "#D55E00"), strict=False):
        for which, name, formula in (("boost", "continuous", True), ("memguard", "MemGuard", False)):
            curve = {
                float(at["tokens"]): v
                for at in study.places("staircase")
                if at["gamma_per_s"] == gamma and (v := study.value("staircase", which, "boost_s", at)) is not None
            }
            lines.append(Line(f"{name}, γ = {gamma:g}/s", Style(color, "" if formula else "."), curve, formula))
    if not lines:
        return None
    panel = Panel("Boost over effective work", "tokens", "boost (s)", [_steps(line) for line in lines], log_x=True)
    return _drawn("staircase", "MemGuard's staircase", [panel], "k = 256; dashed: the boost without milestones", 1)


def _steps(line: Line) -> Line:
    """Flat up to the next milestone."""
    if line.formula:
        return line
    points = dict(line.points)
    xs = sorted(points)
    for before, after in itertools.pairwise(xs):
        if points[before].measured != points[after].measured:
            points[after * (1 - 1e-9)] = points[before]
    return Line(line.label, line.style, dict(sorted(points.items())))


def _sensitivity(study: Study) -> Figure | None:
    dots = list(_dots(study, "e2e_p99_s"))
    if not dots:
        return None
    with drawing("sensitivity"):
        canvas = draw_dots(dots, "P99 E2E (s)")
        return _figure(
            "sensitivity", "Sensitivity of P99 E2E", canvas, f"one setting changed at a time; {_seeds(study)}"
        )


def _dots(study: Study, metric: str) -> Iterator[Dot]:
    for at in study.places("sensitivity"):
        value = study.value("sensitivity", "uniboost", metric, at)
        if value is not None:
            yield Dot(str(at["varied"]), str(at["value"]), value, bool(at["default"]))


def _noise(study: Study) -> Figure | None:
    """§2.2: predictions with errors."""
    panels = []
    for metric, title in (("e2e_mean_s", "Mean E2E"), ("e2e_p99_s", "P99 E2E"), ("ttft_mean_s", "Mean TTFT")):
        curves: Mapping[str, Curve] = {p: study.curve("noise", p, metric, "cv") for p in POLICIES}
        lines = [Line(label(p), style(p), c) for p, c in curves.items() if len(c) > 1]
        levels = [Level(label(p), style(p), v) for p, v in _blind(study, metric).items()]
        panels.append(Panel(title, "CV of the prediction's error", "seconds", lines, levels))
    return _drawn(
        "noise", "Predictions with errors", panels, f"mix-2, ρ = 0.97; {_seeds(study)}; UniBoost is told nothing"
    )


def _blind(study: Study, metric: str) -> dict[str, Any]:
    return {p: v for p, v in values(study, "noise", metric, {"cv": 0.0}).items() if p.startswith("uniboost")}
