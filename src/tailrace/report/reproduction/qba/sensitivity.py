"""Hyperparameters, prediction errors, the choices the paper leaves open, and the profiles side by side."""

from __future__ import annotations

from collections.abc import Mapping

from ...markup import code, details, escape, paragraph, table
from ...values import MISSING, number, plain
from ..cells import beside, cell, mean_abs_log_ratio, of_paper, ratio
from ..facts import Axis, against, change, crossing, leader, lowest_at, ranked
from ..study import Curve, Study
from .names import ERRORS, METRICS, POLICIES, REFERENCE_RPS, by_policy, printed
from .plots import choices, with_default

__all__ = ["errors", "hyperparameters", "open_choices", "side_by_side"]

AXES = {"k": "k", "aging_quantile": "γ"}
NEGLIGIBLE = 0.005
"""Scores that differ by less do not differ."""
ERROR_METRICS = ("wait_mean_s", "short_wait_p99_s", "long_wait_p99_s")


def hyperparameters(study: Study, image: str) -> str:
    """The paper's section IV-C; empty without its rows."""
    if not study.has("fig3"):
        return ""
    texts = []
    for policy, metric, axis in (
        ("qba", "wait_mean_s", "k"),
        ("qba", "wait_p99_s", "k"),
        ("qba", "wait_p99_s", "aging_quantile"),
        ("aa", "wait_p99_s", "aging_quantile"),
    ):
        curve = with_default(study, policy, metric, axis)
        what = f"{POLICIES[policy]}'s {METRICS[metric]} over {AXES[axis]}"
        texts.append(lowest_at(curve, what, Axis(f"{AXES[axis]} = ")))
    tail = by_policy(study, "fig3", "wait_p99_s", {})
    base = ranked(tail)
    level = f"With the defaults the P99 waits are {base}." if base else ""
    parts = [image, paragraph(*texts[:2]), paragraph(*texts[2:], _flat(study)), level]
    parts.append(details("Every point", "\n\n".join(_sweep_tables(study))))
    return "\n\n".join(["## Hyperparameters", *(part for part in parts if part)])


def _flat(study: Study) -> str:
    """QBA's P99 below γ = 1 against that at 1, where aging is all but off."""
    curve = {x: v.measured for x, v in with_default(study, "qba", "wait_p99_s", "aging_quantile").items()}
    inner = [y for x, y in curve.items() if x < 1 and y]
    last, end = max((x for x in curve if x < 1), default=None), curve.get(1.0)
    if len(inner) < 2 or last is None or not curve[last] or end is None:
        return ""
    return (
        f"Below γ = 1 QBA's P99 wait varies by a factor of {number(max(inner) / min(inner))}; at γ = 1 it is "
        f"{number(end / (curve[last] or 1))} times that at γ = {plain(last)}."
    )


def _sweep_tables(study: Study) -> list[str]:
    tables = []
    for axis, symbol in AXES.items():
        columns = {
            f"{name}, {METRICS[metric]} (s)": with_default(study, policy, metric, axis)
            for policy, name in POLICIES.items()
            for metric in ("wait_mean_s", "wait_p99_s")
        }
        tables.append(_over(symbol, columns))
    return [text for text in tables if text]


def _over(symbol: str, columns: Mapping[str, Curve]) -> str:
    columns = {title: curve for title, curve in columns.items() if curve}
    xs = sorted({x for curve in columns.values() for x in curve})
    rows = [[Axis().at(x), *(cell(curve.get(x)) for curve in columns.values())] for x in xs]
    return table([symbol, *columns], rows, 0) if rows else ""


def errors(study: Study, images: Mapping[str, str]) -> str:
    """The paper's section IV-D; empty without its rows."""
    parts = [
        _error_sweep(study, experiment, images.get(experiment, "")) for experiment in ERRORS if study.has(experiment)
    ]
    return "\n\n".join(["## Prediction errors", *parts]) if parts else ""


def _error_sweep(study: Study, experiment: str, image: str) -> str:
    varied, symbol, words = ERRORS[experiment]
    axis = Axis(f"{symbol} = ", many="error rates")
    curves = {
        metric: {name: c for p, name in POLICIES.items() if (c := study.curve(experiment, p, metric, varied))}
        for metric in ERROR_METRICS
    }
    long = curves["long_wait_p99_s"]
    text = paragraph(
        *(leader(curves[metric], METRICS[metric], axis) for metric in ERROR_METRICS),
        crossing(long, "QBA", "PSF", METRICS["long_wait_p99_s"], axis),
        against(long, "QBA", "PSF", METRICS["long_wait_p99_s"], axis),
    )
    titles = {metric: METRICS[metric][0].upper() + METRICS[metric][1:] for metric in ERROR_METRICS}
    tables = [f"{titles[m]} (s):\n\n{_over(symbol, curves[m])}" for m in ERROR_METRICS if curves[m]]
    beside_paper = _beside_paper(study, experiment)
    parts = [f"### {words} errors", image, text, _changes(curves, axis), beside_paper]
    return "\n\n".join(part for part in [*parts, details("Every error rate", "\n\n".join(tables))] if part)


