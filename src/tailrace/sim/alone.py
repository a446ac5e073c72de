"""What each request would take by itself on an idle engine: the measure of a slowdown."""

from __future__ import annotations

from typing import Final

import numpy as np

from ..latency import Latency, step_seconds, step_shape
from ..rules import EngineRules
from ..table import F8, I8

__all__ = ["alone_s"]

GRID: Final = 513
"""Places at which a decode's seconds are asked for; between them they are interpolated."""


def alone_s(prompt_tokens: I8, output_tokens: I8, budget: int, rules: EngineRules, latency: Latency) -> F8:
    """Seconds from the first chunk's start to the last token, nothing cached; an array like ``prompt_tokens``.

    The prompt goes in chunks of the step's token budget (of ``chunk_cap``, where that binds a
    lone request too), then a decode block a step. A decode's seconds are the latency model's,
    exact where it is linear in the tokens read between two of ``GRID`` places.
    """
    if not len(prompt_tokens):
        return np.zeros(0)
    capped = rules.chunk_cap_alone and rules.chunk_cap and not rules.chunk_cap_adaptive
    chunk = min(budget, rules.chunk_cap) if capped else budget
    block = min(rules.decode_block_tokens, budget)
    distinct, place = np.unique(prompt_tokens, return_inverse=True)
    decoded = output_tokens - (1 if rules.prefill_emits else 0)
    steps = -(-decoded // block)
    return _prefill(distinct, chunk, latency)[place] + _decodes(prompt_tokens, steps, block, latency)


def _prefill(prompt_tokens: I8, chunk: int, latency: Latency) -> F8:
    """Seconds of prompts in chunks: whole ones from a running sum, and each prompt's last."""
    cost, most = latency.cost, int(prompt_tokens.max() - 1) // chunk
    whole = [step_seconds(step_shape([(chunk, i * chunk)]), cost) for i in range(most)]
    before = np.concatenate([[0.0], np.cumsum(whole)])
    chunks = [int(tokens - 1) // chunk for tokens in prompt_tokens]
    rest = [(int(p) - n * chunk, n * chunk) for p, n in zip(prompt_tokens, chunks, strict=True)]
    return np.array([before[n] + step_seconds(step_shape([last]), cost) for n, last in zip(chunks, rest, strict=True)])


def _decodes(first_kv: I8, steps: I8, block: int, latency: Latency) -> F8:
    """Seconds of ``steps`` decodes of ``block`` tokens, the first on ``first_kv`` cached ones."""
    last = first_kv + steps * block
    kv = np.unique(np.linspace(first_kv.min(), last.max(), GRID).astype(np.int64))
    seconds = np.array([step_seconds(step_shape(decodes=[(block, int(k))]), latency.cost) for k in kv])
    return steps * np.interp(first_kv + (steps - 1) * block / 2, kv, seconds)
