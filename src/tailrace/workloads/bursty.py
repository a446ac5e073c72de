"""Generators whose arrivals are not Poisson: gamma gaps, bursts that come and go, spikes."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from ..params import P
from . import arrivals
from .assemble import Classes, Groups, Lengths, Mean, Rate, Requests, Seed, Shared, Tenants, mixed
from .workload import Workload

__all__ = ["GammaParams", "OnOffParams", "SpikesParams", "gamma", "on_off", "spikes"]

LowRate = Annotated[float, P("arrival rate in quiet times", "requests/s", low=0.0, high=1e9)]


class GammaParams(NamedTuple):
    """Gamma-distributed gaps with a given coefficient of variation: 0 metronome, 1 Poisson, above 1 bursty.

    Source: the renewal arrivals of G/G/n; BurstGPT (arXiv 2401.17644) fits gamma gaps to LLM traffic.
    """

    rate_rps: Rate = 4.0
    cv: Annotated[float, P("coefficient of variation of the gaps", low=0, high=20)] = 1.0
    requests: Requests = 1000
    lengths: Lengths = "lognormal"
    classes: Classes = ""
    tenants: Tenants = ""
    seed: Seed = 0
    prefix_groups: Groups = 0
    prefix_tokens: Shared = 0


class OnOffParams(NamedTuple):
    """Bursts: Poisson arrivals at one rate while on and at another while off, each for an exponential time.

    Source: the two-state Markov-modulated Poisson process; Fischer and Meier-Hellstern,
    Performance Evaluation 18, 1993. The default rates are assumptions.
    """

    on_rps: Rate = 16.0
    off_rps: LowRate = 1.0
    on_s: Mean = 10.0
    off_s: Mean = 30.0
    requests: Requests = 1000
    lengths: Lengths = "lognormal"
    classes: Classes = ""
    tenants: Tenants = ""
    seed: Seed = 0
    prefix_groups: Groups = 0
    prefix_tokens: Shared = 0


class SpikesParams(NamedTuple):
    """A quiet base broken by short spikes of over 50 requests/s, as serverless functions are called.

    Spikes come after exponential quiet times and last exponential times; their rates are
    Pareto with ``spike_rps`` as minimum. Source: the shape of Azure Functions' traffic
    (Shahrad et al., Serverless in the Wild, ATC 2020) and the peaks of over 50 requests/s of
    arXiv 2606.18431; base rate, durations and tail index are assumptions.
    """

    base_rps: LowRate = 2.0
    spike_rps: Annotated[float, P("lowest rate of a spike", "requests/s", low=0, high=1e9, open_low=True)] = 50.0
    spike_shape: Annotated[float, P("tail index of the spikes' rates", low=1, high=100, open_low=True)] = 2.5
    spike_s: Mean = 2.0
    gap_s: Annotated[float, P("mean quiet time between spikes", "s", low=0, high=1e9, open_low=True)] = 60.0
    requests: Requests = 1000
    lengths: Lengths = "lognormal"
    classes: Classes = ""
    tenants: Tenants = ""
    seed: Seed = 0
    prefix_groups: Groups = 0
    prefix_tokens: Shared = 0


def gamma(params: GammaParams) -> Workload:
    """The workload of these parameters."""
    return mixed("gamma", params, arrivals.gamma(params.seed, params.requests, params.rate_rps, params.cv))


def on_off(params: OnOffParams) -> Workload:
    """The workload of these parameters."""
    p = params
    return mixed("onoff", p, arrivals.on_off(p.seed, p.requests, p.on_rps, p.off_rps, p.on_s, p.off_s))


def spikes(params: SpikesParams) -> Workload:
    """The workload of these parameters."""
    p = params
    times = arrivals.spikes(p.seed, p.requests, p.base_rps, p.spike_rps, p.spike_shape, p.spike_s, p.gap_s)
    return mixed("spikes", p, times)
