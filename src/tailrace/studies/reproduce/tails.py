"""A run as the distributions that a study of tails is made of: quantiles by level, and what preemption cost.

Times to first token, to last token (E2E) and between tokens are kept at `LEVELS`, so that
percentiles and attainment at any SLO can be read off later. They are those of `Result.summary`;
a test compares.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...metrics import FINISHED, Requests
from ...metrics.statistics import weighted_quantiles
from ...sim.run import Instance
from ...table import LONG, SHORT

__all__ = ["LEVELS", "MEASURES", "TIMES", "level_name", "measure"]

F8 = NDArray[np.float64]

LEVELS: Final = (
    *(round(0.05 * i, 2) for i in range(1, 19)),
    *(round(0.9 + 0.01 * i, 2) for i in range(1, 10)),
    0.995,
    0.999,
)
TIMES: Final = ("ttft", "e2e", "tbt")
GB: Final = 1e9
BACKLOG: Final = (0.2, 0.8)
"""Shares of the completions between which a backlogged engine's rate is taken: neither fill nor drain."""


def level_name(level: float) -> str:
    """``p95`` of 0.95, ``p999`` of 0.999."""
    return "p" + f"{100 * level:g}".replace(".", "")


_DISTRIBUTIONS: Final = tuple(
    name for of in TIMES for name in (f"{of}_mean_s", *(f"{of}_{level_name(q)}_s" for q in LEVELS))
)
_CLASSES: Final = (
    *(f"{kind}_{what}" for kind in ("short", "long") for what in ("e2e_mean_s", "e2e_p99_s", "preempted_p99_s")),
    "long_preempted_mean_s",
    "long_slope_s",
)
_ENGINE: Final = (
    *("requests_per_s", "tokens_per_s", "backlog_rps", "completed", "rejected", "preempted_mean_s"),
    *("preemptions_per_request", "swapped_gb", "swap_tax", "recompute_tax", "escapes", "host_full", "kv_peak_share"),
)
_POLICY: Final = ("gamma_per_s", "gamma_fits", "key_revisions", "revisions_over_bound")
_DRAWN: Final = ("mean_gap_s", "mean_prompt_tokens", "mean_output_tokens", "output_p99_tokens")
MEASURES: Final = (*_DISTRIBUTIONS, *_CLASSES, *_ENGINE, *_POLICY, *_DRAWN)


def measure(run: Instance, skipped: float = 0.0) -> F8:
    """(len(MEASURES),) numbers of a finished run; NaN where nobody reached it.

    ``skipped``: share of the first requests that times leave out; those between tokens are of all
    requests, since they are counted and not kept.
    """
    result = run.result()
    r = result.requests
    kept = np.arange(len(r.arrival_s)) >= skipped * len(r.arrival_s)
    numbers = [
        *_distribution(r.ttft_s[kept]),
        *_distribution(r.e2e_s[kept]),
        *weighted_quantiles(r.gaps.sum(axis=0), r.gap_values_s, float(r.gap_max_s.max(initial=0.0)), LEVELS),
        *_classes(r, kept),
        *_engine(run, r, result.counters, kept),
        *_policy(run, r, result.tallies),
        r.arrival_s[-1] / len(r.arrival_s),
        r.prompt_tokens.mean(),
        r.output_tokens.mean(),
        np.quantile(r.output_tokens, 0.99),
    ]
    return np.array(numbers, dtype=np.float64)


def _distribution(values: F8) -> list[float]:
    """Mean, then the quantiles."""
    known = values[~np.isnan(values)]
    if not len(known):
        return [np.nan] * (1 + len(LEVELS))
    return [float(known.mean()), *np.quantile(known, LEVELS)]


def _classes(r: Requests, kept: NDArray[np.bool_]) -> list[float]:
    """By true length class; the slope is of long requests' E2E over the number of their arrival among all."""
    out = []
    done = kept & (r.reason == FINISHED)
    for kind in (SHORT, LONG):
        of = done & (r.true_class == kind)
        e2e, lost = r.e2e_s[of], r.preempted_s[of]
        out += [e2e.mean(), np.quantile(e2e, 0.99), np.quantile(lost, 0.99)] if of.any() else [np.nan] * 3
    of = done & (r.true_class == LONG)
    out.append(float(r.preempted_s[of].mean()) if of.any() else np.nan)
    order = np.flatnonzero(of)
    out.append(float(np.polyfit(order, r.e2e_s[of], 1)[0]) if len(order) > 2 else np.nan)
    return out


def _engine(run: Instance, r: Requests, c: dict[str, float], kept: NDArray[np.bool_]) -> list[float]:
    done = r.reason == FINISHED
    span, count = r.span_s, int(done.sum())
    ends = np.sort(r.finish_s[done])
    low, high = (int(share * count) for share in BACKLOG)
    between = ends[high] - ends[low] if count > 1 else 0.0
    blocks, size = c.get("swapped_out_blocks", 0) + c.get("swapped_in_blocks", 0), run.rules.block_tokens
    token_bytes = run.config.kv_bytes_per_token or run.latency.kv_bytes_per_token or 0
    return [
        count / span,
        float(r.generated_tokens.sum()) / span,
        (high - low) / between if between > 0 else np.nan,
        count,
        c["rejected"],
        float(r.preempted_s[done & kept].mean()) if (done & kept).any() else np.nan,
        c["preemptions"] / len(r.arrival_s),
        blocks * size * token_bytes / GB,
        c.get("swap_s", 0.0) / c["busy_s"] if c["busy_s"] > 0 else np.nan,
        c["recomputed_tokens"] / c["step_tokens"] if c["step_tokens"] else np.nan,
        c["escapes"],
        c.get("host_full", 0),
        c["most_blocks"] * size / run.kv_tokens,
    ]


def _policy(run: Instance, r: Requests, tallies: dict[str, float]) -> list[float]:
    """γ at the end, and keys given: how many, and to how many requests more than the bound allows."""
    over = np.nan
    guard = getattr(run.engine.state, "guard", None)
    if guard is not None:
        n = len(r.arrival_s)
        k = int(run.params.k_tokens)
        tokens = np.maximum(r.prompt_tokens + r.generated_tokens, k)
        bound = 1 + np.floor(np.log2(tokens / k)).astype(np.int64)
        over = float((np.asarray(guard.revisions)[:n] > bound).sum())
    return [
        tallies.get("gamma_per_s", np.nan),
        tallies.get("gamma_fits", np.nan),
        tallies.get("key_revisions", np.nan),
        over,
    ]
