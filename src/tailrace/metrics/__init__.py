"""What clients and operators measure, from one run's requests and token gaps.

docs/metrics.md defines each: its unit, its formula and who counts.

    requests    the arrays of a run, and the times of a request
    statistics  mean, percentiles and maximum, of values or of a histogram
    summary     counts and metrics of all requests or of a group of them
    slo         attainment and goodput
    gain        what tokens were worth that came in time
    fairness    slowdowns, Jain's index
    state       STABLE, BACKLOGGED or OVERLOADED; starvation; whether anybody waited
    seeds       means, confidence intervals and paired differences over seeds
"""

from __future__ import annotations

from .fairness import fairness, jain
from .gain import gain, token_weights
from .requests import ABORTED, FINISHED, REJECTED, Requests
from .seeds import combine, paired
from .slo import attainment, met
from .state import QUIET_S, STATES, load_state, queueing, starvation
from .statistics import STATISTICS, statistics, weighted_statistics
from .summary import summarise

__all__ = ["ABORTED", "FINISHED", "QUIET_S", "REJECTED", "STATES", "STATISTICS", "Requests", "attainment", "combine"]
__all__ += ["fairness", "gain", "jain", "load_state", "met", "paired", "queueing", "starvation", "statistics"]
__all__ += ["summarise", "token_weights", "weighted_statistics"]
