"""A run as what its requests were promised and got: attainment, token gain, by class; waits; what the policy did.

Attainment and gain are those of `metrics`; a test compares. Shares of steps are those of the policy's
findings, where it has any.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...metrics import Requests, attainment, gain
from ...sim.run import Instance

__all__ = ["MEASURES", "SERVICE_PRICE", "measure"]

F8 = NDArray[np.float64]

CLASSES: Final = ("high", "low")
"""The first two classes of the workload, whatever they are called there."""
OF_GROUP: Final = ("attainment", "ttft_attainment", "tpot_attainment", "tdg_ratio")
TIMES: Final = ("ttft_mean_s", "ttft_p99_s", "tpot_mean_s", "tpot_p99_s", "e2e_mean_s", "e2e_p99_s")
WAITS: Final = ("wait_longest_s", "wait_p99_s", "low_wait_longest_s")
ENGINE: Final = (
    *("requests_per_s", "preemptions_per_request", "recompute_tax", "swap_tax", "swapped_gb", "host_full"),
    *("kv_peak_share", "completed_share", "rejected", "step_mean_s", "requests_a_step", "most_waiting"),
)
REGIMES: Final = ("unbounded", "all_fit", "deadline", "deadline_and_density", "density")
RANKED: Final = ("urgent", "hopeless", "starving")
SERVICE_PRICE: Final = (1.0, 2.0)
"""What a prompt and an output token count in a class's service, as in VTC (arXiv 2401.00588)."""
BACKLOGGED: Final = (0.2, 0.9)
"""Shares of the arrivals' span between which service is compared: the queue is there, and nobody has left it."""
MEASURES: Final = (
    *OF_GROUP,
    *(f"{kind}_{what}" for kind in CLASSES for what in OF_GROUP),
    *TIMES,
    *WAITS,
    *ENGINE,
    *(f"{name}_steps_share" for name in REGIMES),
    *(f"{name}_share" for name in RANKED),
    "service_ratio",
)


def measure(run: Instance, skipped: float = 0.0) -> F8:
    """(len(MEASURES),) numbers of a finished run; NaN where nobody reached it.

    ``skipped``: share of the first requests that attainment, gain and times leave out.
    """
    result = run.result()
    r = result.requests
    n = len(r.arrival_s)
    kept = np.arange(n) >= skipped * n
    groups = [kept, *(kept & (r.class_id == i) for i in range(len(CLASSES)))]
    numbers = [
        *(value for group in groups for value in _of_group(r, group)),
        *_times(r, kept),
        *_waits(r, kept),
        *_engine(run, r, result.counters),
        *_shares(result.tallies),
        _service_ratio(r),
    ]
    return np.array([np.nan if value is None else value for value in numbers], dtype=np.float64)


def _of_group(r: Requests, group: NDArray[np.bool_]) -> list[float | None]:
    met = attainment(r, group) if group.any() else None
    worth = gain(r, group) if group.any() else None
    slo = [None] * 3 if met is None else [met[name] for name in OF_GROUP[:3]]
    return [*slo, None if worth is None else worth["tdg_ratio"]]


def _times(r: Requests, kept: NDArray[np.bool_]) -> list[float]:
    out: list[float] = []
    for values in (r.ttft_s[kept], r.tpot_s[kept], r.e2e_s[kept]):
        known = values[~np.isnan(values)]
        out += [float(known.mean()), float(np.quantile(known, 0.99))] if len(known) else [np.nan] * 2
    return out


def _waits(r: Requests, kept: NDArray[np.bool_]) -> list[float]:
    """Until the first chunk starts. The longest are of all requests, since a bound is one for all."""
    known = r.wait_s[kept & ~np.isnan(r.wait_s)]
    p99 = float(np.quantile(known, 0.99)) if len(known) else np.nan
    low = r.wait_s[r.class_id == 1]
    return [_longest(r.wait_s), p99, _longest(low)]


def _longest(waits: F8) -> float:
    known = waits[~np.isnan(waits)]
    return float(known.max()) if len(known) else np.nan


def _engine(run: Instance, r: Requests, c: dict[str, float]) -> list[float]:
    done = ~np.isnan(r.finish_s)
    n, size = len(r.arrival_s), run.rules.block_tokens
    blocks = c.get("swapped_out_blocks", 0) + c.get("swapped_in_blocks", 0)
    token_bytes = run.config.kv_bytes_per_token or run.latency.kv_bytes_per_token or 0
    return [
        float(done.sum()) / r.span_s if done.any() else np.nan,
        c["preemptions"] / n,
        c["recomputed_tokens"] / c["step_tokens"] if c["step_tokens"] else np.nan,
        c.get("swap_s", 0.0) / c["busy_s"] if c["busy_s"] > 0 else np.nan,
        blocks * size * token_bytes / 1e9,
        c.get("host_full", 0.0),
        c["most_blocks"] * size / run.kv_tokens,
        float(done.sum()) / n,
        c["rejected"],
        c["busy_s"] / c["steps"] if c["steps"] else np.nan,
        c["request_steps"] / c["steps"] if c["steps"] else np.nan,
        c["most_waiting"],
    ]


def _shares(tallies: dict[str, float]) -> list[float]:
    """Of steps by what decided who was served, and of request-steps by rank; NaN where the policy has no findings."""
    steps = [float(tallies.get(f"{name}_steps", np.nan)) for name in REGIMES]
    requests = float(tallies.get("request_steps", np.nan))
    ranked = [float(tallies.get(f"{name}_request_steps", np.nan)) for name in RANKED]
    total = sum(steps)
    return [
        *((v / total if total else np.nan) for v in steps),
        *((v / requests if requests else np.nan) for v in ranked),
    ]


def _service_ratio(r: Requests) -> float:
    """Service of the first class over the second's while both had more than they were served."""
    begin, end = (r.arrival_s[0] + share * (r.arrival_s[-1] - r.arrival_s[0]) for share in BACKLOGGED)
    served = [_service(r, r.class_id == kind, begin, end) for kind in range(len(CLASSES))]
    return served[0] / served[1] if served[1] > 0 else np.nan


def _service(r: Requests, of: NDArray[np.bool_], begin: float, end: float) -> float:
    """Priced tokens served between the times; outputs spread evenly from first token to last."""
    started, first, finish = r.started_s[of], r.first_token_s[of], r.finish_s[of]
    with np.errstate(invalid="ignore", divide="ignore"):
        prompts = r.prompt_tokens[of] * ((started >= begin) & (started < end))
        length = finish - first
        part = np.clip(end, first, finish) - np.clip(begin, first, finish)
        share = np.where(length > 0, part / length, (first >= begin) & (first < end))
    outputs: Any = r.output_tokens[of] * np.nan_to_num(share)
    return float(SERVICE_PRICE[0] * prompts.sum() + SERVICE_PRICE[1] * outputs.sum())
