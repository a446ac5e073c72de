"""`run`: everything that is asked for of the paper, as one JSON-able document."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .... import __version__
from ..fit import Fit
from ..points import Samples, sample
from . import trace_claims  # noqa: F401  registers its claims
from .calibration import calibrate
from .claims import View, judge
from .plan import EXPERIMENTS, Scope
from .profiles import Profile
from .published import SOURCE, TITLE
from .rows import fitted, plan, rows

__all__ = ["Study", "count", "run"]


@dataclass(frozen=True)
class Study:
    """What is run of the paper, and how."""

    profiles: Sequence[Profile]
    scope: Scope
    workers: int = 0
    cache: bool = True


def count(study: Study) -> int:
    """Runs that `run` makes or finds kept."""
    plans = (plan(profile, study.scope) for profile in study.profiles)
    return sum(len(points) * seeds for planned in plans for points, seeds in planned.groups)


def run(study: Study, done: Callable[[int], None] = lambda runs: None) -> dict[str, Any]:
    """Run ``study``. Raises UserError for a trace that cannot be used.

    ``done`` is called with the number of runs that have come to be known.
    """
    scope, out, claims = study.scope, [], []
    shown: dict[str, dict[str, Any]] = {"fit": {}, "calibration": {}}
    for profile in study.profiles:
        planned = plan(profile, scope)
        samples: Samples = {}
        for points, seeds in planned.groups:
            if points:
                samples = _join(samples, sample(points, seeds, study.workers, study.cache, done))
        calibration = calibrate(profile, samples, scope.seeds) if "fig2" in scope.only else None
        out += [{"profile": profile.name, **row} for row in rows(planned, samples, scope, calibration)]
        formula = {} if calibration is None else {r: calibration.waits(r, scope.loads) for r in calibration.models}
        claims += [
            {"profile": profile.name, **claim} for claim in judge(View(planned.cells, samples, formula), scope.only)
        ]
        if calibration is not None:
            shown["calibration"][profile.name] = calibration.shown
        if planned.fitted:
            shown["fit"][profile.name] = _shown(fitted(planned.fitted, samples))
    return {
        "study": "qba",
        "version": __version__,
        "paper": {"title": TITLE, "source": SOURCE},
        "settings": {
            "seeds": scope.seeds,
            "quick": scope.quick,
            "profiles": [profile.name for profile in study.profiles],
            "only": list(scope.only),
        },
        "profiles": {profile.name: profile.show() for profile in study.profiles},
        "rows": out,
        "claims": claims,
        **shown,
        "not_run": _not_run(scope),
    }


def _shown(found: Fit) -> dict[str, Any]:
    """The plain score, with the adjusted one beside it."""
    one = None if found.adjusted is None else dataclasses.asdict(found.adjusted)
    return {"values": found.values, **dataclasses.asdict(found.plain), "adjusted": one}


def _join(samples: Samples, more: Samples) -> Samples:
    """A point of two groups keeps the larger sample."""
    for point, found in more.items():
        if point not in samples or len(found) > len(samples[point]):
            samples[point] = found
    return samples


def _not_run(scope: Scope) -> dict[str, str]:
    out = {name: "left out by --only" for name in EXPERIMENTS if name not in scope.only}
    if "table2" in scope.only and not scope.azure:
        out["table2"] = "no trace given: `tailrace workload fetch azure-2023-conv`, then --azure FILE"
    if scope.quick and "choices" in scope.only:
        out["choices"] = "left out by --quick"
    return out
