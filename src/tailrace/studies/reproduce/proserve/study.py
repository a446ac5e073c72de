"""`run`: everything that is asked for of the paper, as one JSON-able document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .... import __version__
from .. import planned as planning
from ..cells import Cell
from ..planned import Study
from ..points import Samples, sample
from . import engine_claims, estimator, overhead, shape_claims  # noqa: F401  register their claims
from .claims import CLAIMS, TOLERANCE, View
from .plan import EXPERIMENTS, LOOSE_TTFT_S, Scope, cells, mixes, models
from .published import SOURCE, TITLE
from .rows import rows
from .settings import MIXES, MODELS, POLICIES, SKIPPED, TPOT_S, TTFT_S, WEIGHT, Setting, engine
from .tight import PREEMPTIONS, tight_kv_tokens
from .variants import ABLATIONS, LEAST_S, MEMORY, STARVATION

__all__ = ["Planned", "Study", "assemble", "prepare", "run"]


@dataclass(frozen=True)
class Planned(planning.Planned):
    """A study whose memory is known."""

    study: Study[Scope]
    tight_kv_tokens: int
    """0 where the study of memory is not run."""
    cells: list[Cell]


def prepare(study: Study[Scope]) -> Planned:
    """Find how much memory is tight, where that is asked for, and plan the rest."""
    scope = study.scope
    wanted = "memory" in scope.only and not scope.quick
    tokens = tight_kv_tokens(scope, study.workers, study.cache) if wanted else 0
    return Planned(study, tokens, cells(scope, tokens))


def run(planned: Planned, done: Callable[[int], None] = lambda runs: None) -> dict[str, Any]:
    """Run what is planned. ``done`` is called with the number of runs that have come to be known."""
    study = planned.study
    return assemble(planned, sample(planned.points, study.scope.seeds, study.workers, study.cache, done))


def assemble(planned: Planned, samples: Samples) -> dict[str, Any]:
    """The document, from the runs' numbers."""
    scope, found = planned.study.scope, planned.cells
    view = View(found, samples)
    timed = ("tailrace",) if "overhead" in scope.only else ()
    view.overhead_us = {name: overhead.bound(overhead.step_us(name)) for name in timed}
    wanted = estimator.errors(scope) if "estimator" in scope.only and not scope.quick else ()
    view.estimator = {(model, jitter): error for model, jitter, error in wanted}
    return {
        "study": "proserve",
        "version": __version__,
        "paper": {"title": TITLE, "source": SOURCE},
        "settings": _settings(planned),
        "rows": list(rows(found, samples, view, scope)),
        "claims": [{"profile": "paper", **claim} for claim in CLAIMS.judge(view, scope.only)],
        "not_run": _not_run(scope),
    }


def _settings(planned: Planned) -> dict[str, Any]:
    scope = planned.study.scope
    return {
        "seeds": scope.seeds,
        "quick": scope.quick,
        "profiles": ["paper"],
        "only": list(scope.only),
        "trace": Path(scope.trace).name,
        "models": {name: {"latency": MODELS[name].latency, "about": MODELS[name].about} for name in models(scope)},
        "mixes": {
            name: {
                "arrivals": MIXES[name].arrivals,
                "lengths": MIXES[name].lengths,
                "about": MIXES[name].about,
                "duration_s": MIXES[name].duration_s * scope.shorter,
            }
            for name in mixes(scope)
        },
        "policies": {name: {"policy": text, "engine": engine(Setting(), text)} for name, text in POLICIES.items()},
        "variants": {"ablation": dict(ABLATIONS), "starvation": dict(STARVATION)},
        "memory": {name: dict(more) for name, more in MEMORY.items()},
        "tight_kv_tokens": planned.tight_kv_tokens,
        "tight_preemptions": PREEMPTIONS,
        "ttft_slo_s": TTFT_S,
        "tpot_slo_s": TPOT_S,
        "loose_ttft_slo_s": LOOSE_TTFT_S,
        "high_weight": WEIGHT,
        "skipped": SKIPPED,
        "tolerance": TOLERANCE,
        "starve_s": LEAST_S,
    }


def _not_run(scope: Scope) -> dict[str, str]:
    out = {name: "left out by --only" for name in EXPERIMENTS if name not in scope.only}
    if scope.quick:
        out |= {name: "--quick has no time for it" for name in ("memory", "estimator") if name in scope.only}
        out["rest"] = "--quick runs one model, one workload, fewer loads, policies and seeds, and shorter runs"
    return out
