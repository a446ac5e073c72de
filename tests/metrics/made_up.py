"""Requests by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from tailrace.metrics import Requests
from tailrace.sim.record import GAP_BINS, gap_values


def requests(n: int = 4, **changes: Any) -> Requests:
    """Four requests: two finished (5 tokens, 1 token), one still decoding, one rejected; or ``n`` idle ones."""
    nan = np.nan
    columns: dict[str, Any] = {
        "arrival_s": np.array([0.0, 1.0, 2.0, 3.0]),
        "started_s": np.array([0.0, 3.0, 2.5, nan]),
        "first_token_s": np.array([1.0, 4.0, 3.0, nan]),
        "finish_s": np.array([3.0, 4.0, nan, nan]),
        "output_tokens": np.array([5, 1, 10, 3]),
        "reason": np.array([1, 1, 0, 3]),
        "gaps": np.zeros((1, GAP_BINS), dtype=np.int64),
        "gap_values_s": gap_values(),
    }
    if n != 4:
        columns |= {name: np.zeros(n) for name in ("arrival_s", "started_s", "first_token_s", "finish_s")}
        columns |= {"output_tokens": np.ones(n, dtype=np.int64), "reason": np.ones(n, dtype=np.int64)}
    zeros = ("generated_tokens", "preemptions", "recomputed_tokens", "gap_max_s", "group", "session")
    zeros += ("class_id", "tenant", "true_class", "predicted_class")  # type: ignore[assignment]
    columns |= {name: np.zeros(n, dtype=np.int64) for name in zeros} | {"prompt_tokens": np.ones(n, dtype=np.int64)}
    columns |= {
        "preempted_s": np.zeros(n),
        "on_time_tokens": np.full(n, -1),
        "weight": np.ones(n),
        "alone_s": np.ones(n),
        "ttft_slo_s": np.full(n, np.inf),
        "tpot_slo_s": np.full(n, np.inf),
    }
    return Requests(**{**columns, **changes})


def queued(arrival_s: Any, started_s: Any, work: Any = 1) -> Requests:
    """Requests of ``work`` tokens that start at these times and end a second later."""
    arrival, started = np.asarray(arrival_s, dtype=float), np.asarray(started_s, dtype=float)
    prompt = np.broadcast_to(np.asarray(work), arrival.shape) - 1
    times = {"arrival_s": arrival, "started_s": started, "first_token_s": started + 1, "finish_s": started + 1}
    return requests(len(arrival) if len(arrival) != 4 else 5, **times, prompt_tokens=prompt)