def _changes(curves: Mapping[str, Mapping[str, Curve]], axis: Axis) -> str:
    """A table of how each metric changes from the lowest error rate to the highest."""
    xs = sorted({x for by_name in curves.values() for curve in by_name.values() for x in curve})
    rows = [
        [name, *(change(curves[metric].get(name, {})) or MISSING for metric in ERROR_METRICS)]
        for name in POLICIES.values()
        if any(change(curves[metric].get(name, {})) for metric in ERROR_METRICS)
    ]
    if not rows:
        return ""
    head = ["policy", *(f"{METRICS[metric]} (s)" for metric in ERROR_METRICS)]
    return f"From {axis.at(xs[0])} to {axis.at(xs[-1])}:\n\n{table(head, rows)}"


def _beside_paper(study: Study, experiment: str) -> str:
    axis, symbol, _ = ERRORS[experiment]
    rows = []
    for at in study.places(experiment):
        for policy, name in POLICIES.items():
            for metric, title in METRICS.items():
                value = study.value(experiment, policy, metric, at)
                if value is not None and value.paper is not None:
                    rows.append([name, plain(at[axis]), title, *beside(value)])
    if not rows:
        return ""
    rows.sort(key=lambda row: list(POLICIES.values()).index(row[0]))
    head = ["policy", symbol, "metric", "measured (s)", "paper (s)", "ratio"]
    return "Where the paper prints a number:\n\n" + table(head, rows, 3)


def open_choices(study: Study, image: str) -> str:
    """What each choice that the paper leaves open does to the distance from the paper."""
    found = list(choices(study))
    if not found:
        return ""
    metrics = {"wait_mean_s": "mean", "short_wait_p99_s": "short P99", "long_wait_p99_s": "long P99"}
    head = ["choice", "value", "default", "mean abs log ratio"]
    head += [f"{POLICIES[p]} {title} (s)" for p in ("psf", "qba") for title in metrics.values()]
    rows = [
        [
            escape(str(at["choice"])),
            escape(str(at["value"])),
            "yes" if at["default"] else "",
            cell(value),
            *(cell(study.value("choices", p, metric, at)) for p in ("psf", "qba") for metric in metrics),
        ]
        for at, value in found
    ]
    seeds = max(value.seeds for _, value in found)
    first = (
        "One choice at a time is changed from the default. The score is the mean absolute log ratio to the printed "
        f"numbers, of means over {plain(seeds)} seeds that are moved to the expected load; the waits are plain means "
        f"with perfect predictions at {plain(REFERENCE_RPS)} req/s. Choices compensate one another: a profile changes "
        "several at once."
    )
    parts = [image, paragraph(first, *_moves(study)), details("Every choice", table(head, rows, 3))]
    return "\n\n".join(["## What each unstated choice does", *(part for part in parts if part)])


def _moves(study: Study) -> list[str]:
    """Which choice moves the score most, and which values do better than the default."""
    scores: dict[str, dict[str, float]] = {}
    default: dict[str, float] = {}
    for at, value in choices(study):
        choice, score = str(at["choice"]), value.measured or 0.0
        scores.setdefault(choice, {})[str(at["value"])] = score
        if at["default"]:
            default[choice] = score
    wide = {choice: max(s.values()) - min(s.values()) for choice, s in scores.items() if len(s) > 1}
    out = []
    if wide:
        choice = max(wide, key=wide.__getitem__)
        low, high = (f(scores[choice], key=scores[choice].__getitem__) for f in (min, max))
        out.append(
            f"The choice that moves it most is {escape(choice)}: from {number(scores[choice][low])} ({escape(low)}) "
            f"to {number(scores[choice][high])} ({escape(high)})."
        )
    better = [
        f"{escape(choice)}: {escape(value)} ({number(score)} against {number(default[choice])})"
        for choice, values in scores.items()
        for value, score in values.items()
        if choice in default and score < default[choice] - NEGLIGIBLE
    ]
    if default:
        out.append(
            f"Nearer to the paper than the default: {'; '.join(better)}."
            if better
            else f"No alternative is nearer to the paper than the default by more than {NEGLIGIBLE:g}."
        )
    return out


def side_by_side(study: Study, image: str) -> str:
    """The printed numbers under every profile, and their scores."""
    found = {p: numbers for p in study.profiles if (numbers := printed(study, p))}
    if not found:
        return ""
    keys = list(dict.fromkeys(key for numbers in found.values() for key in numbers))
    head = ["policy", "metric", "at", "paper (s)"]
    rows = []
    for key in sorted(keys, key=lambda key: list(POLICIES).index(key[1])):
        place, policy, metric = key
        values = [numbers.get(key) for numbers in found.values()]
        row = [POLICIES[policy], METRICS[metric], place, of_paper(next(v for v in values if v))]
        rows.append([*row, *(text for value in values for text in (cell(value), ratio(value)))])
    head += [text for profile in found for text in (f"{code(profile)} (s)", "ratio")]
    scores = [number(mean_abs_log_ratio(list(numbers.values()))) for numbers in found.values()]
    rows.append(["all", "mean abs log ratio", "", "", *(text for score in scores for text in ("", score))])
    title = "The profiles side by side" if len(found) > 1 else "The printed numbers"
    return "\n\n".join(part for part in [f"## {title}", image, table(head, rows, 3)] if part)
