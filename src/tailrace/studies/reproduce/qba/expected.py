"""What the synthetic load of §IV-A1 draws on average."""

from __future__ import annotations

import functools
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ....workloads.lengths import Draws, qba
from ..measure import CONTROLS, MEASURES
from .profiles import REFERENCE_RPS

__all__ = ["drawn", "mean_lengths"]

PARTS: Final = 8
REQUESTS: Final = 500_000
FIRST_SEED: Final = 1 << 40
"""Far from any study's."""


@functools.cache
def mean_lengths() -> tuple[float, float]:
    """Expected prompt and output tokens, from four million requests: within 0.1 % (standard error)."""
    parts = [qba(Draws(FIRST_SEED + part, REQUESTS)) for part in range(PARTS)]
    prompt, output = (float(np.mean([lengths.mean() for lengths in column])) for column in zip(*parts, strict=True))
    return prompt, output


def drawn(rows: NDArray[np.float64], rate_rps: float = REFERENCE_RPS) -> NDArray[np.float64]:
    """(seeds, 3) relative distances of mean gap, prompt and output from their expectations.

    ``rows``: (seeds, len(MEASURES)) of a point at ``rate_rps``.
    """
    expected = np.array([1 / rate_rps, *mean_lengths()])
    distances: NDArray[np.float64] = rows[:, [MEASURES.index(name) for name in CONTROLS]] / expected - 1
    return distances
