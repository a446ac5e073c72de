"""Where prompt and output lengths come from: quantile tables, lognormals, constants, QBA's mix.

Every request draws from every part of a mix, whichever it is of: other shares leave a
part's lengths as they are.
"""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Final

import numpy as np

from ..errors import UserError, nearest
from ..table import F8, I8
from . import _streams as streams
from .shares import Term, number

__all__ = ["SOURCES", "Draws", "Source", "Table", "draw", "lognormal", "qba", "table", "tokens"]

CAP: Final = 4096
PROMPT_CAP: Final = 8192
MOST: Final = 2.0**31
Z90: Final = 1.2815515655446004
"""The standard normal's 0.9-quantile."""


@dataclass(frozen=True)
class Draws:
    """The streams of one part of a mix over ``n`` requests; the first part has those of a workload without a mix."""

    seed: int
    n: int
    part: int = 0

    def of(self, which: int) -> np.random.Generator:
        """The stream for prompts or for outputs."""
        path = (which,) if self.part == 0 else (streams.PARTS, self.part, which)
        return streams.stream(self.seed, *path)


Make = Callable[[Draws, Sequence[float]], tuple[I8, I8]]


@dataclass(frozen=True)
class Source:
    """A distribution of lengths that a mix can name."""

    name: str
    about: str
    """What it is, where its figures come from, and which of them are assumptions."""
    make: Make
    args: tuple[str, ...] = ()
    """Names of its arguments."""
    defaults: tuple[float, ...] = ()
    """Of the last arguments, which may be left out."""
    fixed: tuple[float, ...] = ()
    """What it makes lengths by, where it takes no arguments."""

    @property
    def form(self) -> str:
        """How it is written."""
        return ":".join([self.name, *self.args])


@dataclass(frozen=True)
class Table:
    """Quantiles of prompt and output tokens, with the rank correlation of the two (NaN: unknown)."""

    quantile: F8
    prompt_tokens: F8
    output_tokens: F8
    rank_correlation: float


