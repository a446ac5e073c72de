"""Seconds that a request holds a server, from its tokens: linear (eq. 1) or in whole chunks (eq. 2).

Source: QBA, arXiv 2610.17795 §II-B. A fit is ordinary least squares, so the fitted times have
the samples' mean. Nothing keeps a coefficient above 0: where prompt and output lengths nearly
determine each other, α may come out negative and still belong to the best fit (it does for the
paper's own workload).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .checks import F8, columns, number, share, whole
from .moments import Moments
from .squares import LeastSquares

__all__ = ["DiscreteService", "Service", "decode_kv_tokens", "effective_servers", "safe_servers"]


@dataclass(frozen=True)
class Service:
    """S = s0 + α·P + β·D (eq. 1), in seconds and seconds per token."""

    s0_s: float
    alpha_s: float
    """Per prompt token."""
    beta_s: float
    """Per output token."""

    def __post_init__(self) -> None:
        for name in ("s0_s", "alpha_s", "beta_s"):
            number(name, getattr(self, name), low=-math.inf)

    def seconds(self, prompt_tokens: ArrayLike, output_tokens: ArrayLike) -> F8:
        """S of each request, (n,) from two (n,). Raises UserError for tokens that cannot be."""
        prompt, output = columns(prompt_tokens=prompt_tokens, output_tokens=output_tokens)
        return self.s0_s + self.alpha_s * prompt + self.beta_s * output

    def moments(self, prompt_tokens: ArrayLike, output_tokens: ArrayLike) -> Moments:
        """E[S] and E[S²] from the joint sample's moments of P and D (eq. 3, 4).

        Raises UserError for tokens that cannot be, or coefficients that make E[S] <= 0.
        """
        p, d = columns(prompt_tokens=prompt_tokens, output_tokens=output_tokens)
        s0, alpha, beta = self.s0_s, self.alpha_s, self.beta_s
        linear = alpha * p.mean() + beta * d.mean()
        squares = alpha**2 * (p**2).mean() + beta**2 * (d**2).mean() + 2 * alpha * beta * (p * d).mean()
        return Moments(float(s0 + linear), float(s0**2 + 2 * s0 * linear + squares))

    @staticmethod
    def observe(prompt_tokens: ArrayLike, output_tokens: ArrayLike, seconds: ArrayLike) -> LeastSquares:
        """One trace, (n,) each, in a form that adds up over traces and is then given to `solve`."""
        prompt, output, target = columns(prompt_tokens=prompt_tokens, output_tokens=output_tokens, seconds=seconds)
        return LeastSquares.of((prompt, output), target)

    @classmethod
    def solve(cls, observed: LeastSquares) -> Service:
        """The coefficients that fit what was observed best. Raises UserError as `fit` does."""
        return cls(*observed.solve(("s0_s", "alpha_s", "beta_s")))

    @classmethod
    def fit(cls, prompt_tokens: ArrayLike, output_tokens: ArrayLike, seconds: ArrayLike) -> Service:
        """By least squares from (n,) requests' tokens and seconds, n >= 3.

        Raises UserError for too few requests, for lengths that do not vary independently of
        each other, and for values that are negative or not finite.
        """
        return cls.solve(cls.observe(prompt_tokens, output_tokens, seconds))


@dataclass(frozen=True)
class DiscreteService:
    """S = s0 + τ_p·⌈P/C_p⌉ + τ_d·⌈D/q⌉ (eq. 2), in seconds."""

    s0_s: float
    chunk_s: float
    """τ_p: one prefill chunk."""
    block_s: float
    """τ_d: one decode block."""
    chunk_tokens: int
    """C_p"""
    block_tokens: int
    """q"""

    def __post_init__(self) -> None:
        for name in ("s0_s", "chunk_s", "block_s"):
            number(name, getattr(self, name), low=-math.inf)
        whole("chunk_tokens", self.chunk_tokens)
        whole("block_tokens", self.block_tokens)

    def seconds(self, prompt_tokens: ArrayLike, output_tokens: ArrayLike) -> F8:
        """S of each request, (n,) from two (n,). Raises UserError for tokens that cannot be."""
        chunks, blocks = _pieces(prompt_tokens, output_tokens, self.chunk_tokens, self.block_tokens)
        return self.s0_s + self.chunk_s * chunks + self.block_s * blocks

    def moments(self, prompt_tokens: ArrayLike, output_tokens: ArrayLike) -> Moments:
        """E[S] and E[S²] over a joint sample. Raises UserError as `seconds` does, or for E[S] <= 0."""
        return Moments.of(self.seconds(prompt_tokens, output_tokens))

    @classmethod
    def fit(
        cls,
        prompt_tokens: ArrayLike,
        output_tokens: ArrayLike,
        seconds: ArrayLike,
        *,
        chunk_tokens: int,
        block_tokens: int,
    ) -> DiscreteService:
        """By least squares from (n,) requests, n >= 3. Raises UserError as `Service.fit` does.

        Prompts that all make one chunk cannot tell τ_p from s0, and are refused.
        """
        size, block = whole("chunk_tokens", chunk_tokens), whole("block_tokens", block_tokens)
        _, _, target = columns(prompt_tokens=prompt_tokens, output_tokens=output_tokens, seconds=seconds)
        pieces = _pieces(prompt_tokens, output_tokens, size, block)
        s0, chunk, each = LeastSquares.of(pieces, target).solve(("s0_s", "chunk_s", "block_s"))
        return cls(s0, chunk, each, size, block)


def decode_kv_tokens(prompt_tokens: ArrayLike, output_tokens: ArrayLike) -> float:
    """Mean KV tokens of a request while it decodes: Σ D·(P + D/2) / Σ D over (n,) requests.

    Requests count by how long they decode, at an even pace a token. The paper does not say how
    many requests are safe together; see `safe_servers`. Raises UserError if nobody decodes.
    """
    prompt, output = columns(prompt_tokens=prompt_tokens, output_tokens=output_tokens)
    decoded = number("output_tokens' sum", float(output.sum()), above=True)
    return float((output * (prompt + output / 2)).sum() / decoded)


def safe_servers(kv_tokens: int, safety: float, mean_kv_tokens: float) -> int:
    """n_safe = ⌊η·M_max / mean KV of a decoding request⌋, at least 1: our definition.

    ``safety`` is η, the share of the KV that admission may fill. Raises UserError for no
    KV, an η outside [0, 1] or a mean that is not positive.
    """
    usable = share("safety", safety) * whole("kv_tokens", kv_tokens)
    return max(1, math.floor(usable / number("mean_kv_tokens", mean_kv_tokens, above=True)))


def effective_servers(token_budget: int, decode_block_tokens: int, n_safe: int) -> int:
    """n = ⌊min(B/q, n_safe)⌋ (§II-B1), at least 1: requests that decode side by side.

    Raises UserError for a size below 1.
    """
    budget, block = whole("token_budget", token_budget), whole("decode_block_tokens", decode_block_tokens)
    return max(1, min(budget // block, whole("n_safe", n_safe)))


def _pieces(prompt_tokens: ArrayLike, output_tokens: ArrayLike, chunk: int, block: int) -> tuple[F8, F8]:
    """Chunks of each prompt and blocks of each output, (n,) each."""
    prompt, output = columns(prompt_tokens=prompt_tokens, output_tokens=output_tokens)
    return np.ceil(prompt / chunk), np.ceil(output / block)
