from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from tailrace.errors import UserError
from tailrace.workloads import Prefix, Workload, apply, generate, load
from tailrace.workloads.prefix import engine_ids, twice

GENERATORS = ("qba", "poisson", "deterministic")


def prefix(block_tokens: int, *rows: list[int]) -> Prefix:
    flat = np.array([x for row in rows for x in row], dtype=np.int64)
    return Prefix(block_tokens, flat, np.cumsum([0, *map(len, rows)]))


def rows(ids: Any, offsets: Any) -> list[list[int]]:
    return [ids[a:z].tolist() for a, z in itertools.pairwise(offsets)]


def workload(given: Prefix | None) -> Workload:
    return Workload.of([3.0, 1.0, 2.0], [40] * 3, [5] * 3, name="w", prefix=given)


GIVEN = prefix(10, [7, 8], [], [7, 9, 2])


def names(w: Workload) -> list[list[int]]:
    assert w.prefix is not None
    return rows(w.prefix.ids, w.prefix.offsets)


def test_names_follow_their_requests() -> None:
    w = workload(GIVEN)
    assert names(w) == [[], [7, 9, 2], [7, 8]]
    assert names(w.head(2)) == [[], [7, 9, 2]]
    assert names(w.scaled(2)) == names(apply(w, "noise:cv=0.5")) == names(w)
    assert names(dataclasses.replace(w, name="other")) == names(w)
    assert w.prefix is not None
    with pytest.raises(ValueError, match="read-only"):
        w.prefix.ids[0] = 1


def test_the_digest_counts_the_prefix_and_is_as_before_without() -> None:
    without = workload(None)
    others = [
        GIVEN,
        prefix(10, [7, 8], [], [7, 9, 3]),
        prefix(10, [7, 8], [7], [9, 2]),
        prefix(5, [7, 8], [], [7, 9, 2]),
    ]
    assert len({without.digest(), *(workload(other).digest() for other in others)}) == 5
    assert without.digest() == "51b8026067d0dd24edf5b3a51be94ccb5bcb677fc86701fcdd6d59b2cd2102f1"


def test_blocks_of_the_same_size_keep_their_names() -> None:
    assert rows(*engine_ids(GIVEN, np.array([40, 40, 40]), 10)) == rows(GIVEN.ids, GIVEN.offsets)


def test_larger_blocks_are_named_by_the_last_inside() -> None:
    given = prefix(4, [1, 2, 3, 4, 5], [1, 2, 6], [1])
    assert rows(*engine_ids(given, np.array([21, 14, 4]), 8)) == [[2, 4], [2], []]


def test_smaller_blocks_are_alike_where_the_traces_are() -> None:
    given = prefix(12, [0, 1], [0, 2], [1])
    got = rows(*engine_ids(given, np.array([24, 30, 12]), 4))
    assert [len(row) for row in got] == [6, 6, 3]
    assert got[0][:3] == got[1][:3]
    assert got[0][3:] == got[2], "an id means the same wherever it stands"
    assert len({x for row in got for x in row}) == 9
    assert min(x for row in got for x in row) >= 0


def test_only_full_blocks_are_named() -> None:
    """A block that the prompt does not fill is left out, even of a prefix that nobody checked."""
    assert rows(*engine_ids(prefix(8, [1, 2]), np.array([13]), 4))[0][2:] != []
    assert len(engine_ids(prefix(8, [1, 2]), np.array([13]), 4)[0]) == 3
    assert rows(*engine_ids(prefix(8, [1, 2, 3]), np.array([17]), 16)) == [[2]]


def test_sub_names_do_not_meet() -> None:
    given = prefix(512, list(range(3000)), [2**63 - 1 - x for x in range(3000)])
    ids, _ = engine_ids(given, np.array([512 * 3000] * 2), 16)
    assert len(np.unique(ids)) == len(ids) == 2 * 3000 * 32


