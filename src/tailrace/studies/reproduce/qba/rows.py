"""The rows of the document: what was measured of each cell, beside what the paper prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ....metrics.seeds import interval
from ..cells import Cell
from ..fit import Fit, fit
from ..measure import F8, MEASURES
from ..points import Point, Samples
from ..verdicts import median_interval
from .calibration import Calibration, phi_points
from .choices import Choice, Fitted, choices, fit_points
from .expected import drawn
from .plan import POLICIES, Scope, cells
from .profiles import Profile
from .published import AT_32_RPS, value
from .windows import every

__all__ = ["Plan", "fitted", "plan", "rows"]

CHOICE_SEEDS: Final = 20
"""Of a choice: enough to tell its values apart, which are paired by seed."""
POOLED: Final = frozenset({"wait_mean_s"})
SUMMED: Final = frozenset({"over_limit_steps"})
AVERAGED: Final = frozenset({"tokens_per_s", "utilisation", "arrival_scv"})
"""What Table II reports otherwise than by medians over windows."""


@dataclass(frozen=True)
class Plan:
    """One profile's cells and points, by how many seeds they need."""

    profile: Profile
    cells: list[Cell]
    fitted: list[Fitted]
    choices: list[Choice]
    groups: list[tuple[list[Point], int]]


def plan(profile: Profile, scope: Scope) -> Plan:
    """What is run of ``scope`` under ``profile``."""
    found = cells(profile, scope)
    chosen = choices(profile) if any(cell.experiment == "choices" for cell in found) else []
    fitted = fit_points(profile) if {"fig4", "fig5"} & set(scope.only) else []
    main = [cell.point for cell in found if cell.experiment not in ("table2", "choices")]
    if "fig2" in scope.only:
        main += phi_points(profile)
    groups = [
        ([*main, *(point for *_, point in fitted)], scope.seeds),
        ([cell.point for cell in found if cell.experiment == "table2"], scope.windows),
        ([point for choice in chosen for *_, point in choice.points], min(scope.seeds, CHOICE_SEEDS)),
    ]
    return Plan(profile, found, fitted, chosen, [(list(dict.fromkeys(points)), seeds) for points, seeds in groups])


def rows(plan: Plan, samples: Samples, scope: Scope, calibration: Calibration | None) -> Iterator[dict[str, Any]]:
    """Every row of the document, without its profile."""
    for cell in plan.cells:
        values = samples[cell.point]
        if cell.experiment == "choices":
            values = values[: min(scope.seeds, CHOICE_SEEDS)]
        for metric in cell.metrics:
            column = values[:, MEASURES.index(metric)]
            row = _row(cell.experiment, cell.policy, metric, cell.at, *_reduced(cell, metric, column, values))
            apart = column[:: every(cell.at["protocol"], len(column))] if cell.experiment == "table2" else column
            yield row if cell.experiment == "choices" else {**row, "by_seed": _by_seed(apart)}
        if cell.experiment == "table2" and cell.policy == "fcfs":
            column = values[:, MEASURES.index("arrival_scv")]
            yield _row(
                "table2", "fcfs", "arrival_scv", cell.at, float(column.mean()), interval(list(column)), len(column)
            )
    if "table2" in scope.only and scope.azure:
        yield _row(
            "table2", "", "length_factor", {"protocol": "demand_matched"}, scope.demand_factor, None, scope.windows
        )
    if calibration is not None:
        yield from _formula(calibration, scope)
    for choice in plan.choices:
        found, seeds = fitted(choice.points, samples, CHOICE_SEEDS), min(scope.seeds, CHOICE_SEEDS)
        at = {"choice": choice.choice, "value": choice.value, "default": choice.default}
        score = found.adjusted or found.plain  # so few seeds would mostly show what load they drew
        ci = list(score.ci) if score.ci else None
        yield _row("choices", "", "mean_abs_log_ratio", at, score.mean_abs_log_ratio, ci, seeds)


def _row(
    experiment: str,
    policy: str,
    metric: str,
    at: Mapping[str, Any],
    measured: float | None,
    ci: list[float] | None,
    seeds: int,
) -> dict[str, Any]:
    return {
        "experiment": experiment,
        "policy": policy,
        "metric": metric,
        "at": dict(at),
        "paper": value(experiment, policy, metric, at),
        "measured": measured,
        "ci": ci,
        "seeds": seeds,
    }


def _by_seed(column: F8) -> list[float | None]:
    """For differences paired by seed, or by window where windows have no request in common; six digits."""
    return [None if np.isnan(value) else float(f"{value:.6g}") for value in column]


def _reduced(cell: Cell, metric: str, column: F8, values: F8) -> tuple[float | None, list[float] | None, int]:
    """``(value, interval, seeds)``: the mean over seeds; of Table II as the paper says."""
    known = column[~np.isnan(column)]
    if not len(known):
        return None, None, 0
    if cell.experiment != "table2":
        return float(known.mean()), interval(list(known)), len(known)
    apart = cell.at["protocol"] == "paper"  # windows that overlap are not independent, so they give no interval
    if metric in SUMMED:
        return float(known.sum()), None, len(known)
    if metric in POOLED:  # over all requests of all windows
        started = values[:, MEASURES.index("started")]
        return float(np.nansum(column * started) / started.sum()), interval(list(known)) if apart else None, len(known)
    if metric in AVERAGED:
        return float(known.mean()), interval(list(known)) if apart else None, len(known)
    return float(np.median(known)), median_interval(known) if apart else None, len(known)


def _formula(calibration: Calibration, scope: Scope) -> Iterator[dict[str, Any]]:
    """Fig. 2(a): E[W] and E[T]; other readings of n as an experiment of their own."""
    for reading, model in calibration.models.items():
        for rate in scope.loads:
            at = (
                {"rate_rps": rate}
                if reading == "stated"
                else {"rate_rps": rate, "servers": model.servers, "n": reading}
            )
            experiment = "fig2" if reading == "stated" else "servers"
            for policy in POLICIES:
                wait, response = model.wait_s(policy, rate), model.response_s(policy, rate)
                yield _row(experiment, policy, "formula_wait_mean_s", at, wait, None, 0)
                yield _row(experiment, policy, "formula_e2e_mean_s", at, response, None, 0)


def fitted(points: Iterable[Fitted], samples: Samples, most: int | None = None) -> Fit:
    """The 15 printed values at 32 requests/s against the means of the first ``most`` seeds."""
    found, printed = [], []
    for _, key, point in points:
        for metric, number in AT_32_RPS[key].items():
            found.append(samples[point][:most, MEASURES.index(metric)])
            printed.append(number)
    return fit(found, printed, drawn(samples[point][:most]))
