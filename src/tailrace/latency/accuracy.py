"""How far a latency model is from measured steps, by what the steps hold and how long they are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ..errors import UserError
from .fit import Sample, checked
from .shape import StepShape, step_seconds

__all__ = ["REGIMES", "Errors", "errors_by_regime", "split"]

REGIMES: Final = ("all", "decode only", "prefill only", "mixed", "short", "middle", "long")
"""By content, and by thirds of the measured step time."""


class Errors(NamedTuple):
    """Relative errors, predicted / measured - 1, of some steps; 0.045 is 4.5 %."""

    steps: int
    mape: float
    """Mean of their absolute values."""
    worst: float
    """The largest absolute value."""
    bias: float
    """Their mean: above 0 the model is too slow."""


def errors_by_regime(samples: Iterable[Sample], cost: Any) -> dict[str, Errors]:
    """Errors of ``cost`` on ``(shape, seconds)`` samples by `REGIMES`, in that order; an empty regime is left out.

    Thirds are equal in number, ties in order of the samples. Raises UserError for no samples or
    one that cannot be.
    """
    steps = checked(samples)
    if not steps:
        raise UserError("no samples to measure an error on")
    seconds = np.array([seconds for _, seconds in steps])
    errors = np.array([step_seconds(shape, cost) for shape, _ in steps]) / seconds - 1.0
    rank = np.empty(len(steps), dtype=np.int64)
    rank[np.argsort(seconds, kind="stable")] = np.arange(len(steps))
    third = rank * 3 // len(steps)
    prefills = np.array([shape.prefill_tokens > 0 for shape, _ in steps])
    decodes = np.array([shape.decode_tokens > 0 for shape, _ in steps])
    members = (
        np.ones(len(steps), dtype=bool),
        ~prefills,
        ~decodes,
        prefills & decodes,
        *(third == index for index in range(3)),
    )
    named = zip(REGIMES, members, strict=True)
    return {name: _errors(errors[member].tolist()) for name, member in named if member.any()}


def _errors(values: Sequence[float]) -> Errors:
    sizes = [abs(value) for value in values]
    return Errors(len(values), math.fsum(sizes) / len(sizes), max(sizes), math.fsum(values) / len(values))


def split(samples: Sequence[tuple[StepShape, float]], holdout: float, seed: int) -> tuple[list[Sample], list[Sample]]:
    """``(to fit on, held out)``: a share ``holdout`` of the samples at random, both in their order.

    The same samples, share and seed give the same split. Raises UserError for a share outside
    (0, 1) and when either part would be empty.
    """
    if not 0 < holdout < 1:
        raise UserError(f"holdout={holdout:g} must be above 0 and below 1")
    count = round(holdout * len(samples))
    if not 0 < count < len(samples):
        raise UserError(f"holdout={holdout:g} of {len(samples)} samples leaves one part empty; measure more steps")
    held = set(np.random.Generator(np.random.PCG64(seed)).permutation(len(samples))[:count].tolist())
    kept = [sample for index, sample in enumerate(samples) if index not in held]
    return kept, [samples[index] for index in sorted(held)]
