"""What label errors make of the two true classes.

ε_SL = Pr(predicted long | truly short), ε_LS = Pr(predicted short | truly long). Source: QBA,
arXiv 2610.17795 §II-C.
"""

from __future__ import annotations

from typing import NamedTuple

from ..errors import UserError
from .checks import number, share
from .moments import Moments

__all__ = ["PredictedMoments", "PredictedRates", "predicted_moments", "predicted_rates"]


class PredictedRates(NamedTuple):
    """Arrival rates by predicted class, requests/s."""

    short: float
    long: float


class PredictedMoments(NamedTuple):
    """Service times by predicted class."""

    short: Moments
    long: Moments


def predicted_rates(rate: float, share_long: float, eps_sl: float, eps_ls: float) -> PredictedRates:
    """λ_S and λ_L of the predicted classes (eq. 6, 7); they add up to ``rate``, requests/s.

    ``share_long`` is π_L, the share that is truly long. Raises UserError for a negative rate
    or a probability outside [0, 1].
    """
    long = share("share_long", share_long)
    sl, ls, all_rps = share("eps_sl", eps_sl), share("eps_ls", eps_ls), number("rate", rate)
    short = 1 - long
    return PredictedRates(all_rps * ((1 - sl) * short + ls * long), all_rps * (sl * short + (1 - ls) * long))


def predicted_moments(
    share_long: float, eps_sl: float, eps_ls: float, short: Moments, long: Moments
) -> PredictedMoments:
    """Moments by predicted class from those of the true ones, ``short`` and ``long``.

    Whether a label is wrong is independent of the length within a class, as §IV-A6 has it, so
    each predicted class is a mixture of the true ones. Raises UserError as `predicted_rates`
    does, and if nobody would be predicted short, or long.
    """
    rates = predicted_rates(1.0, share_long, eps_sl, eps_ls)
    for name, of_class in zip(rates._fields, rates, strict=True):
        if not of_class > 0:
            raise UserError(f"nobody is predicted {name} with {share_long=}, {eps_sl=}, {eps_ls=}: it has no moments")
    return PredictedMoments(
        Moments.mix([((1 - eps_sl) * (1 - share_long), short), (eps_ls * share_long, long)]),
        Moments.mix([(eps_sl * (1 - share_long), short), ((1 - eps_ls) * share_long, long)]),
    )
