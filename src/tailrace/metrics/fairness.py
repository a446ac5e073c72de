"""How evenly service is spread: slowdowns, and Jain's index of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .requests import F8, FINISHED, REJECTED, Requests
from .statistics import statistics

__all__ = ["fairness", "jain", "slowdown"]


def jain(shares: F8) -> float | None:
    """(Σx)² / (n·Σx²): 1 when all have the same, 1/n when one has everything; None for nothing.

    Source: Jain, Chiu, Hawe, "A quantitative measure of fairness and discrimination for
    resource allocation in shared computer systems", DEC-TR-301, 1984, equation 1.
    """
    squares = float(shares @ shares)
    return float(shares.sum()) ** 2 / (len(shares) * squares) if squares > 0 else None


def slowdown(r: Requests) -> F8:
    """E2E over what the request takes by itself; NaN where it did not finish."""
    return r.e2e_s / r.alone_s


def fairness(r: Requests, keep: NDArray[np.bool_] | None = None) -> dict[str, Any]:
    """``{"slowdown", "jain_requests"}``, and ``"jain_tenants"`` where there are several.

    The share x of a request is its normalised service, 1/slowdown, and 0 if it did not
    finish; of a tenant, the mean of its requests. Rejected ones got no say from any policy
    and are left out.
    """
    mask = r.reason != REJECTED if keep is None else keep & (r.reason != REJECTED)
    slow = slowdown(r)
    share = np.where(r.reason == FINISHED, 1 / slow, 0.0)[mask]
    out: dict[str, Any] = {"slowdown": statistics(slow[mask]), "jain_requests": jain(share)}
    tenants, of = np.unique(r.tenant[mask], return_inverse=True)
    if len(tenants) > 1:
        out["jain_tenants"] = jain(np.bincount(of, weights=share) / np.bincount(of))
    return out
