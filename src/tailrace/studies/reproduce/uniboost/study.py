"""`run`: everything that is asked for of the paper, as one JSON-able document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .... import __version__
from .. import planned as planning
from ..cells import Cell
from ..planned import Study
from ..points import Samples, sample
from . import design_claims, toys  # noqa: F401  registers its claims
from .capability import capabilities
from .claims import CLAIMS, View
from .curves import path
from .plan import EXPERIMENTS, RHO, Scope, cells, settings, spiky
from .published import SOURCE, TITLE
from .rows import rows
from .settings import GAMMA_HIGH, GAMMA_LOW, POLICIES, SEQS, SKIPPED, Capacities, Setting, engine, reference, uniboost

__all__ = ["Planned", "Study", "assemble", "prepare", "references", "run"]


@dataclass(frozen=True)
class Planned(planning.Planned):
    """A study whose loads are known."""

    study: Study[Scope]
    capacities: Capacities
    cells: list[Cell]


def references(study: Study[Scope]) -> int:
    """Runs that `prepare` makes or finds kept."""
    return len(settings(study.scope)) * study.scope.reference_seeds


def prepare(study: Study[Scope], done: Callable[[int], None] = lambda runs: None) -> Planned:
    """Run the reference runs, from which the loads follow, and plan the rest."""
    scope = study.scope
    capacities = Capacities(settings(scope), scope.reference_seeds, study.workers, study.cache, done)
    return Planned(study, capacities, cells(scope, capacities))


def run(planned: Planned, done: Callable[[int], None] = lambda runs: None) -> dict[str, Any]:
    """Run what is planned. ``done`` is called with the number of runs that have come to be known."""
    study = planned.study
    return assemble(planned, sample(planned.points, study.scope.seeds, study.workers, study.cache, done))


def assemble(planned: Planned, samples: Samples) -> dict[str, Any]:
    """The document, from the runs' numbers."""
    study, scope, found, capacities = planned.study, planned.study.scope, planned.cells, planned.capacities
    view = View(found, samples)
    found_toys = toys.numbers(study.workers) if "toys" in scope.only else ()
    view.toys = {(schedule, policy, metric): steps for schedule, policy, metric, steps in found_toys}
    return {
        "study": "uniboost",
        "version": __version__,
        "paper": {"title": TITLE, "source": SOURCE},
        "settings": _settings(scope),
        "rows": list(rows(found, samples, view, scope, capacities)),
        "claims": [{"profile": "article", **claim} for claim in CLAIMS.judge(view, scope.only)],
        "capabilities": capabilities(found, samples, scope) if "capabilities" in scope.only else [],
        "paths": _paths(scope, capacities) if "gamma" in scope.only else [],
        "not_run": _not_run(scope),
    }


def _settings(scope: Scope) -> dict[str, Any]:
    return {
        "seeds": scope.seeds,
        "quick": scope.quick,
        "requests": scope.requests,
        "profiles": ["article"],
        "only": list(scope.only),
        "rho": RHO,
        "skipped": SKIPPED,
        "sequences": SEQS,
        "gamma_low_per_s": GAMMA_LOW,
        "gamma_high_per_s": GAMMA_HIGH,
        "engine": engine(Setting()),
        "reference": {"policy": reference(Setting()).policy, "engine": reference(Setting()).engine},
        "policies": dict(POLICIES),
    }


def _paths(scope: Scope, capacities: Capacities) -> list[dict[str, Any]]:
    """γ under spikes (§5.4): one run, γ free."""
    return [path(spiky(uniboost(1.0), scope, capacities))]


def _not_run(scope: Scope) -> dict[str, str]:
    out = {name: "left out by --only" for name in EXPERIMENTS if name not in scope.only}
    if scope.quick:
        out["rest"] = "--quick runs fewer mixes, loads, models and seeds, shorter runs, and leaves out some policies"
    return out
