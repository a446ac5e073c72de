from __future__ import annotations

import numpy as np

from tailrace.workloads import _streams as streams


def test_streams_are_the_spawned_children() -> None:
    children = np.random.SeedSequence(7).spawn(5)
    for which, child in enumerate(children):
        assert streams.stream(7, which).random() == np.random.default_rng(child).random()


def test_streams_differ_by_seed_and_by_number() -> None:
    draws = {streams.stream(seed, which).random() for seed in range(10) for which in range(5)}
    assert len(draws) == 50
