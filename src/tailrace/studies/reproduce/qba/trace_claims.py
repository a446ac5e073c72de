"""What arXiv 2610.17795 says of the production trace (Table II and §IV-E), by protocol."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from ..measure import F8
from ..verdicts import all_hold, between, ratio
from .claims import CLAIMS, Claim, Verdict, View
from .published import UTILISATION

__all__ = ["PROTOCOLS"]

APART: Final = {"paper": 100, "demand_matched": 17}
"""Of the windows, how many can be chosen evenly that have no request in common: 17 of 1,000 in 19,366."""
PROTOCOLS: Final = {"paper": "the paper's windows", "demand_matched": "the demand-matched windows"}


def _on(protocol: str, decide: Callable[[View, str], Verdict]) -> Callable[[View], Verdict]:
    return lambda view: decide(view, protocol)


def _of(view: View, policy: str, metric: str, protocol: str) -> F8:
    return view.of("table2", policy, metric, protocol=protocol)


def _means(view: View, protocol: str) -> tuple[F8, F8, F8]:
    """FCFS's, PSF's and QBA's mean waits in windows that do not overlap."""
    fcfs, psf, qba = (_of(view, policy, "wait_mean_s", protocol) for policy in ("fcfs", "psf", "qba"))
    every = max(1, round(len(fcfs) / APART[protocol]))
    return fcfs[::every], psf[::every], qba[::every]


def _share(view: View, metric: str, order: Sequence[str], protocol: str) -> float:
    """Share of windows in which the policies ascend in this order."""
    values = np.array([_of(view, policy, metric, protocol) for policy in order])
    return float((np.diff(values, axis=0) > 0).all(axis=0).mean())


def _medians(view: View, metric: str, order: Sequence[str], protocol: str) -> Verdict:
    """Whether the medians over windows ascend in this order."""
    found = [float(np.nanmedian(_of(view, policy, metric, protocol))) for policy in order]
    why = ", ".join(f"{policy.upper()} {value:.3g} s" for policy, value in zip(order, found, strict=True))
    return all(a < b for a, b in itertools.pairwise(found)), why


def _gain(view: View, protocol: str) -> Verdict:
    fcfs, psf, qba = _means(view, protocol)
    found = (ratio(psf, fcfs), ratio(qba, fcfs))
    parts = (between(found[0], 0.59, 0.79), between(found[1], 0.72, 0.92))
    return all_hold(parts), f"PSF/FCFS {found[0]} (paper 0.69), QBA/FCFS {found[1]} (0.82)"


def _kept(view: View, protocol: str) -> Verdict:
    fcfs, psf, qba = _means(view, protocol)
    found = ratio(fcfs - qba, fcfs - psf)
    return between(found, 0.44, 0.74), f"share kept {found} (paper 0.59)"


def _order_of_means(view: View, protocol: str) -> Verdict:
    share = _share(view, "wait_mean_s", ("psf", "qba", "aa"), protocol)
    return share == 1.0, f"in {share:.0%} of windows"


def _order_of_long(view: View, protocol: str) -> Verdict:
    share = _share(view, "long_wait_p99_s", ("aa", "qba", "psf"), protocol)
    return share >= 0.95, f"in {share:.0%} of windows"


def _order_of_tails(view: View, protocol: str) -> Verdict:
    return _medians(view, "wait_p99_s", ("fcfs", "aa", "qba", "psf"), protocol)


def _order_of_short(view: View, protocol: str) -> Verdict:
    return _medians(view, "short_wait_p99_s", ("psf", "qba", "fcfs", "aa"), protocol)


def _engine(view: View, protocol: str) -> Verdict:
    policies = ("fcfs", "psf", "aa", "qba")
    tokens, used, over = (
        [float(_of(view, policy, metric, protocol).mean()) for policy in policies]
        for metric in ("tokens_per_s", "utilisation", "over_limit_steps")
    )
    low, high = UTILISATION
    same = max(tokens) / min(tokens) <= 1.02
    inside = all(low - 0.02 <= u <= high + 0.02 for u in used)
    why = f"{min(tokens):,.0f} to {max(tokens):,.0f} tokens/s, utilisation {min(used):.2f} to {max(used):.2f}"
    return same and inside and not any(over), f"{why}, {sum(over):.3g} steps a window over the KV's capacity"


_CLAIMS: Final = (
    ("PSF's mean wait is about 31 % and QBA's about 18 % below FCFS's (each within 10 points)", _gain),
    ("QBA keeps about 59 % of PSF's gain in mean wait (within 15 points)", _kept),
    ("Mean wait: PSF < QBA < AA in all windows", _order_of_means),
    ("True-long P99 is the other way round, AA < QBA < PSF, in at least 95 % of windows", _order_of_long),
    ("P99 wait: FCFS < AA < QBA < PSF (medians)", _order_of_tails),
    ("True-short P99: PSF < QBA < FCFS < AA (medians)", _order_of_short),
    ("All policies have the same throughput (within 2 %), utilisation 0.89 to 0.91 (± 0.02), no OOM", _engine),
)

for _protocol, _name in PROTOCOLS.items():
    for _text, _decide in _CLAIMS:
        CLAIMS.append(Claim("table2", f"{_text}, on {_name}", _on(_protocol, _decide)))
