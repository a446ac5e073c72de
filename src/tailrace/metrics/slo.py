"""Service level objectives: who met them, and how many such requests a second."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .requests import FINISHED, Requests

__all__ = ["attainment", "met"]

Mask = NDArray[np.bool_]


def met(r: Requests) -> tuple[Mask, Mask]:
    """``(TTFT met, TPOT met)`` by request; an objective that is not set is met by finishing.

    A time meets an objective that it is strictly under (ProServe, arXiv 2512.12928, "Metrics").
    A request that did not finish meets none. One with a single output token has no TPOT,
    and meets any (as in vLLM's benchmark).
    """
    done = r.reason == FINISHED
    with np.errstate(invalid="ignore"):
        first = done & r.first_on_time
        later = done & ((r.output_tokens <= 1) | (r.tpot_s < r.tpot_slo_s))
    return first, later


def attainment(r: Requests, keep: Mask | None = None) -> dict[str, float | None] | None:
    """The ``slo`` object of the requests in ``keep``; None where none has an objective.

    Shares are of the requests that have that objective, however they ended; goodput counts
    those that met all of theirs, a second of the run (first arrival to last finish).
    """
    mask = np.ones(len(r.arrival_s), dtype=bool) if keep is None else keep
    has_ttft, has_tpot = mask & np.isfinite(r.ttft_slo_s), mask & np.isfinite(r.tpot_slo_s)
    either = has_ttft | has_tpot
    if not either.any():
        return None
    first, later = met(r)
    good, span = int((either & first & later).sum()), r.span_s
    return {
        "attainment": good / int(either.sum()),
        "goodput_rps": good / span if span > 0 else None if good else 0.0,
        "ttft_attainment": _share(first, has_ttft),
        "tpot_attainment": _share(later, has_tpot),
    }


def _share(good: Mask, of: Mask) -> float | None:
    total: Any = of.sum()
    return float((good & of).sum() / total) if total else None
