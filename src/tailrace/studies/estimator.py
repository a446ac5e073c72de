"""How well the profiled model estimates steps that a roofline times, and what its error comes from.

The profiled model is a sum over requests; a roofline takes the larger of computing and reading, which
is no sum. So an estimator fitted to its steps errs even where nothing is random. With step jitter
the error of any estimator has a floor: that of the roofline's own times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..latency import Errors, Sample, errors_by_regime, split, step_seconds
from ..sim.shapes import step_samples
from .calibrate import Fit, fit
from .runs import Job, instance_of, parse_engine, parse_latency

__all__ = ["Estimate", "estimate"]


@dataclass(frozen=True)
class Estimate:
    """Errors on held-out steps, by regime, under one jitter."""

    jitter: float
    fit: Fit
    """Its ``held_out`` is the estimator against the steps as they were timed."""
    undisturbed: dict[str, Errors]
    """The estimator against the roofline's times without jitter: what its form cannot follow, and what
    the jitter made of the coefficients."""
    floor: dict[str, Errors]
    """The roofline itself against the steps as they were timed: no estimator does better in the mean."""
    elsewhere: dict[str, Errors] | None
    """The estimator against the steps of another job, without jitter."""

    def show(self) -> dict[str, Any]:
        """As plain values."""
        parts = {"undisturbed": self.undisturbed, "floor": self.floor, "elsewhere": self.elsewhere}
        plain = {
            part: {name: each._asdict() for name, each in (of or {}).items()} or None for part, of in parts.items()
        }
        return {"jitter": self.jitter, **self.fit.show(), **plain}


def estimate(
    job: Job,
    jitters: Sequence[float] = (0.0, 0.05, 0.15),
    holdout: float = 0.25,
    seed: int = 0,
    elsewhere: Job | None = None,
) -> list[Estimate]:
    """Fit to a share of the steps of ``job`` under each jitter, and measure on the others.

    ``job.latency`` is the model that times the steps, as a roofline; ``elsewhere`` another job under
    the same. Raises UserError for mistakes in the jobs and steps too few to fit.
    """
    cost = parse_latency(job.latency, parse_engine(job.engine)).cost
    other = None if elsewhere is None else _steps(elsewhere, 0.0)
    found = []
    for jitter in jitters:
        samples = _steps(job, jitter)
        fitted, (_, held) = fit(samples, holdout, seed), split(samples, holdout, seed)
        true = [(shape, step_seconds(shape, cost)) for shape, _ in held]
        there = None if other is None else errors_by_regime(other, fitted.cost)
        undisturbed, floor = errors_by_regime(true, fitted.cost), errors_by_regime(held, cost)
        found.append(Estimate(jitter, fitted, undisturbed, floor, there))
    return found


def _steps(job: Job, jitter: float) -> list[Sample]:
    return step_samples(instance_of(job, step_jitter=jitter))
