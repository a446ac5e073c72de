"""Is the tail of a sample light or heavy?

Two looks at it, held against an exponential, the border between the two kinds: the extreme
value index of the largest values (0 for an exponential, 1/α for a Pareto with index α), and
how far P99 is from the median (ln 100 / ln 2 = 6.6 times, for an exponential).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..table import F8

__all__ = ["INDEX", "RATIO", "Tail", "tail"]

INDEX: Final = 0.2
"""Border of the index. Above it the mean excess over a threshold grows by over a quarter of the threshold's growth,
ξ/(1 − ξ); below it a lognormal of sigma 0.6 or less counts as light, as seen from its top tenth."""
RATIO: Final = 8.0
"""Border of P99/P50: an exponential's 6.6 and a fifth more, as samples scatter."""
TOP: Final = (0.1, 0.05)
"""The shares of largest values looked at."""
FEWEST: Final = 30
"""Values in the larger share; fewer say nothing."""
CUT: Final = 0.01
"""With so many requests of exactly the largest length, the tail was cut there."""


@dataclass(frozen=True)
class Tail:
    """A verdict with its grounds."""

    verdict: str
    """light, heavy or unclear."""
    why: str
    index: float
    """Extreme value index over the top tenth; NaN where it cannot be told."""
    interval: tuple[float, float]
    """Its 95 % confidence interval."""
    index_top_5: float
    """The same over the top twentieth, a check."""
    p99_over_p50: float


def tail(values: Any) -> Tail:
    """The tail of ``values`` (n,), all above 0.

    Heavy: the index over the top tenth is above `INDEX` beyond doubt, and the top twentieth
    or P99/P50 agrees. Light: it is below beyond doubt, and both agree. Else unclear.

    Source of the index and its variance: Dekkers, Einmahl, de Haan, A moment estimator for
    the index of an extreme-value distribution, Annals of Statistics 17 (1989).
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    p50, p99 = (float(q) for q in np.quantile(ordered, (0.5, 0.99)))
    (index, count), (check, _) = (_index(ordered, share) for share in TOP)
    error = 1.96 * math.sqrt((1 + max(index, 0.0) ** 2) / count) if count and not math.isnan(index) else math.nan
    interval = (index - error, index + error)
    verdict, why = _verdict(ordered, interval, check, p99 / p50, count)
    return Tail(verdict, why, index, interval, check, p99 / p50)


def _index(ordered: F8, share: float) -> tuple[float, int]:
    """The moment estimator over the largest ``share``, and how many values lie above its threshold."""
    threshold = ordered[len(ordered) - 1 - int(share * len(ordered))]
    logs = np.log(ordered[ordered > threshold] / threshold)
    if not len(logs):
        return math.nan, 0
    first, second = float(logs.mean()), float(np.mean(logs**2))
    spread = 1 - first**2 / second
    return (first + 1 - 0.5 / spread if spread > 1e-12 else math.nan), len(logs)


def _verdict(ordered: F8, interval: tuple[float, float], check: float, ratio: float, count: int) -> tuple[str, str]:
    largest = float(ordered[-1])
    if len(ordered) >= FEWEST and ordered[0] == largest:
        return "light", "all have one length"
    at_most = float(np.mean(ordered == largest))
    if at_most >= CUT and len(ordered) >= FEWEST / CUT:
        return "unclear", f"{100 * at_most:.1f} % have exactly {largest:,.0f} tokens: the tail was cut there"
    if count < FEWEST or math.isnan(interval[0]) or math.isnan(check):
        return (
            "unclear",
            f"only {count} requests are longer than nine tenths are; {FEWEST} of different lengths say more",
        )
    low, high = interval
    grounds = f"index {(low + high) / 2:.2f} [{low:.2f}, {high:.2f}] over the top 10 %, {check:.2f} over the top 5 %; "
    grounds += f"P99 is {ratio:.1f} × P50 (exponential: 0 and 6.6)"
    if low > INDEX and (check > INDEX or ratio > RATIO):
        return "heavy", grounds
    if high < INDEX and check < INDEX and ratio < RATIO:
        return "light", grounds
    return "unclear", grounds
