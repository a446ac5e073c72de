"""The rows of the document: what was measured of each cell, beside what the article prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ....metrics.seeds import interval
from ..cells import Cell
from ..measure import F8
from ..points import Samples, column
from . import claims
from .claims import View
from .curves import lengths, staircase
from .plan import Scope, mixes
from .published import value
from .settings import POLICIES, RULES, Capacities

__all__ = ["rows"]

GAINS: Final = {
    **{f"{of}_{what}_gain": f"{of}_{what}_s" for of in ("e2e", "ttft", "tbt") for what in ("mean", "p95", "p99")},
    "requests_gain": "requests_per_s",
}
"""Name of a gain → the number it is of."""


def rows(
    found: Sequence[Cell], samples: Samples, view: View, scope: Scope, capacities: Capacities
) -> Iterator[dict[str, Any]]:
    """Every row of the document."""
    for setting, rps in capacities.samples.items():
        at = {"model": setting.system, "lengths": setting.drawn, "kv_tokens": setting.kv_tokens}
        yield _row("capacity", "sarathi", "backlog_rps", at, rps)
    for cell in found:
        if cell.experiment != "blind":
            for metric in cell.metrics:
                yield _row(cell.experiment, cell.policy, metric, cell.at, column(samples, cell.point, metric))
    yield from _against(view, scope)
    if "ablation" in scope.only:
        for policy in dict.fromkeys(c.policy for c in found if c.experiment == "ablation"):
            yield _row("ablation", policy, "knee_rho", {}, claims.knee(view, policy))
    for (schedule, policy, metric), steps in getattr(view, "toys", {}).items():
        yield _one("toys", policy, metric, {"schedule": schedule}, steps)
    if "staircase" in scope.only:
        for which, gamma, tokens, boost in staircase():
            yield _one("staircase", which, "boost_s", {"gamma_per_s": gamma, "tokens": tokens}, boost)
    if "lengths" in scope.only:
        for mix, kind, what, length in lengths():
            yield _one("lengths", kind, "tokens", {"mix": mix, "quantile": what}, length)


def _against(view: View, scope: Scope) -> Iterator[dict[str, Any]]:
    """Gains on SRPT with perfect predictions under each rule, per cent."""
    if "main" not in scope.only:
        return
    for mix in mixes(scope):
        for rule in RULES:
            for policy in POLICIES:
                for name, metric in GAINS.items():
                    try:
                        ours, base = (view.of("main", p, metric, mix=mix) for p in (policy, rule))
                    except KeyError:
                        continue
                    gained = claims.gain(ours, base, metric)
                    if policy != rule and np.isfinite(gained.value):
                        row = _one("against", policy, name, {"mix": mix, "rule": rule}, gained.value)
                        ends = [gained.low, gained.high]
                        yield {**row, "ci": ends if np.isfinite(ends).all() else None, "seeds": len(ours)}


def _row(experiment: str, policy: str, metric: str, at: Mapping[str, Any], values: F8) -> dict[str, Any]:
    known = values[~np.isnan(values)]
    mean = float(known.mean()) if len(known) else None
    row = _one(experiment, policy, metric, at, mean)
    by_seed = [None if np.isnan(v) else float(f"{v:.6g}") for v in values]
    return {**row, "ci": interval(list(known)), "seeds": len(known), "by_seed": by_seed}


def _one(experiment: str, policy: str, metric: str, at: Mapping[str, Any], measured: float | None) -> dict[str, Any]:
    return {
        "profile": "article",
        "experiment": experiment,
        "policy": policy,
        "metric": metric,
        "at": dict(at),
        "paper": value(experiment, policy, metric, at),
        "measured": measured,
        "ci": None,
        "seeds": 1,
    }
