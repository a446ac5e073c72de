"""The rows of the document: what was measured of each cell, beside what the article prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from ..cells import Cell
from ..points import Samples, column
from ..rows import Rows
from . import claims
from .claims import View
from .curves import lengths, staircase
from .plan import Scope, mixes
from .published import value
from .settings import POLICIES, RULES, Capacities

__all__ = ["rows"]

ROWS: Final = Rows("article", value)
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
        yield ROWS.seeds("capacity", "sarathi", "backlog_rps", at, rps)
    for cell in found:
        if cell.experiment != "blind":
            for metric in cell.metrics:
                yield ROWS.seeds(cell.experiment, cell.policy, metric, cell.at, column(samples, cell.point, metric))
    yield from _against(view, scope)
    if "ablation" in scope.only:
        for policy in dict.fromkeys(c.policy for c in found if c.experiment == "ablation"):
            yield ROWS.seeds("ablation", policy, "knee_rho", {}, claims.knee(view, policy))
    for (schedule, policy, metric), steps in getattr(view, "toys", {}).items():
        yield ROWS.one("toys", policy, metric, {"schedule": schedule}, steps)
    if "staircase" in scope.only:
        for which, gamma, tokens, boost in staircase():
            yield ROWS.one("staircase", which, "boost_s", {"gamma_per_s": gamma, "tokens": tokens}, boost)
    if "lengths" in scope.only:
        for mix, kind, what, length in lengths():
            yield ROWS.one("lengths", kind, "tokens", {"mix": mix, "quantile": what}, length)


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
                        yield ROWS.ratio("against", policy, name, {"mix": mix, "rule": rule}, gained, len(ours))
