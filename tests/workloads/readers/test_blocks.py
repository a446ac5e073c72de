from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tailrace.workloads.readers.blocks import chained


@given(st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=12))
def test_chained_names_are_alike_exactly_where_all_before_is(rows: list[list[int]]) -> None:
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    ids = chained(np.array([x for row in rows for x in row], dtype=np.int64), offsets)
    named: dict[tuple[int, ...], int] = {}
    for row, (a, z) in zip(rows, itertools.pairwise(offsets.tolist()), strict=True):
        for end, name in enumerate(ids[a:z].tolist(), start=1):
            assert named.setdefault(tuple(row[:end]), name) == name
    assert sorted(named.values()) == list(range(len(named)))


def test_large_ids_and_none() -> None:
    assert chained(np.array([2**62, 2**62 - 1, 2**62]), np.array([0, 2, 2, 3])).tolist() == [0, 1, 0]
    assert chained(np.array([5, 7, 9, 7, 9]), np.array([0, 3, 5])).tolist() == [0, 2, 3, 1, 4]
    assert chained(np.zeros(0, dtype=np.int64), np.array([0, 0])).tolist() == []
