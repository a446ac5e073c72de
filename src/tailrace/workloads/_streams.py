"""Independent random streams of one seed, so that changing one factor leaves the others alone."""

from __future__ import annotations

from typing import Final

import numpy as np

__all__ = ["ARRIVALS", "LABELS", "NOISE", "OUTPUTS", "PREFIXES", "PROMPTS", "stream"]

ARRIVALS: Final = 0
PROMPTS: Final = 1
OUTPUTS: Final = 2
LABELS: Final = 3
NOISE: Final = 4
PREFIXES: Final = 5


def stream(seed: int, which: int) -> np.random.Generator:
    """Child ``which`` of ``seed``: what ``SeedSequence(seed).spawn(...)[which]`` gives."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(which,)))
