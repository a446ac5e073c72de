"""Waits by formula: the QBA paper's reduced M/G/n model (arXiv 2610.17795, eq. 1-15), and M/G/1 by order of service.

It stands alone: no simulator, no policy. docs/queueing.md says what holds and what does not.

    erlang      Erlang B and C
    moments     E[S], E[S²], mixtures
    service     seconds of a request from its tokens, fits, effective servers
    squares     least squares that adds up over traces
    waits       Allen-Cunneen, two priority classes, promotion
    labels      rates and moments by predicted class under label errors
    curve       promoted fractions over the load
    surrogate   all of it: wait and response by policy and rate
    single      one server: means of fcfs, las and srpt; decay rate and constants of the tail
"""

from __future__ import annotations

from .curve import Curve
from .erlang import erlang_b, erlang_c
from .labels import predicted_moments, predicted_rates
from .moments import Moments
from .service import DiscreteService, Service, decode_kv_tokens, effective_servers, safe_servers
from .single import (
    ServiceTimes,
    boost_tail_constant,
    decay_rate,
    fcfs_mean_s,
    fcfs_tail_constant,
    las_mean_s,
    srpt_mean_s,
)
from .squares import LeastSquares
from .surrogate import Surrogate
from .waits import TwoClass, allen_cunneen, matching_servers, promoted, two_class, utilisation

__all__ = ["Curve", "DiscreteService", "LeastSquares", "Moments", "Service", "Surrogate", "TwoClass", "allen_cunneen"]
__all__ += ["decode_kv_tokens", "effective_servers", "erlang_b", "erlang_c", "matching_servers"]
__all__ += ["predicted_moments", "predicted_rates", "promoted", "safe_servers", "two_class", "utilisation"]
__all__ += ["ServiceTimes", "boost_tail_constant", "decay_rate", "fcfs_mean_s", "fcfs_tail_constant"]
__all__ += ["las_mean_s", "srpt_mean_s"]
