"""One run's requests as arrays, and the times a client sees.

wait  queueing delay: start of the first chunk − arrival.
ttft  time to first token − arrival.
tpot  (E2E − TTFT)/(n − 1), one mean a request; undefined for one output token.
e2e   end of the last step − arrival.

Times are seconds. Requests that never started, or never finished, have no value for what
they did not reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["ABORTED", "F8", "FINISHED", "I8", "REJECTED", "Requests"]

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

FINISHED: Final = 1
ABORTED: Final = 2
REJECTED: Final = 3
"""``Requests.reason``; 0 = still in the system when the run ended."""


@dataclass(frozen=True)
class Requests:
    """One run's requests, arrays of n in order of arrival; NaN where it was not reached."""

    arrival_s: F8
    started_s: F8
    first_token_s: F8
    finish_s: F8
    prompt_tokens: I8
    output_tokens: I8
    generated_tokens: I8
    preemptions: I8
    recomputed_tokens: I8
    preempted_s: F8
    """Time lost to preemptions: from the start of the step it was put out of until it resumed or left."""
    gap_max_s: F8
    alone_s: F8
    """What it would take by itself on an idle engine without a prefix cache."""
    ttft_slo_s: F8
    """Infinity when none is set."""
    tpot_slo_s: F8
    on_time_tokens: I8
    """Output tokens after the first that came before they were due; -1 where they are never due."""
    class_id: I8
    weight: F8
    """The operator's, of its class."""
    tenant: I8
    session: I8
    """-1 = none."""
    true_class: I8
    predicted_class: I8
    reason: I8
    group: I8
    """Row of ``gaps`` it counts in."""
    gaps: I8
    """(groups, bins) gaps between tokens."""
    gap_values_s: F8
    """(bins,) seconds a bin stands for."""

    @property
    def wait_s(self) -> F8:
        return self.started_s - self.arrival_s

    @property
    def ttft_s(self) -> F8:
        return self.first_token_s - self.arrival_s

    @property
    def first_on_time(self) -> NDArray[np.bool_]:
        """Whether its first token came before it was due, whatever came of the request then."""
        with np.errstate(invalid="ignore"):
            return self.ttft_s < self.ttft_slo_s

    @property
    def e2e_s(self) -> F8:
        return self.finish_s - self.arrival_s

    @property
    def tpot_s(self) -> F8:
        gaps = np.where(self.output_tokens > 1, self.output_tokens - 1, np.nan)
        return (self.finish_s - self.first_token_s) / gaps

    @property
    def span_s(self) -> float:
        """First arrival to last finish; NaN if nothing finished."""
        ends = self.finish_s[~np.isnan(self.finish_s)]
        return float(ends.max() - self.arrival_s[0]) if len(ends) else float("nan")
