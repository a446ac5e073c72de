"""Synthetic workloads. Each is a class of parameters and one function that makes it.

Arrivals, prompts, outputs, labels and prefixes come from independent streams of the seed:
another rate leaves the lengths as they are, and fewer requests are the first of more.

With ``prefix_groups`` each request belongs to one of so many groups, at random, and its
prompt is the ``prefix_tokens`` tokens of the group, as of a system prompt, then its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple

import numpy as np

from ..errors import UserError, nearest
from ..params import P, build, show
from ..table import F8, I8
from . import _streams as streams
from .prefix import Prefix
from .workload import Workload

__all__ = ["DeterministicParams", "Generator", "PoissonParams", "QbaParams", "generate", "generators"]

MAX_REQUESTS: Final = 10_000_000
MAX_SEED: Final = 2**53
"""Parameters are read as floats, exact to here."""
CAP: Final = 4096
MOST_IDS: Final = 2**28
"""Names of prefix blocks in a workload, 2 GB."""

Rate = Annotated[float, P("mean arrival rate", "requests/s", low=0.0, high=1e9, open_low=True)]
Requests = Annotated[int, P("how many requests", "requests", low=1, high=MAX_REQUESTS)]
Seed = Annotated[int, P("seed of every random stream", low=0, high=MAX_SEED)]
Length = Annotated[int, P("length of every request", "tokens", low=1, high=2**31)]
Constant = Annotated[int, P("length of every request; 0 draws a lognormal", "tokens", low=0, high=2**31)]
Median = Annotated[float, P("median of the lognormal length", "tokens", low=1, high=2**31)]
Sigma = Annotated[float, P("standard deviation of the length's natural logarithm", low=0, high=10)]
Cap = Annotated[int, P("largest length drawn; longer is cut to it", "tokens", low=1, high=2**31)]

Groups = Annotated[int, P("how many groups of requests share the start of their prompts", low=0, high=MAX_REQUESTS)]
Shared = Annotated[int, P("what a group shares, ahead of each prompt's own part", "tokens", low=0, high=2**24)]


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
    """Poisson arrivals, lengths constant or lognormal and independent.

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
    output_cap: Cap = CAP
    seed: Seed = 0
    prefix_groups: Groups = 0
    prefix_tokens: Shared = 0


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
    # Streams within a stream, so that each is read in the order of requests.
    which, normal, pareto = streams.stream(params.seed, streams.PROMPTS).spawn(3)
    n = params.requests
    # NumPy's pareto is Lomax; the classical one, with its minimum, is 1 + Lomax times that.
    heavy = 40.0 * (1.0 + pareto.pareto(1.4, n))
    prompt = _tokens(np.where(which.random(n) < 0.7, normal.normal(100.0, 30.0, n), heavy), CAP)
    output = streams.stream(params.seed, streams.OUTPUTS).lognormal(3.0 + 0.75 * np.log1p(prompt), 0.3)
    return _workload("qba", params, _poisson_arrivals(params), prompt, _tokens(output, CAP))


def _poisson(params: PoissonParams) -> Workload:
    lengths = [_lengths(params, "prompt", streams.PROMPTS), _lengths(params, "output", streams.OUTPUTS)]
    return _workload("poisson", params, _poisson_arrivals(params), *lengths)


def _deterministic(params: DeterministicParams) -> Workload:
    lengths = [np.full(params.requests, tokens) for tokens in (params.prompt, params.output)]
    return _workload("deterministic", params, np.arange(params.requests, dtype=np.float64) * params.gap_s, *lengths)


def _poisson_arrivals(params: QbaParams | PoissonParams) -> F8:
    # Unit gaps divided by the rate: another rate stretches the same arrivals.
    gaps = streams.stream(params.seed, streams.ARRIVALS).exponential(1.0, params.requests)
    arrivals: F8 = np.cumsum(gaps) / params.rate_rps
    return arrivals


def _lengths(params: PoissonParams, kind: str, which: int) -> I8:
    constant = getattr(params, kind)
    if constant == 0:
        median, sigma = getattr(params, f"{kind}_median"), getattr(params, f"{kind}_sigma")
        drawn = streams.stream(params.seed, which).lognormal(np.log(median), sigma, params.requests)
        return _tokens(drawn, getattr(params, f"{kind}_cap"))
    for field in (f"{kind}_median", f"{kind}_sigma", f"{kind}_cap"):
        if getattr(params, field) != PoissonParams._field_defaults[field]:
            raise UserError(f"workload poisson: {kind}={constant} is constant, so {field} has no use; give one of them")
    return np.full(params.requests, constant, dtype=np.int64)


def _tokens(lengths: F8, cap: int) -> I8:
    return np.clip(np.rint(lengths), 1, cap).astype(np.int64)


def _workload(name: str, params: Any, arrival_s: F8, prompt_tokens: I8, output_tokens: I8) -> Workload:
    source = " ".join((type(params).__doc__ or "").partition("Source: ")[2].split())
    shown, prefix = show(params), _prefix(name, params)
    if prefix is None:
        del shown["prefix_groups"], shown["prefix_tokens"]
    description = {
        "source": source,
        "format": "synthetic",
        "generator": name,
        "parameters": shown,
        "seed": shown.get("seed", 0),
    }
    prompts = prompt_tokens + params.prefix_tokens
    return Workload.of(arrival_s, prompts, output_tokens, name=name, description=description, prefix=prefix)


def _prefix(name: str, params: Any) -> Prefix | None:
    """The groups' shared starts, or None. Blocks are of 16 tokens, or of the largest power of two that fits."""
    groups, tokens, requests = params.prefix_groups, params.prefix_tokens, params.requests
    if not groups and not tokens:
        return None
    if not groups or not tokens:
        raise UserError(f"workload {name}: prefix_groups={groups} and prefix_tokens={tokens}: give both, or neither")
    size = math.gcd(tokens, 16)
    each = tokens // size
    if requests * each > MOST_IDS:
        raise UserError(f"workload {name}: {requests} prefixes of {tokens} tokens do not fit in memory; ask for less")
    if hasattr(params, "seed"):
        group = (streams.stream(params.seed, streams.PREFIXES).random(requests) * groups).astype(np.int64)
    else:
        group = np.arange(requests) % groups
    ids = (group[:, None] * each + np.arange(each)).ravel()
    return Prefix(size, ids, np.arange(requests + 1) * each)
