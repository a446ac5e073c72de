"""Random small runs with a prefix cache."""

from __future__ import annotations

import dataclasses
import random

import numpy as np

from tailrace.workloads.prefix import Prefix

from .cases import Case, draw, swapping


def cached(name: str, seed: int, groups: int = 3) -> Case:
    """Case ``seed`` of policy ``name`` with a prefix cache; prompts begin with their group's tokens."""
    return with_cache(draw(name, seed), random.Random(seed), groups)


def tiered(name: str, seed: int) -> Case:
    """Case ``seed`` of policy ``name`` with a prefix cache and host memory, both little or much."""
    case, rng = swapping(name, seed), random.Random(f"tiered {name} {seed}")
    case = with_cache(case, rng, groups=rng.choice([1, 3, 8]))
    case.label = f"cached {case.label}"
    case.config = dataclasses.replace(case.config, kv_tokens=rng.choice([80, 96, 160]))
    return case


def with_cache(case: Case, rng: random.Random, groups: int = 3) -> Case:
    """``case`` under rules that a prefix cache goes with, and prompts of so many groups."""
    size = rng.choice([4, 16])
    rules = dataclasses.replace(
        case.config.rules,
        admit="chunk",
        kv_limit="enforced",
        block_tokens=size,
        decode_block_tokens=1,
        prefix_cache=True,
        phase_order=rng.choice(["running_first", "ranked", "decode_first"]),
    )
    case.config = dataclasses.replace(case.config, rules=rules)
    w = case.workload
    of = [rng.randrange(groups) for _ in range(len(w))]
    counts = [min(int(prompt) // size, 2) for prompt in w.prompt_tokens]
    ids = [1 + 2 * group + i for group, count in zip(of, counts, strict=True) for i in range(count)]
    prefix = Prefix(size, np.array(ids, dtype=np.int64), np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
    case.workload = dataclasses.replace(w, prefix=prefix)
    return case
