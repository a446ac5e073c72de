"""What is drawn without many runs: MemGuard's staircase, lengths, and γ's path under bursts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from .... import latency, workloads
from ....policies._boosting import boost_s, seconds_per_token
from ....policies._guarded import milestone_tokens
from ....policies.uniboost import gamma_path
from .. import points
from ..points import Point
from .settings import GAMMA_HIGH, GAMMA_LOW, HEAVY, MIXES, SYSTEMS

__all__ = ["LENGTHS", "lengths", "path", "staircase"]

K_TOKENS: Final = 256
STAIRS: Final = (64, *(int(256 * 2 ** (i / 4)) for i in range(25)))
"""Tokens at which boosts are shown: up to 16,384."""
LENGTHS: Final = ("reasoning", HEAVY, "mix-2")
DRAWN: Final = 20_000
SHARES: Final = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999)
PATH_POINTS: Final = 400
BIN_S: Final = 10.0


def staircase() -> Iterator[tuple[str, float, int, float]]:
    """``(boost or memguard, γ, tokens, boost in seconds)`` of §5.3's figure."""
    cost = latency.build(SYSTEMS["llama-3-8b"]).cost
    each = seconds_per_token(0.0, cost)
    for gamma in (GAMMA_LOW, GAMMA_HIGH):
        for tokens in STAIRS:
            yield "boost", gamma, tokens, float(boost_s(tokens * each, gamma))
            yield "memguard", gamma, tokens, float(boost_s(milestone_tokens(tokens, K_TOKENS) * each, gamma))


def lengths() -> Iterator[tuple[str, str, str, float]]:
    """``(mix, prompt or output, what, tokens)`` of §2.1's figure: quantiles, mean."""
    for mix in LENGTHS:
        w = workloads.load(f"poisson:requests={DRAWN},lengths={MIXES[mix]}", seed=0)
        for kind, tokens in (("prompt", w.prompt_tokens), ("output", w.output_tokens)):
            yield mix, kind, "mean", float(tokens.mean())
            for share in SHARES:
                yield mix, kind, f"{share:g}", float(np.quantile(tokens, share))


def path(point: Point, seed: int = 0) -> dict[str, Any]:
    """γ after each fit of one run, with the arrivals a second in bins of ten: JSON-able."""
    run = points.run(point, seed)
    times, values = gamma_path(run.engine.state)
    kept = np.unique(np.linspace(0, max(len(times) - 1, 0), PATH_POINTS).astype(int))[: len(times)]
    arrivals = run.workload.arrival_s
    counts, _ = np.histogram(arrivals, bins=np.arange(0.0, arrivals[-1] + BIN_S, 1.0))
    peaks = [int(counts[i : i + int(BIN_S)].max()) for i in range(0, len(counts), int(BIN_S))]
    return {
        "policy": point.policy,
        "traffic": point.traffic.key(),
        "seed": seed,
        "time_s": [float(f"{times[i]:.6g}") for i in kept],
        "gamma_per_s": [float(f"{values[i]:.6g}") for i in kept],
        "bin_s": BIN_S,
        "most_arrivals_in_a_second": peaks,
    }
