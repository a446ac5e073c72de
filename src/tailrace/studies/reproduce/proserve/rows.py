"""The rows of the document: what was measured of each cell, beside what the paper prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ....metrics.seeds import interval
from ..cells import Cell
from ..measure import F8
from ..points import Samples, column
from ..verdicts import Ratio
from .claims import View, gained
from .plan import Scope, mixes, models
from .published import value
from .settings import BASELINES, PAPERS, budget, capacity_rps, ttft_slo_s

__all__ = ["rows"]


def rows(found: Sequence[Cell], samples: Samples, view: View, scope: Scope) -> Iterator[dict[str, Any]]:
    """Every row of the document."""
    for model in models(scope):
        for mix in mixes(scope):
            at = {"model": model, "mix": mix}
            yield _one("setting", "", "capacity_rps", at, capacity_rps(model, mix))
            yield _one("setting", "", "ttft_slo_s", at, ttft_slo_s(model, mix))
            yield _one("setting", "", "token_budget", at, float(budget(model, mix)))
    for cell in found:
        for metric in cell.metrics:
            yield _row(cell.experiment, cell.policy, metric, cell.at, column(samples, cell.point, metric))
    yield from _gains(view)
    for policy, us in view.overhead_us.items():
        yield _one("overhead", policy, "at_most_us", {}, us)
    for model, error in view.estimator.items():
        yield _one("estimator", "", "mape_percent", {"model": model}, error)


def _gains(view: View) -> Iterator[dict[str, Any]]:
    """Per cent above each baseline and above the best of the paper's, and the most of the latter up to load 1."""
    try:
        places = view.places()
    except KeyError:
        return
    for metric in ("tdg_ratio", "attainment"):
        most: tuple[Ratio, int] | None = None
        for where in places:
            at = dict(zip(("model", "mix", "load"), where, strict=True))
            ours = view.main("tailrace", metric, where)
            gains = {n: gained(ours, view.main(n, metric, where)) for n in view.rivals(tuple(BASELINES), where)}
            for name, gain in gains.items():
                yield _ratio("gain", name, f"{metric}_gain", at, gain, len(ours))
            of_paper = [gain for name, gain in gains.items() if name in PAPERS and np.isfinite(gain.value)]
            if of_paper:
                least = min(of_paper, key=lambda gain: gain.value)
                yield _ratio("gain", "best of the paper's", f"{metric}_gain", at, least, len(ours))
                if where[2] <= 1.0 and (most is None or least.value > most[0].value):
                    most = least, len(ours)
        if most is not None:
            yield _ratio("headline", "tailrace", f"{metric}_gain", {}, *most)


def _row(experiment: str, policy: str, metric: str, at: Mapping[str, Any], values: F8) -> dict[str, Any]:
    known = values[~np.isnan(values)]
    row = _one(experiment, policy, metric, at, float(known.mean()) if len(known) else None)
    by_seed = [None if np.isnan(v) else float(f"{v:.6g}") for v in values]
    return {**row, "ci": interval(list(known)), "seeds": len(known), "by_seed": by_seed}


def _ratio(experiment: str, policy: str, metric: str, at: Mapping[str, Any], of: Ratio, seeds: int) -> dict[str, Any]:
    row = _one(experiment, policy, metric, at, of.value if np.isfinite(of.value) else None)
    ends = [of.low, of.high]
    return {**row, "ci": ends if np.isfinite(ends).all() else None, "seeds": seeds}


def _one(experiment: str, policy: str, metric: str, at: Mapping[str, Any], measured: float | None) -> dict[str, Any]:
    return {
        "profile": "paper",
        "experiment": experiment,
        "policy": policy,
        "metric": metric,
        "at": dict(at),
        "paper": value(experiment, policy, metric, at),
        "measured": measured,
        "ci": None,
        "seeds": 1,
    }
