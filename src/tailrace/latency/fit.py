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

__all__ = ["Sample", "checked", "fit_features", "fit_profiled", "mape", "step_features"]

F8 = NDArray[np.float64]
Sample: TypeAlias = tuple[StepShape, float]
"""A measured step: what it held, and its seconds."""
ORDER: Final = (
    *("constant_s", "prefill_token_s", "decode_seq_s", "decode_kv_s"),
    *("prefill_cross_s", "prefill_sq_s", "prefill_kv_s"),
)
"""Which coefficient explains what several could."""
TELLS_APART: Final = 1e-3
"""Share of a feature that those before it must leave unexplained."""
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
    features = np.array([step_features(shape) for shape, _ in steps], dtype=np.float64).reshape(-1, 7)
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


def step_features(shape: StepShape) -> tuple[float, ...]:
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
    columns, scale = _scaled(features[:, used] * weights[:, None])
    _check_rank(columns, used)
    return _solve(columns, scale, used, seconds * weights)


def _solve(columns: F8, scale: F8, used: NDArray[Any], target: F8) -> F8:
    from scipy.optimize import nnls  # 0.2 s, wanted by nobody who does not fit

    solution, _ = nnls(columns, target)
    coefficients = np.zeros(len(ProfiledParams._fields))
    coefficients[used] = solution / scale
    return coefficients


def fit_features(features: F8, seconds: F8, weights: F8) -> ProfiledParams:
    """As `fit_profiled` for steps as they happen to come: `step_features` a row, and what its error is multiplied with.

    Of coefficients that these steps cannot tell apart the one first in `ORDER` explains what they share,
    and the others are 0. Raises ValueError or RuntimeError where numbers are not finite or the solver fails.
    """
    columns, scale = _scaled(features * weights[:, None])
    order = [ProfiledParams._fields.index(name) for name in ORDER]
    used = np.array(_independent(columns, [i for i in order if features[:, i].any()]), dtype=np.int64)
    return ProfiledParams(*_solve(columns[:, used], scale[used], used, seconds * weights).tolist())


def _independent(columns: F8, order: list[int]) -> list[int]:
    """Those of ``order`` that are not combinations of the ones before them. The columns have length 1."""
    basis: list[F8] = []
    kept = []
    for i in order:
        rest = columns[:, i]
        for direction in basis:
            rest = rest - direction * (direction @ rest)
        length = float(np.linalg.norm(rest))
        if length > TELLS_APART:
            basis.append(rest / length)
            kept.append(i)
    return kept


def _scaled(columns: F8) -> tuple[F8, F8]:
    """Columns of length 1, and what their lengths were: Σ q·kv is of the order of 1e7 times the constant's 1, and
    unscaled the solver loses digits."""
    scale = np.linalg.norm(columns, axis=0)
    scale[scale == 0] = 1.0
    return columns / scale, scale


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
