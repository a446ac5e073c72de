"""What a step holds, as the few sums that its time depends on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from .. import (
    _jit,
    hooks,  # noqa: F401  defines chunk_s, decode_s and constant_s, which every model registers
)

__all__ = ["StepShape", "step_seconds", "step_shape"]


class StepShape(NamedTuple):
    """Sums over one step. A prefill computes a chunk of q tokens on kv tokens cached before
    it, a decode m tokens on kv; all fields are whole numbers of tokens or sequences."""

    tokens: int
    """All tokens computed: Σ q + Σ m."""
    seqs: int
    prefill_seqs: int
    prefill_tokens: int
    """Σ q."""
    prefill_sq: int
    """Σ q²."""
    prefill_cross: int
    """Σ q·kv."""
    prefill_kv: int
    """Σ kv."""
    decode_seqs: int
    decode_tokens: int
    """Σ m."""
    decode_kv: int
    """Σ kv, before the step, once a sequence whatever its m."""


@_jit.generic(on="cost")
def step_seconds(shape: StepShape, cost: Any) -> float:
    """Seconds that a step of this shape takes under the latency model ``cost``."""
    return 0.0


def step_shape(prefills: Iterable[tuple[int, int]] = (), decodes: Iterable[tuple[int, int]] = ()) -> StepShape:
    """The shape of a step of ``(q, kv)`` prefill chunks and ``(m, kv)`` decodes, in tokens."""
    chunks, outputs = list(prefills), list(decodes)
    prefill_tokens, decode_tokens = sum(q for q, _ in chunks), sum(m for m, _ in outputs)
    return StepShape(
        tokens=prefill_tokens + decode_tokens,
        seqs=len(chunks) + len(outputs),
        prefill_seqs=len(chunks),
        prefill_tokens=prefill_tokens,
        prefill_sq=sum(q * q for q, _ in chunks),
        prefill_cross=sum(q * kv for q, kv in chunks),
        prefill_kv=sum(kv for _, kv in chunks),
        decode_seqs=len(outputs),
        decode_tokens=decode_tokens,
        decode_kv=sum(kv for _, kv in outputs),
    )
