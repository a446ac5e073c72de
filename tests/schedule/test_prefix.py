"""The prefix cache against a slow model of it written from the prose, over random loads."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from tailrace._jit import ENABLED, entry, kernel, where
from tailrace.schedule import blocks, prefix
from tailrace.schedule.blocks import Blocks, counted, find
from tailrace.schedule.prefix import build_blocks

from .slow_cache import SlowCache, queue

BLOCK = 4
"""Tokens."""


HITS, IDLE, START, GROW, SEAL, RELEASE, RELEASABLE, FREE, HELD, SNAPSHOT, RESTORE = range(11)


def call(b: Blocks, what: int, row: int, x: int, y: int) -> int:
    """Any kernel, by number: one function to compile."""
    if what == HITS:
        return prefix.hits(b, row, x)
    if what == IDLE:
        return prefix.idle_among(b, row, x)
    if what == START:
        prefix.start(b, row, x, y)
    elif what == GROW:
        prefix.grow(b, row, x)
    elif what == SEAL:
        prefix.seal(b, row, x)
    elif what == RELEASE:
        prefix.release(b, row)
    elif what == RELEASABLE:
        return prefix.releasable(b, row)
    elif what == FREE:
        return prefix.free_count(b)
    elif what == HELD:
        return prefix.held_count(b, row)
    elif what == SNAPSHOT:
        prefix.snapshot(b)
    elif what == RESTORE:
        prefix.restore(b)
    return 0


compiled = entry(call)
Call = Callable[[Blocks, int, int, int, int], int]


class Names(NamedTuple):
    lists: list[list[int]]
    ids: Any
    offsets: Any


def family(rng: random.Random, rows: int, longest: int) -> Names:
    """Rows whose blocks' names are paths in one tree, so that many share a prefix."""
    tree: dict[tuple[int, int], int] = {}
    lists = []
    for _ in range(rows):
        at, names = 0, []
        for _ in range(rng.randint(0, longest)):
            at = tree.setdefault((at, rng.choice([0, 0, 0, 1, 2])), len(tree) + 1)
            names.append(at - 1)  # 0 is a name as good as any
        lists.append(names)
    offsets = np.cumsum([0, *map(len, lists)])
    return Names(lists, np.array([x for names in lists for x in names], dtype=np.int64), offsets)


def rings(b: Blocks) -> dict[int, list[int]]:
    """Blocks by name, the oldest first, read from the table."""
    names, younger, older = (column.tolist() for column in (b.nodes.name, b.nodes.younger, b.nodes.older))
    out = {}
    for oldest in b.table[b.table != 0].tolist():
        ring = [oldest]
        while younger[ring[-1]] != oldest:
            ring.append(younger[ring[-1]])
        assert {names[block] for block in ring} == {names[oldest]}
        assert [older[block] for block in [*ring[1:], oldest]] == ring
        out[names[oldest]] = ring
    return out


def held(b: Blocks, row: int) -> list[int]:
    seat = int(b.owners.seat[row]) - 1
    return b.held[seat, : b.holds.count[seat]].tolist() if seat >= 0 else []


def check(b: Blocks, slow: SlowCache) -> None:
    """Everything is as in the slow model, and nothing is lost."""
    free, users = queue(b), b.nodes.users.tolist()
    assert free == slow.queue
    assert len(free) == prefix.free_count(b)
    assert users[1:] == [slow.users[block] for block in range(1, len(users))]
    assert {block for block in range(1, len(users)) if users[block] == 0} == set(free)
    assert set(np.flatnonzero(b.owners.seat)) == set(slow.held)
    assert {row: held(b, row) for row in slow.held} == slow.held
    found = {name if isinstance(name, int) else -1 - ((name[0] << 32) + name[1]): x for name, x in slow.found.items()}
    assert rings(b) == found
    assert {block for ring in found.values() for block in ring} == set(np.flatnonzero(b.nodes.younger))


def check_searches(b: Blocks) -> None:
    """No name lies behind a gap, where it would not be found."""
    for slot in np.flatnonzero(b.table).tolist():
        assert find(b, int(b.nodes.name[b.table[slot]])) == slot


