"""Synthetic workloads. Each is a class of parameters and one function that makes it.

Arrivals, prompts, outputs, labels and prefixes come from independent streams of the seed:
another rate leaves the lengths as they are, and fewer requests are the first of more.

With ``prefix_groups`` each request belongs to one of so many groups, at random, and its
prompt is the ``prefix_tokens`` tokens of the group, as of a system prompt, then its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple

import numpy as np

from ..errors import UserError, nearest
from ..params import P, build
from ..table import I8
from . import _streams as streams
from . import arrivals, bursty, lengths, mixes
from .assemble import Classes, Groups, Lengths, Rate, Requests, Seed, Shared, Tenants, mixed, workload
from .settings_file import expanded
from .workload import Workload

__all__ = ["DeterministicParams", "Generator", "PoissonParams", "QbaParams", "expanded", "generate", "generators"]

Length = Annotated[int, P("length of every request", "tokens", low=1, high=2**31)]
Constant = Annotated[int, P("length of every request; 0 draws a lognormal", "tokens", low=0, high=2**31)]
Median = Annotated[float, P("median of the lognormal length", "tokens", low=1, high=2**31)]
Sigma = Annotated[float, P("standard deviation of the length's natural logarithm", low=0, high=10)]
Cap = Annotated[int, P("largest length drawn; longer is cut to it", "tokens", low=1, high=2**31)]


class QbaParams(NamedTuple):
    """Poisson arrivals, heavy-tailed prompts, outputs that grow with them.

    Source: arXiv 2610.17795 (QBA), section IV-A. Prompt: 0.7 N(100, 30²) + 0.3 classical
    Pareto(shape 1.4, minimum 40); response: LogNormal(3 + 0.75 log(1 + prompt), 0.3²); both
    rounded and cut to [1, 4096] tokens. The run length is not stated there.
    """

    rate_rps: Rate = 32.0
    requests: Requests = 5000
    seed: Seed = 0
    prefix_groups: Groups = 0
    prefix_tokens: Shared = 0


class PoissonParams(NamedTuple):
    """Poisson arrivals, lengths constant or lognormal and independent, or a mix.

    ``lengths``, where given, replaces what the other parameters say of prompts and outputs.
    Source: the M/G/n arrival model; Harchol-Balter, Performance Modeling and Design of
    Computer Systems, 2013. ``prompt`` or ``output`` above 0 replaces that lognormal.
    """

    rate_rps: Rate = 4.0
    requests: Requests = 1000
    prompt: Constant = 0
    prompt_median: Median = 512.0
    prompt_sigma: Sigma = 1.0
    prompt_cap: Cap = 8192
    output: Constant = 0
    output_median: Median = 128.0
    output_sigma: Sigma = 0.8
    output_cap: Cap = lengths.CAP
    seed: Seed = 0
    prefix_groups: Groups = 0
    prefix_tokens: Shared = 0
    lengths: Lengths = ""
    classes: Classes = ""
    tenants: Tenants = ""


class DeterministicParams(NamedTuple):
    """One request every ``gap_s`` from 0 on, all of one length: no randomness at all.

    Requests belong to prefix groups in turn.
    Source: the D arrivals of D/D/n, for checks by hand; a gap of 0 is one batch.
    """

    gap_s: Annotated[float, P("time between arrivals", "s", low=0.0, high=1e9)] = 0.1
    requests: Requests = 100
    prompt: Length = 512
    output: Length = 128
    prefix_groups: Groups = 0
    prefix_tokens: Shared = 0


@dataclass(frozen=True)
class Generator:
    """A synthetic workload: its name, class of parameters and maker.

    The first paragraph of the class's docstring says what it makes, ``Source:`` whence.
    """

    name: str
    params: type[Any]
    make: Callable[[Any], Workload]


def generators() -> dict[str, Generator]:
    """Every synthetic workload by name."""
    found = (
        Generator("qba", QbaParams, _qba),
        Generator("poisson", PoissonParams, _poisson),
        Generator("deterministic", DeterministicParams, _deterministic),
        Generator("gamma", bursty.GammaParams, bursty.gamma),
        Generator("onoff", bursty.OnOffParams, bursty.on_off),
        Generator("spikes", bursty.SpikesParams, bursty.spikes),
    )
    return {generator.name: generator for generator in found}


def generate(name: str, given: Mapping[str, Any] | None = None) -> Workload:
    """The synthetic workload ``name`` with parameters ``given``, its predictions an oracle's.

    Raises UserError for an unknown name or parameter (with the nearest) or a value out of range.
    """
    known = generators()
    if name not in known:
        raise UserError(f"unknown generator {name!r}{nearest(name, known)}")
    return known[name].make(build(known[name].params, given or {}, f"workload {name}"))


def _qba(params: QbaParams) -> Workload:
    times = arrivals.poisson(params.seed, params.requests, params.rate_rps)
    return workload("qba", params, times, *lengths.qba(lengths.Draws(params.seed, params.requests)))


def _poisson(params: PoissonParams) -> Workload:
    times = arrivals.poisson(params.seed, params.requests, params.rate_rps)
    if params.lengths:
        idle = ("prompt", "output", *OWN_LENGTHS)
        _no_use(params, "lengths", idle)
        return mixed("poisson", params, times, idle)
    prompt, output = _lengths(params, "prompt", streams.PROMPTS), _lengths(params, "output", streams.OUTPUTS)
    columns = mixes.labels("workload poisson", params.seed, times, params.classes, params.tenants)
    return workload("poisson", params, times, prompt, output, columns)


def _deterministic(params: DeterministicParams) -> Workload:
    prompt, output = (np.full(params.requests, tokens) for tokens in (params.prompt, params.output))
    return workload(
        "deterministic", params, np.arange(params.requests, dtype=np.float64) * params.gap_s, prompt, output
    )


OWN_LENGTHS: Final = tuple(f"{kind}_{what}" for kind in ("prompt", "output") for what in ("median", "sigma", "cap"))


def _lengths(params: PoissonParams, kind: str, which: int) -> I8:
    constant = getattr(params, kind)
    if constant == 0:
        given = [getattr(params, f"{kind}_{what}") for what in ("median", "sigma", "cap")]
        return lengths.lognormal(streams.stream(params.seed, which), params.requests, *given)
    _no_use(params, kind, [field for field in OWN_LENGTHS if field.startswith(kind)])
    return np.full(params.requests, constant, dtype=np.int64)


def _no_use(params: PoissonParams, decider: str, fields: Sequence[str]) -> None:
    """Refuse parameters that ``decider`` makes idle."""
    for field in fields:
        if getattr(params, field) != PoissonParams._field_defaults[field]:
            value = getattr(params, decider)
            what = f"{decider}={value}" + ("" if decider == "lengths" else " is constant")
            raise UserError(f"workload poisson: {what}, so {field} has no use; give one of them")
