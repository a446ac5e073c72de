"""The paper's figures and ours, each from the document's rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ...style import Style
from ...svg import Canvas, drawing, render
from ...values import plain
from ..dots import Dot, draw_dots
from ..panels import Figure, Line, Panel, draw
from ..study import Study
from .names import FIGURE, MIXES, curve, label, policies, scaled, style

__all__ = ["figures"]

SHARES: Final = {"attainment": "SLO attainment (%)", "tdg_ratio": "TDG_Ratio (%)"}
CLASSES: Final = {"high_attainment": "high class", "low_attainment": "low class"}
REGIMES: Final = {
    "all_fit_steps_share": ("all fit", Style("#0072B2", "o")),
    "deadline_steps_share": ("by deadline", Style("#009E73", "^")),
    "deadline_and_density_steps_share": ("by both", Style("#E69F00", "s")),
    "density_steps_share": ("by density", Style("#D55E00", "D")),
    "unbounded_steps_share": ("no budget binds", Style("#808080", "v")),
}
RANKS: Final = {
    "urgent_share": ("urgent", Style("#D55E00", "D")),
    "hopeless_share": ("hopeless", Style("#808080", "v")),
}


def figures(study: Study) -> list[Figure]:
    """Every figure there are rows for. Raises UserError if matplotlib is not installed."""
    models = dict.fromkeys(at["model"] for at in study.places("fig12"))
    made = [
        *(_main(study, model) for model in models),
        _classes(study),
        _fixed(study),
        _budgets(study),
        _regimes(study),
        _over(study, "ablation", "Ablations against load", "load", "Azure, Qwen2-7B"),
        _sensitivity(study),
        _over(study, "weights", "The high class's weight", "weight", "Azure, Qwen2-7B, load 1.0", tuple(CLASSES)),
        _over(study, "slo", "SLOs scaled", "scale", "Azure, Qwen2-7B, load 0.85; both SLOs times this", log=True),
        _noise(study),
    ]
    return [figure for figure in made if figure is not None]


def _drawn(name: str, title: str, panels: Sequence[Panel], rest: str, columns: int = 2) -> Figure | None:
    panels = [panel for panel in panels if panel.drawn]
    if not panels:
        return None
    with drawing(name):
        return _figure(name, title, draw(panels, columns), rest)


def _figure(name: str, title: str, canvas: Canvas, rest: str) -> Figure:
    return Figure(name, title, render(canvas, name, title), f"{title}: {rest}.", canvas)


def _seeds(study: Study) -> str:
    return f"means over {plain(study.document['settings']['seeds'])} seeds"


def _lines(
    study: Study, experiment: str, metric: str, axis: str, names: Sequence[str] = (), **fixed: Any
) -> list[Line]:
    chosen = names or policies(study, experiment)
    curves = {name: curve(study, experiment, name, metric, axis, **fixed) for name in chosen}
    return [Line(label(n), style(n, i), c) for i, (n, c) in enumerate(curves.items()) if c]


def _main(study: Study, model: str) -> Figure | None:
    """Fig. 12: attainment and token gain against load, a row a workload."""
    panels = [
        Panel(
            f"{MIXES[mix]}: {name}", "load", "%", _lines(study, "fig12", metric, "load", FIGURE, model=model, mix=mix),
            bands=False,
        )
        for mix in MIXES
        for metric, name in SHARES.items()
    ]  # fmt: skip
    name = f"main-{model}"
    return _drawn(
        name, f"Attainment and token gain against load, {model}", panels, f"{_seeds(study)}; dashed: told lengths"
    )


def _classes(study: Study) -> Figure | None:
    """Fig. 3: by class."""
    panels = [
        Panel(f"SLO attainment, {name}", "load", "%", _lines(study, "fig3", metric, "load"))
        for metric, name in CLASSES.items()
    ]
    return _drawn("classes", "Attainment by class", panels, f"Azure, Qwen2-7B; {_seeds(study)}")


def _fixed(study: Study) -> Figure | None:
    """Figs. 4 and 5."""
    panels = [
        Panel(MIXES[mix], "load", "SLO attainment (%)", _lines(study, "fig45", "attainment", "load", mix=mix))
        for mix in dict.fromkeys(at["mix"] for at in study.places("fig45"))
    ]
    rest = f"the profiled token budget, 256 sequences, Qwen2-7B; {_seeds(study)}"
    return _drawn("fixed", "EDF, SJF and FCFS at fixed batch capacity", panels, rest)


def _budgets(study: Study) -> Figure | None:
    """Fig. 8."""
    panels = [
        Panel(
            f"load {load:g}", "token budget", "SLO attainment (%)",
            _lines(study, "fig8", "attainment", "token_budget", load=load), log_x=True,
        )
        for load in dict.fromkeys(at["load"] for at in study.places("fig8"))
    ]  # fmt: skip
    loose = study.document["settings"]["loose_ttft_slo_s"]
    return _drawn(
        "budgets", "Token budget", panels, f"Azure, Qwen2-7B, TTFT SLO {loose:g} s, 256 sequences; {_seeds(study)}"
    )


def _regimes(study: Study) -> Figure | None:
    """Whose order decides, and who is urgent."""
    panels = []
    for title, ylabel, wanted in (
        ("What decides who is served", "steps (%)", REGIMES),
        ("What requests are ranked as", "requests in steps (%)", RANKS),
    ):
        lines = [
            Line(name, look, c)
            for metric, (name, look) in wanted.items()
            if (c := curve(study, "regimes", "tailrace", metric, "load"))
        ]
        panels.append(Panel(title, "load", ylabel, lines, bands=False))
    return _drawn("regimes", "The sliding boundary", panels, f"SlideBatching, ours; Azure, Qwen2-7B; {_seeds(study)}")


def _over(
    study: Study,
    experiment: str,
    title: str,
    axis: str,
    what: str,
    metrics: Sequence[str] = tuple(SHARES),
    log: bool = False,
) -> Figure | None:
    names: Mapping[str, str] = {**SHARES, **{m: f"SLO attainment, {name}" for m, name in CLASSES.items()}}
    panels = [
        Panel(names[metric], axis, "%", _lines(study, experiment, metric, axis), log_x=log, bands=False)
        for metric in metrics
    ]
    return _drawn(experiment, title, panels, f"{what}; {_seeds(study)}")


def _noise(study: Study) -> Figure | None:
    panels = [
        Panel(
            f"load {load:g}", "CV of a step's time", "SLO attainment (%)",
            _lines(study, "noise", "attainment", "cv", FIGURE, load=load), bands=False,
        )
        for load in dict.fromkeys(at["load"] for at in study.places("noise"))
    ]  # fmt: skip
    return _drawn("noise", "Steps that take longer or shorter than told", panels, f"Azure, Qwen2-7B; {_seeds(study)}")


def _sensitivity(study: Study) -> Figure | None:
    dots = list(_dots(study, 1.0))
    if not dots:
        return None
    with drawing("sensitivity"):
        canvas = draw_dots(dots, "SLO attainment (%)")
        rest = f"one setting changed at a time, load 1.0, Azure, Qwen2-7B; {_seeds(study)}"
        return _figure("sensitivity", "Sensitivity of attainment", canvas, rest)


def _dots(study: Study, load: float) -> Iterator[Dot]:
    for at in study.places("sensitivity"):
        value = study.value("sensitivity", "tailrace", "attainment", at)
        if value is not None and at["load"] == load:
            yield Dot(str(at["varied"]), str(at["value"]), scaled(value, 100.0), bool(at["default"]))
