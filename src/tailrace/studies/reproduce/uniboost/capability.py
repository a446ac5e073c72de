"""§3's table of what policies can do, as measured: which tails, predictions or not, what preemption moves."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..cells import Cell
from ..points import Samples, column
from ..verdicts import ratio
from .plan import Scope, mixes, named
from .settings import HEAVY

__all__ = ["capabilities"]

NEAR: Final = 1.1
"""A tail is served well if P99 E2E is within this factor of the best policy's."""
LIGHT: Final = "reasoning"


def capabilities(found: list[Cell], samples: Samples, scope: Scope) -> list[dict[str, Any]]:
    """A JSON-able mapping for each policy; None where it was not run."""
    points = {(c.experiment, c.policy, c.at.get("mix")): c.point for c in found}
    light = LIGHT if LIGHT in mixes(scope) else "mix-2"
    best = {mix: _best(points, samples, scope, mix) for mix in (light, HEAVY)}
    out = []
    for name in named(scope):
        tails = {mix: _tail(points, samples, name, mix, best[mix]) for mix in (light, HEAVY)}
        told, untold = points.get(("main", name, "mix-2")), points.get(("blind", name, None))
        needs = None
        if told is not None and untold is not None:
            needs = not np.array_equal(column(samples, told, "e2e_mean_s"), column(samples, untold, "e2e_mean_s"))
        out.append(
            {
                "policy": name,
                "light_mix": light,
                "light_tail": tails[light],
                "heavy_tail": tails[HEAVY],
                "near": NEAR,
                "needs_predictions": needs,
                "preemptions_per_request": _mean(points, samples, name, "preemptions_per_request"),
                "swap_tax": _mean(points, samples, name, "swap_tax"),
                "recompute_tax": _mean(points, samples, name, "recompute_tax"),
            }
        )
    return out


def _best(points: dict[Any, Any], samples: Samples, scope: Scope, mix: str) -> str | None:
    means = {
        name: float(column(samples, points["main", name, mix], "e2e_p99_s").mean())
        for name in named(scope)
        if ("main", name, mix) in points
    }
    return min(means, key=means.__getitem__) if means else None


def _tail(points: dict[Any, Any], samples: Samples, name: str, mix: str, best: str | None) -> float | None:
    """P99 E2E over the best policy's."""
    if best is None or ("main", name, mix) not in points:
        return None
    pair = (column(samples, points["main", p, mix], "e2e_p99_s") for p in (name, best))
    return ratio(*pair).value


def _mean(points: dict[Any, Any], samples: Samples, name: str, metric: str) -> float | None:
    point = points.get(("main", name, "mix-2"))
    return None if point is None else float(np.nanmean(column(samples, point, metric)))