class Load:
    """Random rows that start, grow, deliver and leave, on the cache and on the model."""

    def __init__(self, call: Call, seed: int, usable: int = 24, rows: int = 300, seats: int = 6) -> None:
        self.rng, self.call, self.seats = random.Random(seed), call, seats
        self.names = family(self.rng, rows, 5)
        self.b = build_blocks(rows, seats, 12, usable, BLOCK, self.names.ids, self.names.offsets)
        self.slow = SlowCache(usable, self.names.lists, BLOCK)
        self.known = [len(names) * BLOCK + self.rng.choice([0, 1, 5]) or 1 for names in self.names.lists]
        self.computed: dict[int, int] = {}
        self.hits = self.refused = self.twins = 0

    def both(self, what: int, name: str, row: int, *args: int) -> int:
        one = int(self.call(self.b, what, row, *(*args, 0, 0)[:2]))
        two = getattr(self.slow, name)(row, *args)
        if what in (HITS, IDLE, RELEASABLE):
            assert one == two, name
        return one

    def step(self) -> None:
        rng, kind = self.rng, self.rng.random()
        waiting = [row for row in range(len(self.known)) if row not in self.computed]
        if kind < 0.35 and len(self.computed) < self.seats:
            self.begin(rng.choice(waiting[: rng.choice([5, 50])]))
        elif kind < 0.85 and self.computed:
            self.compute(rng.choice(list(self.computed)))
        elif self.computed:
            row = rng.choice(list(self.computed))
            before, most = int(self.call(self.b, FREE, 0, 0, 0)), self.both(RELEASABLE, "releasable", row)
            self.both(RELEASE, "release", row)
            assert self.call(self.b, FREE, 0, 0, 0) == before + most
            del self.computed[row]
        else:
            self.both(RELEASE, "release", waiting[0])  # it holds nothing: nothing happens

        self.twins += any(len(ring) > 1 for ring in self.slow.found.values())

    def begin(self, row: int) -> None:
        known = self.known[row]
        hit = self.both(HITS, "hits", row, known)
        assert hit * BLOCK < known
        idle = self.both(IDLE, "idle_among", row, hit)
        tokens = hit * BLOCK + self.rng.randint(1, known - hit * BLOCK)
        fresh = -(-tokens // BLOCK) - hit
        if fresh + idle > self.call(self.b, FREE, 0, 0, 0):
            self.refused += 1
            return
        self.both(START, "start", row, hit, fresh)
        self.both(SEAL, "seal", row, tokens)
        self.computed[row] = tokens
        self.hits += hit

    def compute(self, row: int) -> None:
        tokens = self.computed[row] + self.rng.randint(1, BLOCK)
        slots = tokens + self.rng.choice([0, 0, 0, 9])  # room ahead: several blocks that stay without a name
        fresh = max(-(-slots // BLOCK) - int(self.call(self.b, HELD, row, 0, 0)), 0)
        if fresh > self.call(self.b, FREE, 0, 0, 0) or slots > 12 * BLOCK:
            self.refused += 1
            return
        self.both(GROW, "grow", row, fresh)
        self.computed[row] = tokens
        self.known[row] = max(self.known[row], tokens)
        self.both(SEAL, "seal", row, tokens - self.rng.choice([0, 0, 1]))


MODES = [pytest.param(call, id="python"), pytest.param(compiled, id="compiled")]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(4))
def test_as_the_slow_model(mode: Call, seed: int) -> None:
    load = Load(mode, seed)
    for turn in range(600 if mode is compiled else 2500):
        load.step()
        check(load.b, load.slow)
        if turn % 10 == 0:
            check_searches(load.b)
    assert min(load.hits, load.refused, load.twins) > 10, "the load is too tame"


def test_python_and_compiled_keep_the_same_memory() -> None:
    loads = [Load(mode, 9) for mode in (call, compiled)]
    for load in loads:
        for _ in range(500):
            load.step()
    assert (loads[0].b.memory == loads[1].b.memory).all()


@pytest.mark.parametrize("mode", MODES)
def test_restore_undoes_everything(mode: Call) -> None:
    load = Load(mode, 5)
    for _ in range(40):
        for _ in range(20):
            load.step()
        mode(load.b, SNAPSHOT, 0, 0, 0)
        memory = load.b.memory.copy()
        rows = {row: held(load.b, row) for row in range(300)}
        for row in list(load.computed)[:4]:
            mode(load.b, RELEASE, row, 0, 0)
        for row in [row for row in range(300) if row not in load.computed][:4]:
            if mode(load.b, FREE, 0, 0, 0) >= 12 and load.b.pool.spares[0] > 0:
                mode(load.b, START, row, mode(load.b, HITS, row, 9, 0), 2)
                mode(load.b, SEAL, row, 2 * BLOCK, 0)
        assert (load.b.memory != memory).any()
        mode(load.b, RESTORE, 0, 0, 0)
        assert (load.b.memory == memory).all()
        assert {row: held(load.b, row) for row in range(300)} == rows
        check(load.b, load.slow)


def test_a_preempted_row_finds_what_it_computed_itself() -> None:
    b = build_blocks(2, 2, 10, 10, BLOCK, np.zeros(0, dtype=np.int64), np.zeros(3, dtype=np.int64))
    prefix.start(b, 1, 0, 3)
    prefix.seal(b, 1, 3 * BLOCK)
    prefix.release(b, 1)
    assert prefix.hits(b, 1, 3 * BLOCK + 1) == 3
    assert prefix.hits(b, 1, 3 * BLOCK) == 2, "one token is left to compute"
    assert prefix.hits(b, 0, 3 * BLOCK) == 0, "another row's own blocks are not its"
    assert prefix.idle_among(b, 1, 3) == 3
    assert queue(b) == [4, 5, 6, 7, 8, 9, 10, 3, 2, 1]


def test_blocks_without_content_are_handed_out_first() -> None:
    b = build_blocks(1, 1, 10, 5, BLOCK, np.zeros(0, dtype=np.int64), np.zeros(2, dtype=np.int64))
    prefix.start(b, 0, 0, 4)
    prefix.seal(b, 0, 2 * BLOCK + 1)
    prefix.release(b, 0)
    assert queue(b) == [4, 3, 5, 2, 1]


def test_searches_stay_short() -> None:
    """A full table of a few thousand names, given in a row and own: 1.1 slots a search, about."""
    usable = 8000
    ids = np.arange(usable // 2)
    b = build_blocks(41, 41, usable, usable, 1, ids, np.array([0, *([len(ids)] * 41)]))
    prefix.start(b, 0, 0, usable // 2)
    prefix.seal(b, 0, usable // 2)
    for row in range(1, 41):
        prefix.start(b, row, 0, usable // 80)
        prefix.seal(b, row, usable // 80)
    last = len(b.table) - 1
    slots = np.flatnonzero(b.table)
    steps = [(int(slot) - blocks._home(b, int(b.nodes.name[b.table[slot]]))) & last for slot in slots]
    assert len(steps) == usable
    assert np.mean(steps) < 0.4
    assert max(steps) < 30


def test_ids_that_could_be_mistaken_are_refused() -> None:
    with pytest.raises(ValueError, match="0 or more"):
        build_blocks(1, 1, 1, 1, 1, np.array([-1]), np.array([0, 1]))
    with pytest.raises(ValueError, match="offsets"):
        build_blocks(2, 1, 1, 1, 1, np.array([1]), np.array([0, 1]))


class Host(NamedTuple):
    blocks: Any


def _without(e: Any) -> int:
    return -1


@where("prefix", otherwise=_without, of="blocks")
def _free(e: Any) -> int:
    return prefix.free_count(e.blocks)


@kernel
def _either(e: Any) -> int:
    return _free(e)


def test_an_engines_blocks_decide_what_is_compiled() -> None:
    none = np.zeros(0, dtype=np.int64)
    ask = entry(_either)
    for run in (_either, ask):
        assert run(Host(build_blocks(1, 1, 1, 7, 1, none, np.zeros(2, dtype=np.int64)))) == 7
        assert run(Host(counted())) == -1


def test_this_file_compiles_something() -> None:
    if ENABLED:
        assert compiled.on() is not call
