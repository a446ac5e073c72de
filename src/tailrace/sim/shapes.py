"""What each step of a run held and how long it took: samples for fitting a latency model."""

from __future__ import annotations

from typing import Any

from ..latency import Sample, StepShape
from ..schedule.engine import STEADY
from . import instance
from .run import NO_END, Instance

__all__ = ["step_samples"]


def step_samples(run: Instance, steps: int = NO_END) -> list[Sample]:
    """Run a fresh instance to its end, or ``steps`` steps: ``(shape, seconds)`` of each, in order.

    Seconds are what the step took, with its jitter, and with the copies that it waited for.
    Raises RuntimeError if the run gets stuck.
    """
    e, counters = run.engine, run.records.counters["steps"]
    run.buffers.core["hold"] = 1  # each step is looked at once its tokens count as computed and before it ends
    samples: list[Sample] = []
    ended = instance.PAUSED
    while ended == instance.PAUSED and len(samples) < steps:
        ended = run.advance(steps=1)
        if counters[0] > len(samples):
            samples.append(_sample(e, len(samples) % len(e.slots.items)))
    if ended == instance.STUCK:
        raise RuntimeError(f"policy {run.policy.name}: nothing can run")
    return samples


def _sample(e: Any, slot: int) -> Sample:
    """The step in ``slot``, which has just begun."""
    first = slot * len(e.seats.run)
    items = slice(first, first + int(e.slots.items[slot]))
    tokens, rows, kinds = e.items.tokens[items], e.items.row[items], e.items.kind[items]
    kv, decode = e.table.computed_tokens[rows] - tokens, kinds == STEADY
    q, cached, m, context = tokens[~decode], kv[~decode], tokens[decode], kv[decode]
    shape = StepShape(
        tokens=int(tokens.sum()),
        seqs=len(tokens),
        prefill_seqs=len(q),
        prefill_tokens=int(q.sum()),
        prefill_sq=int((q * q).sum()),
        prefill_cross=int((q * cached).sum()),
        prefill_kv=int(cached.sum()),
        decode_seqs=len(m),
        decode_tokens=int(m.sum()),
        decode_kv=int(context.sum()),
    )
    return shape, float(e.slots.step_s[slot])