def test_sizes_that_do_not_fit_are_named() -> None:
    with pytest.raises(UserError, match=r"blocks of 16 tokens .*prefix blocks of 24: .*multiple"):
        engine_ids(prefix(24, [1]), np.array([24]), 16)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (prefix(0, [], [], []), "block_tokens=0 must be a whole number"),
        (prefix(10, [1], []), "3 offsets for 3 requests; give 4"),
        (prefix(10, [1], [-2], []), "id -2 is below 0"),
        (prefix(10, [1], [1, 2, 3, 4, 5], []), "request 1 names 5 blocks, but 40 tokens fill fewer of 10"),
        (prefix(10, [], [], [4, 5, 4]), "request 2 names two blocks alike"),
        (Prefix(10, np.array([0.5]), np.array([0, 1, 1, 1])), "ids must be a list of whole numbers"),
        (Prefix(10, np.array([5]), np.array([0, 2, 1, 1])), "offsets must rise from 0 to the number of ids, 1"),
        (Prefix(10, np.array([5, 6]), np.array([0, 1, 1, 1])), "offsets must rise from 0"),
    ],
)
def test_mistakes(given: Prefix, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        workload(given)
    assert str(error.value).startswith("workload 'w': prefix: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("offset", [0, 2**62])
def test_twice_is_within_a_row(offset: int) -> None:
    assert twice(np.array([1, 2, 1]) + offset, np.array([0, 0, 1])) is None
    assert twice(np.array([4, 1, 2, 1]) + offset, np.array([0, 1, 1, 1])) == 3
    assert twice(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)) is None


@pytest.mark.parametrize("name", GENERATORS)
def test_groups_share_their_start_and_nothing_else(name: str) -> None:
    plain = generate(name, {"requests": 400})
    w = generate(name, {"requests": 400, "prefix_groups": 5, "prefix_tokens": 40})
    assert plain.prefix is None
    assert (w.prompt_tokens == plain.prompt_tokens + 40).all()
    for field in ("arrival_s", "output_tokens"):
        assert (getattr(w, field) == getattr(plain, field)).all()
    assert w.prefix is not None
    assert w.prefix.block_tokens == 8
    kinds = {tuple(row) for row in names(w)}
    assert len(kinds) == 5
    assert len({x for kind in kinds for x in kind}) == 25
    for size, blocks in ((1, 40), (8, 5), (16, 2), (64, 0)):
        _, offsets = engine_ids(w.prefix, w.prompt_tokens, size)
        assert set(np.diff(offsets)) == {blocks}
    assert w.description["parameters"]["prefix_groups"] == 5
    assert "prefix_groups" not in plain.description["parameters"]


@pytest.mark.parametrize("name", ["qba", "poisson"])
def test_groups_are_drawn_evenly_and_from_the_seed(name: str) -> None:
    given = {"requests": 3000, "prefix_groups": 3, "prefix_tokens": 16}
    drawn, again, other = (names(generate(name, {**given, "seed": seed})) for seed in (0, 0, 1))
    assert drawn == again != other
    assert drawn[:100] == names(generate(name, {**given, "requests": 100}))
    assert all(900 < count < 1100 for count in np.bincount([row[0] for row in drawn]))


def test_groups_in_turn_without_randomness() -> None:
    w = generate("deterministic", {"requests": 5, "prefix_groups": 2, "prefix_tokens": 16})
    assert names(w) == [[0], [1], [0], [1], [0]]


def test_a_generator_by_text() -> None:
    w = load("qba:requests=20,prefix_groups=2,prefix_tokens=64", limit=10)
    assert len(names(w)) == 10


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"prefix_groups": 2}, "prefix_groups=2 and prefix_tokens=0: give both, or neither"),
        ({"prefix_tokens": 2}, "prefix_groups=0 and prefix_tokens=2: give both, or neither"),
        ({"prefix_groups": -1, "prefix_tokens": 2}, "prefix_groups=-1 is outside"),
        ({"prefix_groups": 1, "prefix_tokens": 2**24, "requests": 10**7}, "do not fit in memory"),
    ],
)
def test_generators_refuse(given: dict[str, int], message: str) -> None:
    with pytest.raises(UserError, match=message):
        generate("deterministic", given)
