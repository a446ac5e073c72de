"""How well the latency estimator, fitted to a profile of steps, tells steps that it has not seen.

The profile is of a run whose steps a roofline times: a maximum, which the estimator's sum cannot follow
everywhere. With jitter no estimator does better than the jitter leaves it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ... import runs
from ...estimator import estimate
from .plan import Scope, models
from .settings import MODELS, Setting, engine, of

__all__ = ["JITTERS", "errors"]

JITTERS: Final = (0.0, 0.05, 0.15)
LOAD: Final = 0.85
SHORTER: Final = 0.4
"""Share of the workload's duration that is profiled."""
POLICY: Final = "sarathi"
"""Its steps mix chunks of prompts with decodes."""


def errors(scope: Scope) -> Iterator[tuple[str, float, float]]:
    """``(model, jitter, MAPE on held-out steps in per cent)``."""
    for model in models(scope):
        setting = Setting(model)
        asked = of(setting, LOAD, scope.seeds, SHORTER)
        text, timed_by = asked.traffic.key(), MODELS[model].roofline
        job = runs.Job(text, POLICY, engine(setting, POLICY), timed_by, seed=0, service=asked.service)
        for found in estimate(job, JITTERS):
            yield model, found.jitter, 100 * found.fit.held_out["all"].mape
