"""Step time from what a model computes and reads, and what a device can.

T = overhead + per_seq·decodes + max(flops / flops_per_s, bytes / bytes_per_s)
    flops = flops_per_token·tokens + flops_per_pair·(Σ prefill (q·kv + q²/2) + Σ decode m·kv)
    bytes = weight_bytes + kv_bytes_per_token·(Σ kv read + tokens written)

The rates are already those reached in practice (peak × utilisation). A decode of m > 1
tokens is one pass: it attends m times but reads its KV once. Source: the roofline model
(Williams et al., CACM 2009) with the usual count of 2 flops a weight and a token.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from .. import _jit
from ..params import P
from .profiled import decode_reads
from .shape import StepShape

__all__ = ["RooflineParams"]


class RooflineParams(NamedTuple):
    """Figures of one device's share of a model, and of the device."""

    flops_per_token: Annotated[float, P("weights: 2 a weight", unit="flop/token", low=0, open_high=True)]
    flops_per_pair: Annotated[float, P("attention, per (query, key)", unit="flop", low=0, open_high=True)]
    weight_bytes: Annotated[float, P("read by every step", unit="B", low=0, open_high=True)]
    kv_bytes_per_token: Annotated[float, P("keys and values of a token", unit="B/token", low=0, open_high=True)]
    flops_per_s: Annotated[float, P("reached, not peak", unit="flop/s", low=0, open_low=True, open_high=True)]
    bytes_per_s: Annotated[float, P("reached, not peak", unit="B/s", low=0, open_low=True, open_high=True)]
    overhead_s: Annotated[float, P("every step, beside the device's work", unit="s", low=0, open_high=True)]
    per_seq_s: Annotated[float, P("per decoding sequence: sampling, host", unit="s", low=0, open_high=True)]


@_jit.kernel
def prefill_flops(tokens: int, pairs: float, cost: RooflineParams) -> float:
    """Flops of ``tokens`` prefill tokens that attend to ``pairs`` (query, key) pairs."""
    return cost.flops_per_token * tokens + cost.flops_per_pair * pairs


def _step_seconds(shape: StepShape, cost: RooflineParams) -> float:
    pairs = shape.prefill_cross + shape.prefill_sq / 2 + decode_reads(shape)
    flops = prefill_flops(shape.tokens, pairs, cost)
    kv_tokens = shape.prefill_kv + shape.decode_kv + shape.tokens
    read = cost.weight_bytes + cost.kv_bytes_per_token * kv_tokens
    return cost.overhead_s + cost.per_seq_s * shape.decode_seqs + max(flops / cost.flops_per_s, read / cost.bytes_per_s)


# The maximum has no margin of its own: a request does not know which side its step will be
# on. A prefill is charged what it computes and a decode what it reads, the side that each is
# on alone; the weights' reading is the constant. The sum is at least the step's time while
# the decodes' own flops hide behind the weights' reading (up to about 85 decodes) and a
# chunk's reading of its KV behind its flops (from about 20 tokens on): 8B model, A100.
def _chunk_s(tokens: int, kv_tokens: int, cost: RooflineParams) -> float:
    return prefill_flops(tokens, tokens * (kv_tokens + tokens / 2), cost) / cost.flops_per_s


def _decode_s(tokens: int, kv_tokens: int, cost: RooflineParams) -> float:
    if tokens == 0:
        return 0.0
    return cost.kv_bytes_per_token * (kv_tokens + tokens) / cost.bytes_per_s + cost.per_seq_s


def _constant_s(cost: RooflineParams) -> float:
    return cost.overhead_s + cost.weight_bytes / cost.bytes_per_s


_jit.register(
    RooflineParams,
    {"step_seconds": _step_seconds, "chunk_s": _chunk_s, "decode_s": _decode_s, "constant_s": _constant_s},
)
