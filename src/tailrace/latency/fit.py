"""Coefficients of the profiled model from measured steps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from .profiled import ProfiledParams, decode_reads
from .shape import StepShape, step_seconds

__all__ = ["Sample", "checked", "fit_profiled", "mape"]

F8 = NDArray[np.float64]
Sample: TypeAlias = tuple[StepShape, float]
"""A measured step: what it held, and its seconds."""
LEAST: Final = 0.1
"""Share of the measured time below which an estimate is no weight: it may be 0 where the fit is poor."""


def fit_profiled(samples: Iterable[Sample], relative: bool = True) -> ProfiledParams:
    """The coefficients that explain measured steps best, none negative.

    ``samples``: ``(shape, seconds)`` of at least one step more than there are coefficients
    to find; a feature that no sample has (say, prefills on cached tokens) gets 0.
    ``relative``: least squares of errors relative to the step's estimate (that of a first fit,
    relative to the measured times), so that short steps count as much as long ones, and a
    step's mean time is found; otherwise of seconds. Source: ProServe, arXiv 2512.12928
    (non-negative least squares, constant once a step).

    Raises UserError for a sample that cannot be, too few samples, or features that never
    vary independently of one another.
    """
    steps = checked(samples)
    features = np.array([_features(shape) for shape, _ in steps], dtype=np.float64).reshape(-1, 7)
    seconds = np.array([seconds for _, seconds in steps])
    used = np.flatnonzero(features.any(axis=0))
    if len(steps) <= max(1, len(used)):
        raise UserError(f"{len(steps)} samples are too few to fit {max(1, len(used))} coefficients")
    found = _weighted(features, seconds, used, 1.0 / seconds if relative else np.ones_like(seconds))
    if relative:  # by the measured times alone, steps that happened to be short would count more
        found = _weighted(features, seconds, used, 1.0 / np.maximum(features @ found, LEAST * seconds))
    return ProfiledParams(*found.tolist())


def mape(samples: Iterable[Sample], cost: Any) -> float:
    """Mean absolute relative error of ``cost`` on ``(shape, seconds)`` samples; 0.045 is 4.5 %.

    Raises UserError for no samples or one that cannot be.
    """
    steps = checked(samples)
    if not steps:
        raise UserError("no samples to measure an error on")
    return math.fsum(abs(step_seconds(shape, cost) / seconds - 1.0) for shape, seconds in steps) / len(steps)


def _features(shape: StepShape) -> tuple[float, ...]:
    """What each of `ProfiledParams` is multiplied with, in its order."""
    return (
        1.0,
        shape.prefill_sq,
        shape.prefill_cross,
        shape.prefill_tokens,
        shape.prefill_kv,
        decode_reads(shape),
        shape.decode_tokens,
    )


def _weighted(features: F8, seconds: F8, used: NDArray[Any], weights: F8) -> F8:
    """Least squares of ``weights`` × the errors in seconds, over the features ``used``; the others' are 0."""
    from scipy.optimize import nnls  # 0.2 s, wanted by nobody who does not fit

    columns = features[:, used] * weights[:, None]
    # Σ q·kv is of the order of 1e7 times the constant's 1: unscaled, the solver loses digits.
    scale = np.linalg.norm(columns, axis=0)
    columns = columns / scale
    _check_rank(columns, used)
    solution, _ = nnls(columns, seconds * weights)
    coefficients = np.zeros(len(ProfiledParams._fields))
    coefficients[used] = solution / scale
    return coefficients


def _check_rank(columns: NDArray[Any], used: NDArray[Any]) -> None:
    """Name the first coefficient that the samples cannot tell from those before it."""
    if np.linalg.matrix_rank(columns) == len(used):
        return
    for count in range(2, len(used) + 1):
        if np.linalg.matrix_rank(columns[:, :count]) < count:
            name = ProfiledParams._fields[used[count - 1]]
            raise UserError(f"the samples do not vary enough to tell {name} from the others; measure more sizes")


def checked(samples: Iterable[Sample]) -> Sequence[Sample]:
    """The samples as a list. Raises UserError for the first that cannot be."""
    steps = list(samples)
    for number, sample in enumerate(steps, start=1):
        try:
            shape, seconds = sample
            problem = _problem(StepShape(*shape), float(seconds))
        except (TypeError, ValueError):
            problem = f"must be (StepShape of {len(StepShape._fields)} numbers, seconds)"
        if problem:
            raise UserError(f"sample {number}: {problem}")
    return [(StepShape(*shape), float(seconds)) for shape, seconds in steps]


def _problem(shape: StepShape, seconds: float) -> str:
    """What is wrong with a sample, or nothing."""
    if not 0 < seconds < math.inf:
        return f"seconds={seconds} must be positive and finite"
    for name, value in shape._asdict().items():
        if not 0 <= value < math.inf:
            return f"{name}={value} must be at least 0 and finite"
    if shape.tokens < 1 or shape.tokens != shape.prefill_tokens + shape.decode_tokens:
        return f"tokens={shape.tokens} must be prefill_tokens + decode_tokens and at least 1"
    if shape.seqs != shape.prefill_seqs + shape.decode_seqs:
        return f"seqs={shape.seqs} must be prefill_seqs + decode_seqs"
    if shape.decode_seqs > shape.decode_tokens or (shape.decode_tokens and not shape.decode_seqs):
        return f"decode_seqs={shape.decode_seqs} cannot make decode_tokens={shape.decode_tokens}"
    return ""
