"""Step time as a sum over requests, with coefficients from a profile.

T = constant + Σ prefill (a·q² + b·q·kv + c·q + d·kv) + Σ decode (a'·kv + b'), the constant
once a step. Source: ProServe, arXiv 2512.12928 (the d·kv term is xLLM's). A decode of m
tokens counts as m decodes on the same kv.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from .. import _jit
from ..params import P
from .shape import StepShape

__all__ = ["ProfiledParams"]


class ProfiledParams(NamedTuple):
    """Coefficients of the profiled model, all in seconds; none is negative."""

    constant_s: Annotated[float, P("every step", unit="s", low=0, open_high=True)]
    prefill_sq_s: Annotated[float, P("a: per q² of a chunk", unit="s/token²", low=0, open_high=True)] = 0.0
    prefill_cross_s: Annotated[float, P("b: per q·kv of a chunk", unit="s/token²", low=0, open_high=True)] = 0.0
    prefill_token_s: Annotated[float, P("c: per token of a chunk", unit="s/token", low=0, open_high=True)] = 0.0
    prefill_kv_s: Annotated[float, P("d: per token cached before it", unit="s/token", low=0, open_high=True)] = 0.0
    decode_kv_s: Annotated[float, P("a': per cached token of a decode", unit="s/token", low=0, open_high=True)] = 0.0
    decode_seq_s: Annotated[float, P("b': per decoded token", unit="s/token", low=0, open_high=True)] = 0.0


@_jit.kernel
def decode_reads(shape: StepShape) -> float:
    """Σ m·kv over the step's decodes, in tokens.

    A shape has Σ kv and Σ m, so this is exact when all decodes make the same number of
    tokens (always so for one each) and the mean otherwise.
    """
    return shape.decode_kv * (shape.decode_tokens / max(1, shape.decode_seqs))


def _step_seconds(shape: StepShape, cost: ProfiledParams) -> float:
    prefill = (
        cost.prefill_sq_s * shape.prefill_sq
        + cost.prefill_cross_s * shape.prefill_cross
        + cost.prefill_token_s * shape.prefill_tokens
        + cost.prefill_kv_s * shape.prefill_kv
    )
    decode = cost.decode_kv_s * decode_reads(shape) + cost.decode_seq_s * shape.decode_tokens
    return cost.constant_s + prefill + decode


def _chunk_s(tokens: int, kv_tokens: int, cost: ProfiledParams) -> float:
    if tokens == 0:
        return 0.0  # no chunk, so d·kv must not count
    per_token = cost.prefill_sq_s * tokens + cost.prefill_cross_s * kv_tokens + cost.prefill_token_s
    return per_token * tokens + cost.prefill_kv_s * kv_tokens


def _decode_s(tokens: int, kv_tokens: int, cost: ProfiledParams) -> float:
    return tokens * (cost.decode_kv_s * kv_tokens + cost.decode_seq_s)


def _constant_s(cost: ProfiledParams) -> float:
    return cost.constant_s


_jit.register(
    ProfiledParams,
    {"step_seconds": _step_seconds, "chunk_s": _chunk_s, "decode_s": _decode_s, "constant_s": _constant_s},
)
