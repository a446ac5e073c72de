"""A run as the few numbers that a paper's figures and tables are made of.

A study makes tens of thousands of runs: what a run saw is reduced where it was made, and
only the numbers are kept. They are those of `Result.summary`; a test compares.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...metrics import FINISHED
from ...sim.run import Instance
from ...table import LONG, SHORT

__all__ = ["CONTROLS", "MEASURES", "measure"]

F8 = NDArray[np.float64]

WAITS: Final = ("wait_mean_s", "wait_p99_s", "short_wait_p99_s", "long_wait_p99_s", "ttft_p99_s", "e2e_mean_s")
ENGINE: Final = ("tokens_per_s", "utilisation", "over_limit_steps", "preemptions")
COUNTS: Final = ("started", "completed", "rejected", "predicted_long_started", "promoted", "arrival_scv")
CONTROLS: Final = ("mean_gap_s", "mean_prompt_tokens", "mean_output_tokens")
"""What was drawn: the load that a seed happened to bring."""
MEASURES: Final = (*WAITS, *ENGINE, *COUNTS, *CONTROLS)


def measure(run: Instance, skipped: float = 0.0) -> F8:
    """(len(MEASURES),) numbers of a finished run; NaN where nobody reached it.

    ``skipped``: share of the first requests that waits leave out.
    """
    table, out, w = run.buffers.table, run.records.out, run.workload
    n = len(w)
    arrival = table["arrival_s"][:n]
    wait, finish = table["started_s"][:n] - arrival, out["finish_s"][:n]
    kept = np.arange(n) >= skipped * n
    classes = [kept & (w.true_class == kind) for kind in (SHORT, LONG)]
    waits = [
        *_mean_and_p99(wait[kept]),
        *(_mean_and_p99(wait[of])[1] for of in classes),
        _mean_and_p99(table["first_token_s"][:n][kept] - arrival[kept])[1],
        _mean_and_p99((finish - arrival)[kept])[0],
    ]
    reason = out["reason"][:n]
    done, counters = reason == FINISHED, run.records.counters
    tokens = int(table["generated_tokens"][:n].sum() + table["prompt_tokens"][:n][done].sum())
    span = float(np.nanmax(finish) - arrival[0]) if done.any() else np.nan
    steps = int(counters["steps"][0])
    engine = [
        tokens / span if span > 0 else np.nan,
        int(counters["step_tokens"][0]) / (steps * run.config.token_budget) if steps else np.nan,
        int(counters["over_limit_steps"][0]),
        int(counters["preemptions"][0]),
    ]
    tallies = run.policy.tallies(run.engine.state)
    gaps = np.diff(arrival)
    counts = [
        int(np.isfinite(wait).sum()),
        int(done.sum()),
        int(counters["rejected"][0]),
        tallies.get("predicted_long_started", np.nan),
        tallies.get("promoted", np.nan),
        float(gaps.var() / gaps.mean() ** 2) if len(gaps) and gaps.mean() > 0 else np.nan,
    ]
    drawn = [arrival[-1] / n, w.prompt_tokens.mean(), w.output_tokens.mean()]
    return np.array([*waits, *engine, *counts, *drawn], dtype=np.float64)


def _mean_and_p99(values: F8) -> tuple[float, float]:
    known = values[~np.isnan(values)]
    if not len(known):
        return np.nan, np.nan
    return float(known.mean()), float(np.quantile(known, 0.99))
