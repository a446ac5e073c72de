"""A run as `vllm bench serve --save-result --save-detailed` writes it, so that its tools can read ours.

Keys, units (statistics in ms, lists in s) and who counts are those of vLLM 0.32: lists have
an entry a request, 0 or empty for one that failed, statistics and totals are of those that
finished. What a simulation does not have is null or empty: ``date`` (the same run must give
the same bytes), ``tokenizer_id``, ``generated_texts``. Everything else of a result stands
under ``tailrace``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .. import files
from ..metrics import FINISHED
from ..metrics.requests import F8, I8, Requests
from ..sim.watch import token_times
from .clean import finite

if TYPE_CHECKING:
    from ..sim.watch import Watched

__all__ = ["bench", "write_bench"]

PERCENTILES: Final = (50.0, 90.0, 95.0, 99.0, 99.9)
LISTS: Final = ("input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "queue_times", "errors")
ENDED: Final = ("unfinished", "", "aborted", "rejected: needs more KV than there is")
"""``errors``, by ``Requests.reason``."""


def write_bench(path: str, watched: Watched, document: Mapping[str, Any]) -> None:
    """Write ``watched`` to ``path`` whole or not at all; ``document`` is that of its policy alone. Raises UserError."""
    found = bench(watched, document)
    lists = {key: found[key] for key in LISTS}  # long, and without NaN
    text = json.dumps({key: lists[key] if key in lists else finite(found[key]) for key in found}, allow_nan=False)
    files.write_text(path, text + "\n")


def bench(watched: Watched, document: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object."""
    r, meta, tokens = watched.result.requests, watched.result.meta, token_times(watched)
    (result,) = document["results"]
    rate = meta["workload"]["rate_rps"]
    return {
        "date": None,
        "endpoint_type": "tailrace",
        "backend": "tailrace",
        "label": result["label"],
        "model_id": meta["engine"]["latency"]["name"],
        "tokenizer_id": None,
        "num_prompts": len(r.arrival_s),
        "request_rate": "inf" if rate is None else rate,
        "burstiness": _burstiness(r.arrival_s),
        "max_concurrency": None,
        **_totals(r, result),
        **_lists(r, *tokens),
        **_peaks(watched),
        "rtfx": 0.0,
        **_statistics(r, *tokens),
        "tailrace": dict(document),
    }


def _burstiness(arrival_s: F8) -> float | None:
    """Shape of the gamma law with the arrivals' coefficient of variation: 1/CV², 1 for Poisson."""
    gaps = np.diff(arrival_s)
    spread = float(gaps.std()) if len(gaps) else 0.0
    return (float(gaps.mean()) / spread) ** 2 if spread > 0 else None


def _totals(r: Requests, result: Mapping[str, Any]) -> dict[str, Any]:
    done = r.reason == FINISHED
    completed, span = int(done.sum()), r.span_s
    prompts, outputs = int(r.prompt_tokens[done].sum()), int(r.output_tokens[done].sum())
    slo = result.get("slo")
    return {
        "duration": span,
        "completed": completed,
        "failed": len(done) - completed,
        "total_input_tokens": prompts,
        "total_output_tokens": outputs,
        "request_throughput": _rate(completed, span),
        "request_goodput": slo["goodput_rps"] if slo else None,
        "output_throughput": _rate(outputs, span),
        "total_token_throughput": _rate(prompts + outputs, span),
    }


def _rate(amount: float, seconds: float) -> float:
    return amount / seconds if seconds > 0 else math.nan


def _lists(r: Requests, times: F8, starts: I8) -> dict[str, Any]:
    """Detail by request, in order of arrival; ``times``, ``starts`` as `token_times` gives them."""
    done, n = r.reason == FINISHED, len(r.arrival_s)
    gaps = [np.diff(times[starts[i] : starts[i + 1]]).tolist() if done[i] else [] for i in range(n)]
    return {
        "input_lens": r.prompt_tokens.tolist(),
        "output_lens": np.where(done, r.output_tokens, 0).tolist(),
        "ttfts": np.where(done, r.ttft_s, 0.0).tolist(),
        "itls": gaps,
        "latencies": np.where(done, r.e2e_s, 0.0).tolist(),
        "start_times": r.arrival_s.tolist(),
        "queue_times": [0.0] * n,
        "generated_texts": [""] * n,
        "errors": [ENDED[reason] for reason in r.reason],
    }


def _peaks(watched: Watched) -> dict[str, Any]:
    """Most tokens, and most requests in the system, in one of the seconds since the first arrival."""
    r = watched.result.requests
    done = r.reason == FINISHED
    if not done.any():
        return {"max_output_tokens_per_s": 0.0, "max_concurrent_requests": 0}
    first = float(r.arrival_s[done][0])
    mine = done[watched.token_row]
    seconds = (watched.token_s[mine] - first).astype(np.int64)
    tokens = np.bincount(seconds, weights=watched.token_count[mine])
    begin, end = ((times[done] - first).astype(np.int64) for times in (r.arrival_s, r.finish_s))
    change = np.bincount(begin, minlength=int(end.max()) + 2) - np.bincount(end + 1, minlength=int(end.max()) + 2)
    return {
        "max_output_tokens_per_s": float(tokens.max()),
        "max_concurrent_requests": int(np.cumsum(change).max()),
    }


def _statistics(r: Requests, times: F8, starts: I8) -> dict[str, float]:
    """Mean, median, standard deviation and percentiles of each metric, in ms."""
    done = r.reason == FINISHED
    gaps, last = np.diff(times), starts[1:-1] - 1
    inside = np.ones(len(gaps), dtype=bool)
    inside[last[(last >= 0) & (last < len(gaps))]] = False
    owner = np.repeat(np.arange(len(done)), np.diff(starts))[:-1]
    samples = {
        "ttft": r.ttft_s[done],
        "tpot": r.tpot_s[done & (r.output_tokens > 1)],
        "itl": gaps[inside & done[owner]] if len(gaps) else gaps,
        "e2el": r.e2e_s[done],
    }
    out: dict[str, Any] = {}
    for name, seconds in samples.items():
        ms = 1000 * seconds if len(seconds) else np.zeros(1)
        out |= {f"mean_{name}_ms": ms.mean(), f"median_{name}_ms": np.median(ms), f"std_{name}_ms": ms.std()}
        out |= {
            f"p{p:g}_{name}_ms": value for p, value in zip(PERCENTILES, np.percentile(ms, PERCENTILES), strict=True)
        }
    return {key: float(value) for key, value in out.items()}
