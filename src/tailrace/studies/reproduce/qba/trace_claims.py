"""What arXiv 2610.17795 says of the production trace (Table II and §IV-E), by protocol."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from ..claims import Claim, Verdict
from ..measure import F8
from ..verdicts import all_hold, below, between, median_below, ratio
from .claims import CLAIMS, View
from .published import UTILISATION
from .windows import every

__all__ = ["PROTOCOLS"]

PROTOCOLS: Final = {
    "paper": "by the paper's protocol on the 2023 trace",
    "demand_matched": "on the 2023 trace with the demand matched",
}
"""The paper's own trace is another, or a larger part: burstier, and of more tokens."""


def _on(protocol: str, decide: Callable[[View, str], Verdict]) -> Callable[[View], Verdict]:
    return lambda view: decide(view, protocol)


def _of(view: View, policy: str, metric: str, protocol: str) -> F8:
    return view.of("table2", policy, metric, protocol=protocol)


def _apart(view: View, policy: str, metric: str, protocol: str) -> F8:
    """Of windows without a request in common."""
    values = _of(view, policy, metric, protocol)
    return values[:: every(protocol, len(values))]


def _means(view: View, protocol: str) -> tuple[F8, F8, F8]:
    """FCFS's, PSF's and QBA's mean waits in windows that do not overlap."""
    fcfs, psf, qba = (_apart(view, policy, "wait_mean_s", protocol) for policy in ("fcfs", "psf", "qba"))
    return fcfs, psf, qba


def _share(view: View, metric: str, order: Sequence[str], protocol: str) -> float:
    """Share of windows in which the policies ascend in this order."""
    values = np.array([_of(view, policy, metric, protocol) for policy in order])
    return float((np.diff(values, axis=0) > 0).all(axis=0).mean())


def _medians(view: View, metric: str, order: Sequence[str], protocol: str) -> Verdict:
    """Whether neighbours in this order are told apart by the median of their paired differences."""
    values = [_apart(view, policy, metric, protocol) for policy in order]
    found = [float(np.nanmedian(_of(view, policy, metric, protocol))) for policy in order]
    why = ", ".join(f"{policy.upper()} {value:.3g} s" for policy, value in zip(order, found, strict=True))
    return all_hold(median_below(a, b) for a, b in itertools.pairwise(values)), why


def _gain(view: View, protocol: str) -> Verdict:
    fcfs, psf, qba = _means(view, protocol)
    found = (ratio(psf, fcfs), ratio(qba, fcfs))
    parts = (between(found[0], 0.59, 0.79), between(found[1], 0.72, 0.92))
    windows = f"over {len(fcfs)} windows without a request in common"
    return all_hold(parts), f"PSF/FCFS {found[0]} (paper 0.69), QBA/FCFS {found[1]} (0.82), {windows}"


def _kept(view: View, protocol: str) -> Verdict:
    fcfs, psf, qba = _means(view, protocol)
    if below(psf, fcfs) is not True:
        return None, f"PSF gains nothing here that could be kept: PSF/FCFS {ratio(psf, fcfs)}"
    found = ratio(fcfs - qba, fcfs - psf)
    return between(found, 0.44, 0.74), f"share kept {found} over {len(fcfs)} windows without a request in common"


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


def _cut(view: View, protocol: str) -> Verdict:
    psf, qba = (_apart(view, policy, "long_wait_p99_s", protocol) for policy in ("psf", "qba"))
    return median_below(qba, psf), f"medians QBA {np.nanmedian(qba):.3g} s, PSF {np.nanmedian(psf):.3g} s"


def _engines(view: View, metric: str, protocol: str) -> list[float]:
    return [float(_of(view, policy, metric, protocol).mean()) for policy in ("fcfs", "psf", "aa", "qba")]


def _throughput(view: View, protocol: str) -> Verdict:
    tokens = _engines(view, "tokens_per_s", protocol)
    return max(tokens) / min(tokens) <= 1.02, f"{min(tokens):,.0f} to {max(tokens):,.0f} tokens/s (paper 24,700)"


def _utilisation(view: View, protocol: str) -> Verdict:
    used, (low, high) = _engines(view, "utilisation", protocol), UTILISATION
    return all(low - 0.02 <= u <= high + 0.02 for u in used), f"{min(used):.2f} to {max(used):.2f}"


def _no_oom(view: View, protocol: str) -> Verdict:
    over = _engines(view, "over_limit_steps", protocol)
    return not any(over), f"{sum(over):.3g} steps a window over the KV's capacity"


_CLAIMS: Final = (
    ("PSF's mean wait is about 31 % and QBA's about 18 % below FCFS's (each within 10 points)", _gain),
    ("QBA keeps about 59 % of PSF's gain in mean wait (within 15 points)", _kept),
    ("Mean wait: PSF < QBA < AA in all windows", _order_of_means),
    ("True-long P99 is the other way round, AA < QBA < PSF, in at least 95 % of windows", _order_of_long),
    ("P99 wait: FCFS < AA < QBA < PSF (medians)", _order_of_tails),
    ("True-short P99: PSF < QBA < FCFS < AA (medians)", _order_of_short),
    ("QBA's true-long P99 is below PSF's (medians)", _cut),
    ("All policies have the same throughput (within 2 %)", _throughput),
    ("Utilisation is 0.89 to 0.91 (± 0.02)", _utilisation),
    ("No step has more live KV than there is", _no_oom),
)

for _protocol, _name in PROTOCOLS.items():
    for _text, _decide in _CLAIMS:
        CLAIMS.append(Claim("table2", f"{_text}, {_name}", _on(_protocol, _decide)))