@functools.cache
def table(name: str) -> Table:
    """The shipped quantile table ``name``. Its comments say source and licence."""
    text = resources.files(__package__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    lines = text.splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    quantile, prompt, output = (np.array([float(row[key]) for row in rows]) for key in rows[0])
    (stated,) = (line.rpartition(": ")[2] for line in lines if line.startswith("# Rank correlation"))
    return Table(quantile, prompt, output, math.nan if stated.startswith("unknown") else float(stated))


def draw(term: Term, draws: Draws, where: str) -> tuple[I8, I8, tuple[float, float]]:
    """``(prompt_tokens, output_tokens, (prompt_cap, output_cap))``: lengths of every request as ``term`` has them.

    Longer ones were cut to the caps, which are infinite where nothing is. Raises UserError for an
    unknown name (with the nearest) or arguments that do not fit.
    """
    if term.name not in SOURCES:
        raise UserError(f"{where}: unknown lengths {term.name!r}{nearest(term.name, SOURCES)}")
    source = SOURCES[term.name]
    given, most = len(term.args), len(source.args)
    if not most - len(source.defaults) <= given <= most:
        raise UserError(f"{where}: {term.name}: {given} arguments; write {source.form}")
    values = [_value(*pair, f"{where}: {term.name}") for pair in zip(source.args, term.args, strict=False)]
    values += source.defaults[len(source.defaults) - (most - given) :] or source.fixed
    caps = _caps(values, f"{where}: {term.name}") if source.make is _lognormal else (math.inf, math.inf)
    return *source.make(draws, values), (CAP, CAP) if source.make is _qba else caps


def _caps(values: Sequence[float], where: str) -> tuple[float, float]:
    for kind, median, cap in (("PROMPT", values[0], values[4]), ("OUTPUT", values[2], values[5])):
        if median > cap:
            raise UserError(f"{where}: {kind}_MEDIAN {median:g} is above {kind}_CAP {cap:g}; give a larger cap")
    return values[4], values[5]


def _value(arg: str, text: str, where: str) -> float:
    value = number(text, f"{where}: {arg}", *((0, 10) if arg.endswith("SIGMA") else (1, MOST)))
    if not arg.endswith(("SIGMA", "MEDIAN")) and value != int(value):
        raise UserError(f"{where}: {arg}: {text} must be a whole number of tokens")
    return value


def tokens(lengths: F8, cap: float) -> I8:
    """Whole tokens in [1, cap]."""
    return np.clip(np.rint(lengths), 1, cap).astype(np.int64)


def lognormal(rng: np.random.Generator, n: int, median: float, sigma: float, cap: float) -> I8:
    """``n`` lengths, lognormal, cut to ``cap``."""
    return tokens(rng.lognormal(np.log(median), sigma, n), cap)


def qba(draws: Draws) -> tuple[I8, I8]:
    """Prompts and outputs of arXiv 2610.17795, section IV-A."""
    # Streams within a stream, so that each is read in the order of requests.
    which, normal, pareto = draws.of(streams.PROMPTS).spawn(3)
    n = draws.n
    # NumPy's pareto is Lomax; the classical one, with its minimum, is 1 + Lomax times that.
    heavy = 40.0 * (1.0 + pareto.pareto(1.4, n))
    prompt = tokens(np.where(which.random(n) < 0.7, normal.normal(100.0, 30.0, n), heavy), CAP)
    output = draws.of(streams.OUTPUTS).lognormal(3.0 + 0.75 * np.log1p(prompt), 0.3)
    return prompt, tokens(output, CAP)


def _lognormal(draws: Draws, given: Sequence[float]) -> tuple[I8, I8]:
    prompt = lognormal(draws.of(streams.PROMPTS), draws.n, given[0], given[1], given[4])
    return prompt, lognormal(draws.of(streams.OUTPUTS), draws.n, given[2], given[3], given[5])


def _qba(draws: Draws, _: Sequence[float]) -> tuple[I8, I8]:
    return qba(draws)


def _constant(draws: Draws, given: Sequence[float]) -> tuple[I8, I8]:
    prompt, output = (np.full(draws.n, round(value), dtype=np.int64) for value in given)
    return prompt, output


def _quantiles(name: str, draws: Draws) -> tuple[I8, I8]:
    """Inverse transform, log-linear between the table's quantiles; a Gaussian copula keeps the rank correlation."""
    from scipy.special import ndtr

    found = table(name)
    first, second = (draws.of(which).standard_normal(draws.n) for which in (streams.PROMPTS, streams.OUTPUTS))
    if not math.isnan(found.rank_correlation):
        # Spearman's correlation s of a Gaussian copula with correlation r is (6/π) asin(r/2).
        r = 2 * math.sin(math.pi * found.rank_correlation / 6)
        second = r * first + math.sqrt(1 - r * r) * second
    columns = ((first, found.prompt_tokens), (second, found.output_tokens))
    prompt, output = (
        tokens(np.exp(np.interp(ndtr(normal), found.quantile, np.log(column))), MOST) for normal, column in columns
    )
    return prompt, output


def _shipped(name: str) -> Make:
    return lambda draws, _: _quantiles(name, draws)


SOURCES: Final = {
    source.name: source
    for source in (
        Source(
            "azure-conv",
            "a quantile table of Azure's 2023 conversation trace (CC-BY; Patel et al., Splitwise, ISCA 2024); prompt "
            "and output keep the trace's rank correlation, 0.07, by a Gaussian copula",
            _shipped("azure-conv"),
        ),
        Source(
            "r1",
            "a quantile table of a DeepSeek-R1 reasoning service (ServeGen, arXiv 2505.09999, Apache-2.0); prompt and "
            "output are independent, as how they depend is not published",
            _shipped("r1"),
        ),
        Source(
            "sharegpt-like",
            "chats like those of ShareGPT: prompt median 1730, as Sarathi-Serve reports of openchat_sharegpt4 (OSDI "
            "2024, Table 2); assumed: lognormals, prompt P90 5696, output median 415 and P90 834, independence, and "
            "the cuts at 8192 and 4096 tokens",
            _lognormal,
            fixed=(1730, math.log(5696 / 1730) / Z90, 415, math.log(834 / 415) / Z90, 8192, 4096),
        ),
        Source(
            "s1k-like",
            "reasoning like that of s1K (arXiv 2501.19393): short prompts and long outputs of one order of magnitude; "
            "assumed: lognormals, prompt median 150 and sigma 0.7, output median 4500 and sigma 0.6, independence, "
            "and the cuts at 8192 and 32768 tokens",
            _lognormal,
            fixed=(150, 0.7, 4500, 0.6, 8192, 32768),
        ),
        Source("qba", "that of arXiv 2610.17795, section IV-A: outputs grow with prompts", _qba),
        Source(
            "lognormal",
            "independent lognormals by their medians, tokens, and standard deviations of the logarithm, cut to the "
            "caps; the last arguments may be left out and then are 512, 1, 128, 0.8, 8192, 4096",
            _lognormal,
            ("PROMPT_MEDIAN", "PROMPT_SIGMA", "OUTPUT_MEDIAN", "OUTPUT_SIGMA", "PROMPT_CAP", "OUTPUT_CAP"),
            (512, 1.0, 128, 0.8, PROMPT_CAP, CAP),
        ),
        Source("constant", "all of one length", _constant, ("PROMPT", "OUTPUT")),
    )
}
"""Every distribution of lengths by name."""
