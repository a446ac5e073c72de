"""The boost function, effective work, and their units: what the boost policies have in common.

Work is in tokens in the table and in seconds in the formulas: w = tokens · seconds per token,
γ in 1/s, so that a boost is in seconds like the arrival it is taken from.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Final

from .. import hooks
from .._jit import kernel
from ..params import P
from ..table import DECODE, I8, PREFILL, Columns

__all__ = ["Found", "Gamma", "Hysteresis", "SecondsPerToken", "boost_s", "boosted_s", "effective_tokens"]
__all__ += ["note_found", "resident_s", "seconds_per_token"]

Gamma = Annotated[
    float,
    P("γ: large is first come first served, small is least attained service", unit="1/s", low=0.0, open_low=True),
]
Hysteresis = Annotated[
    float, P("δ: head start of the running: a waiting request must rank better by more", unit="s", low=0.0)
]
SecondsPerToken = Annotated[
    float, P("seconds of work a token stands for; 0 = the latency model's mean", unit="s/token", low=0.0)
]

CHUNK_TOKENS: Final = 512
DECODES: Final = 64
KV_TOKENS: Final = 1024
NO_MODEL_S: Final = 5e-4
"""Seconds per token where the latency model says nothing of them."""


@kernel
def boost_s(work_s: float, gamma_per_s: float) -> float:
    """b_γ(w) = (1/γ)·ln(1/(1 − e^{−γw})), seconds; infinite at w = 0.

    Stable at any γw: ln(1 − e^{−x}) by ``expm1`` below ln 2 and by ``log1p`` above; where x
    itself would underflow, ln x = ln γ + ln w takes its place.
    """
    if work_s <= 0.0:
        return math.inf
    x = gamma_per_s * work_s
    if x < 1e-12:
        return -(math.log(gamma_per_s) + math.log(work_s)) / gamma_per_s
    if x < 0.6931471805599453:
        return -math.log(-math.expm1(-x)) / gamma_per_s
    return -math.log1p(-math.exp(-x)) / gamma_per_s


@kernel
def seconds_per_token(given_s: float, cost: Any) -> float:
    """``given_s``, or for 0 the mean of a prefill token, in a step that is one chunk of 512, and of a
    decode token, in a step of 64 sequences with 1,024 tokens of KV each."""
    if given_s > 0.0:
        return given_s
    constant = hooks.constant_s(cost)
    prefill = (constant + hooks.chunk_s(CHUNK_TOKENS, 0, cost)) / CHUNK_TOKENS
    decode = constant / DECODES + hooks.decode_s(1, KV_TOKENS, cost)
    mean = 0.5 * (prefill + decode)
    return mean if mean > 0.0 else NO_MODEL_S


@kernel
def boosted_s(arrival_s: float, tokens: int, gamma_per_s: float, given_s: float, cost: Any) -> float:
    """The key a − b_γ(w) of work of ``tokens`` tokens."""
    return arrival_s - boost_s(tokens * seconds_per_token(given_s, cost), gamma_per_s)


@kernel
def resident_s(table: Any, row: int, hysteresis_s: float) -> float:
    """The head start of a request that holds KV: Φ(j) < Φ(i) − δ is asked of the waiting only."""
    return hysteresis_s if table.phase[row] == PREFILL or table.phase[row] == DECODE else 0.0


class Found(Columns):
    """One row a request."""

    found_tokens: I8
    """Prompt tokens found in the prefix cache when it first ran, plus 1; 0 before that is known."""


@kernel
def note_found(table: Any, row: int, found: Any) -> bool:
    """Keep what the first admission found: later ones also find what the request computed itself.

    Returns whether it was found out just now.
    """
    if found[row] > 0:
        return False
    found[row] = table.cached_tokens[row] + 1
    return True


@kernel
def effective_tokens(table: Any, row: int, found: Any) -> int:
    """w̃ = max(w, prompt − cached): tokens computed for it so far, or to be computed for its prompt.

    ``attained_tokens`` counts cached tokens as computed, so both terms are less the cached ones.
    """
    tokens = table.attained_tokens[row]
    if table.prompt_tokens[row] > tokens:
        tokens = table.prompt_tokens[row]
    return tokens - found[row] + 1 if found[row] > 0 else tokens
