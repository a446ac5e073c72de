"""Independent random streams of one seed, so that changing one factor leaves the others alone."""

from __future__ import annotations

from typing import Final

import numpy as np

__all__ = [
    "ARRIVALS",
    "CLASSES",
    "LABELS",
    "NOISE",
    "OUTPUTS",
    "PARTS",
    "PREFIXES",
    "PROMPTS",
    "SHARES",
    "STATES",
    "TENANTS",
    "stream",
]

ARRIVALS: Final = 0
PROMPTS: Final = 1
OUTPUTS: Final = 2
LABELS: Final = 3
NOISE: Final = 4
PREFIXES: Final = 5
STATES: Final = 6
"""When a burst begins and ends."""
SHARES: Final = 7
"""Which part of a mix a request is of."""
CLASSES: Final = 8
TENANTS: Final = 9
PARTS: Final = 10
"""The lengths of the second part of a mix and of those after it, each by its number."""


def stream(seed: int, *which: int) -> np.random.Generator:
    """Child ``which`` of ``seed``: what ``SeedSequence(seed).spawn(...)[which]`` gives, and so on for its children."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=which))
