"""The production trace's windows: what brings them to the paper's token demand, and which lie apart."""

from __future__ import annotations

from typing import Final

from .... import workloads
from .profiles import REFERENCE_RPS
from .published import TOKENS_PER_S

__all__ = ["APART", "demand_factor", "every"]

APART: Final = {"paper": 100, "demand_matched": 17}
"""Of the windows, how many can be chosen evenly that have no request in common: 17 of 1,000 in 19,366."""


def demand_factor(file: str) -> float:
    """The factor on all lengths at which λ = 32 brings the paper's 24,700 tokens/s, to three digits."""
    w = workloads.load(file)
    tokens = float((w.prompt_tokens + w.output_tokens).mean())
    return round(TOKENS_PER_S / (REFERENCE_RPS * tokens), 3)


def every(protocol: str, windows: int) -> int:
    """Of ``windows`` windows, each how many-th has no request in common with the one before."""
    return max(1, -(-windows // APART[protocol]))
