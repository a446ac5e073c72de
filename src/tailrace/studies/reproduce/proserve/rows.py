"""The rows of the document: what was measured of each cell, beside what the paper prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from ..cells import Cell
from ..points import Samples, column
from ..rows import Rows
from ..verdicts import Ratio
from .claims import View, gained
from .plan import Scope, mixes, models
from .published import value
from .settings import BASELINES, PAPERS, budget, capacity_rps, ttft_slo_s

__all__ = ["rows"]

ROWS: Final = Rows("paper", value)


def rows(found: Sequence[Cell], samples: Samples, view: View, scope: Scope) -> Iterator[dict[str, Any]]:
    """Every row of the document."""
    for model in models(scope):
        for mix in mixes(scope):
            at = {"model": model, "mix": mix}
            yield ROWS.one("setting", "", "capacity_rps", at, capacity_rps(model, mix))
            yield ROWS.one("setting", "", "ttft_slo_s", at, ttft_slo_s(model, mix))
            yield ROWS.one("setting", "", "token_budget", at, float(budget(model, mix)))
    for cell in found:
        for metric in cell.metrics:
            yield ROWS.seeds(cell.experiment, cell.policy, metric, cell.at, column(samples, cell.point, metric))
    yield from _gains(view)
    for policy, us in view.overhead_us.items():
        yield ROWS.one("overhead", policy, "at_most_us", {}, us)
    for (model, cv), error in view.estimator.items():
        yield ROWS.one("estimator", "", "mape_percent", {"model": model, "jitter": cv}, error)


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
                yield ROWS.ratio("gain", name, f"{metric}_gain", at, gain, len(ours))
            of_paper = [gain for name, gain in gains.items() if name in PAPERS and np.isfinite(gain.value)]
            if of_paper:
                least = min(of_paper, key=lambda gain: gain.value)
                yield ROWS.ratio("gain", "best of the paper's", f"{metric}_gain", at, least, len(ours))
                if where[2] <= 1.0 and (most is None or least.value > most[0].value):
                    most = least, len(ours)
        if most is not None:
            yield ROWS.ratio("headline", "tailrace", f"{metric}_gain", {}, *most)
