"""Step time that is flat up to a knee and linear in the tokens beyond it.

T = c0 + a·max(0, b − b0) + s·n, b = all tokens of the step, n = its sequences. Source: QBA,
arXiv 2610.17795 §II-A4; the defaults are that paper's §IV-A3. It names a correction for
concurrency, off in its experiments, without a formula: s·n is ours.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from .. import _jit
from ..params import P
from .shape import StepShape

__all__ = ["PiecewiseParams"]


class PiecewiseParams(NamedTuple):
    """Parameters of the piecewise linear model."""

    constant_s: Annotated[float, P("c0: every step", unit="s", low=0, open_high=True)] = 0.003
    per_token_s: Annotated[float, P("a: each token beyond the knee", unit="s/token", low=0, open_high=True)] = 2e-5
    knee_tokens: Annotated[int, P("b0: tokens that cost nothing extra", unit="tokens", low=0, high=1 << 40)] = 64
    per_seq_s: Annotated[float, P("s: each sequence of the step", unit="s/sequence", low=0, open_high=True)] = 0.0


def _step_seconds(shape: StepShape, cost: PiecewiseParams) -> float:
    beyond = max(0, shape.tokens - cost.knee_tokens)
    return cost.constant_s + cost.per_token_s * beyond + cost.per_seq_s * shape.seqs


# Where a step will stand relative to the knee is not known to one request, so the margins
# take the slope beyond it: right for a busy engine, too high for an idle one.
def _chunk_s(tokens: int, kv_tokens: int, cost: PiecewiseParams) -> float:
    return cost.per_token_s * tokens + (cost.per_seq_s if tokens > 0 else 0.0)


def _decode_s(tokens: int, kv_tokens: int, cost: PiecewiseParams) -> float:
    return cost.per_token_s * tokens + (cost.per_seq_s if tokens > 0 else 0.0)


def _constant_s(cost: PiecewiseParams) -> float:
    return cost.constant_s


_jit.register(
    PiecewiseParams,
    {"step_seconds": _step_seconds, "chunk_s": _chunk_s, "decode_s": _decode_s, "constant_s": _constant_s},
)
