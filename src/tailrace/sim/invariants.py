"""What must hold between two steps of any run: small checks that a test calls on an `Instance`.

Each raises AssertionError with the facts. `check` runs those that only read; `plan_is_pure`
also plans (compiled once more), `clock_moves_on` needs the clock of the call before.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from ..hooks import EVERY_STEP, LANES
from ..rules import managed
from ..schedule.engine import NONE
from ..schedule.host import HostKV
from ..schedule.rank import before, earlier
from ..schedule.transfer import IN, OUT
from ..table import DECODE, DONE, FREE, PREFILL, WAITING
from .run import Instance

__all__ = ["blocks", "budgets", "causality", "check", "clock_moves_on", "heaps", "host_blocks", "keys_are_fresh"]
__all__ += ["kv_limit", "marks", "named_blocks", "ordered", "parked", "plan_is_pure", "requests"]
__all__ += ["tokens", "total_order"]


def check(run: Instance) -> None:
    """Every check that reads one moment of ``run``."""
    checks = (blocks, named_blocks, host_blocks, ordered, parked, kv_limit, requests, heaps, keys_are_fresh, tokens)
    for holds in (*checks, budgets, marks, causality, total_order):
        holds(run)


def _scalar(run: Instance, name: str) -> int:
    return int(run.buffers.core[name][0])


def _live(run: Instance) -> list[int]:
    return [int(row) for row in np.flatnonzero(np.isin(run.buffers.table["phase"], (WAITING, PREFILL, DECODE)))]


def _waiting(run: Instance) -> list[int]:
    """Rows in the waiting structure."""
    e, lanes = run.engine, range(_scalar(run, "lanes"))
    return [int(e.heap[lane, i]) for lane in lanes for i in range(int(e.lanes.count[lane]))]


def _running(run: Instance) -> list[int]:
    return [int(row) for row in run.engine.seats.run[: _scalar(run, "running")]]


def blocks(run: Instance) -> None:
    """Free and held blocks add up; the running hold what their tokens need, nobody else any."""
    table, size = run.buffers.table, run.rules.block_tokens
    free, held, total = _scalar(run, "free_blocks"), int(table["kv_blocks"].sum()), _scalar(run, "total_blocks")
    if run.rules.prefix_cache:  # shared ones are held once
        held = int((np.asarray(run.engine.blocks.nodes.users) > 0).sum())
    assert free + held == total, f"{free} free + {held} held blocks are not {total}"
    stored = _stored(run)
    for row in np.flatnonzero((table["kv_blocks"] != 0) | (table["computed_tokens"] != 0)):
        phase, computed, have = (int(table[name][row]) for name in ("phase", "computed_tokens", "kv_blocks"))
        if phase == WAITING and stored[row]:
            there = (have, int(stored[row]))
            assert there == (0, -(-computed // size)), f"row {row}: {computed} tokens in {there} device and host blocks"
            continue
        assert phase in (PREFILL, DECODE), f"row {row} in phase {phase} holds {have} blocks, {computed} tokens"
        need = max(computed, int(run.buffers.rows["target_tokens"][row])) if run.rules.admit == "prompt" else computed
        assert have == -(-need // size), f"row {row}: {need} tokens in {have} blocks of {size}"


def named_blocks(run: Instance) -> None:
    """With a prefix cache: every block is as often used as it is held, by the running only, as many as their
    rows say; the others lie in the free queue."""
    if not run.rules.prefix_cache:
        return
    b, table = run.engine.blocks, run.buffers.table
    seats = np.asarray(b.owners.seat)
    holders = np.flatnonzero(seats)
    assert set(holders) == set(_running(run)), f"rows {holders} hold named blocks, {_running(run)} run"
    counts = np.asarray(b.holds.count)[seats[holders] - 1]
    assert (counts == table["kv_blocks"][holders]).all(), f"{counts} named, {table['kv_blocks'][holders]} counted"
    held = [b.held[seats[row] - 1, :count] for row, count in zip(holders, counts, strict=True)]
    users, used = np.asarray(b.nodes.users), np.zeros(len(b.nodes.users), dtype=np.int64)
    for part in held:
        np.add.at(used, part, 1)
    assert (users == used).all(), f"blocks {np.flatnonzero(users != used)} are not used as often as they are held"
    free = (int(b.pool.free[0]), int((users[1:] == 0).sum()))
    assert free == (_scalar(run, "free_blocks"),) * 2, f"{free} free, the counter says {_scalar(run, 'free_blocks')}"


def _stored(run: Instance) -> np.ndarray[Any, Any]:
    """Host blocks by row; zeros where there is no host memory."""
    if run.rules.evict != "swap":
        return np.zeros(len(run.buffers.table), dtype=np.int64)
    return np.asarray(run.engine.blocks.stored.blocks)


def host_blocks(run: Instance) -> None:
    """Free and held host blocks add up; copies account for all but the parked, and only the waiting hold any, or
    who is copied ahead."""
    if run.rules.evict != "swap":
        return
    host, lanes, stored, core = run.engine.blocks.host, run.engine.blocks.lanes, _stored(run), run.buffers.core
    free, total, most = (int(getattr(host, name)[0]) for name in ("free_blocks", "total_blocks", "most_blocks"))
    assert 0 <= free <= total, f"{free} of {total} host blocks are free"
    assert free + stored.sum() == total, f"{free} free + {stored.sum()} held host blocks are not {total}"
    assert total - free <= most <= total, f"{total - free} host blocks in use, at most {most}"
    holders = np.flatnonzero(stored)
    assert (stored >= 0).all(), f"rows {np.flatnonzero(stored < 0)} hold fewer host blocks than none"
    if run.rules.swap_out == "ahead":  # copies stay and are made alongside: `ordered` has the rest
        return
    assert (run.buffers.table["phase"][holders] == WAITING).all(), f"not all of rows {holders} wait"
    out, back = int(lanes.blocks[OUT]), int(lanes.blocks[IN])
    there = int(stored.sum() - host.parked_blocks[0])
    assert out - back >= there, f"{out} blocks went out and {back} came back, {there} are there"
    ends = float(run.engine.slots.end_s.max()) if core["in_flight"][0] else float(core["clock_s"][0])
    assert (lanes.asked == 0).all(), f"copies that no step began: {lanes.asked}"
    assert (lanes.until_s <= ends).all(), f"copies until {lanes.until_s} outlast the steps, until {ends}"


def ordered(run: Instance) -> None:
    """Copied ahead, a row's host blocks are a prefix of whole blocks of its tokens. What of them is still to be copied
    belongs to a running row and lies in the queue, once a row; in the queue's order steps end."""
    if run.rules.swap_out != "ahead":
        return
    b, table, stored, size = run.engine.blocks, run.buffers.table, _stored(run), run.rules.block_tokens
    assert (stored * size <= table["computed_tokens"]).all(), (
        f"{stored} host blocks of {table['computed_tokens']} tokens"
    )
    left, head, count = np.asarray(b.orders.left_blocks), int(b.offload.head[0]), int(b.offload.queued[0])
    queue = [int(b.orders.queue[(head + i) % len(left)]) for i in range(count)]
    assert sorted(queue) == np.flatnonzero(left).tolist(), f"queue {queue}, ordered are {np.flatnonzero(left)}"
    assert ((left >= 0) & (left <= stored)).all(), f"{left} blocks to copy, {stored} reserved"
    assert set(queue) <= set(_running(run)), f"{queue} are being copied, {_running(run)} run"
    ready = [float(b.orders.ready_s[row]) for row in queue]
    assert ready == sorted(ready), f"orders {queue} are ready at {ready}"
    ends = float(run.engine.slots.end_s.max()) if _scalar(run, "in_flight") else float(run.buffers.core["clock_s"][0])
    assert max(ready, default=0.0) <= ends, f"orders ready at {ready}, after the last step's end at {ends}"
    now = float(b.offload.clock_s[0])
    assert b.lanes.until_s[OUT] <= now, f"the lane out has copied until {b.lanes.until_s[OUT]}, it is {now}"


def parked(run: Instance) -> None:
    """Parked rows wait with host memory reserved, their device blocks are free, and the list of them is whole."""
    if run.rules.evict != "swap":
        return
    host, place, blocks_ = run.engine.blocks.host, np.asarray(run.engine.blocks.stored.place), _stored(run)
    count, total = int(host.parked_rows[0]), int(host.parked_blocks[0])
    listed, rows = run.engine.blocks.stored.parked[:count].tolist(), np.flatnonzero(place)
    assert sorted(listed) == rows.tolist(), f"rows {rows} are parked, the list says {listed}"
    assert [int(place[row]) for row in listed] == list(range(1, count + 1)), f"parked {listed}, at places {place}"
    assert (blocks_[rows] > 0).all(), f"not all of rows {rows} have host memory"
    assert total == blocks_[rows].sum(), f"rows {rows} are parked with {blocks_[rows]} blocks, not {total}"
    assert total <= max(0, _scalar(run, "free_blocks")), f"{total} parked of {_scalar(run, 'free_blocks')} free blocks"
    told, back = int(host.parked[0]), int(host.kept[0])
    if run.rules.swap_out != "when_needed":
        assert told == 0, f"{told} were parked"
        return
    out = int(host.swapped[0])
    assert told >= out + back + count, f"{told} were parked, {out} copied out, {back} came back and {count} are"


def kv_limit(run: Instance) -> None:
    """An enforced limit is never passed."""
    free = _scalar(run, "free_blocks")
    assert run.rules.kv_limit == "reported" or free >= 0, f"{-free} blocks more than there are"


def requests(run: Instance) -> None:
    """Every request is in exactly one place, and all counters agree."""
    table, counters = run.buffers.table, run.records.counters
    n, come, phases = _scalar(run, "rows"), _scalar(run, "next_row"), run.buffers.table["phase"]
    waiting, running = _waiting(run), _running(run)
    assert len({*waiting, *running}) == len(waiting) + len(running), f"twice: waiting {waiting}, running {running}"
    assert set(waiting) == set(np.flatnonzero(phases == WAITING)), f"waiting {waiting} against phases {phases}"
    assert set(running) == set(np.flatnonzero((phases == PREFILL) | (phases == DECODE))), f"running {running}"
    assert len(waiting) == _scalar(run, "waiting"), f"{len(waiting)} wait, the counter says {_scalar(run, 'waiting')}"
    assert not (phases[:come] == FREE).any(), f"among the {come} arrived are rows in phase free"
    assert (phases[come:n] == FREE).all(), f"rows after {come} have not arrived"
    gone = Counter(run.records.out["reason"][:n].tolist())
    told = tuple(int(counters[name][0]) for name in ("completed", "aborted", "rejected"))
    assert (gone[1], gone[2], gone[3]) == told, f"reasons {gone}, counters {told}"
    assert sum(told) == int((phases == DONE).sum()), f"{told} left, {(phases == DONE).sum()} rows are done"
    assert int(table["preemptions"].sum()) == int(counters["preemptions"][0]), "preemptions do not add up"


def heaps(run: Instance) -> None:
    """Positions and lanes point back, and no child is ranked before its parent."""
    e, rows = run.engine, run.buffers.rows
    above = earlier if run.policy.keys == LANES else before
    for lane in range(_scalar(run, "lanes")):
        heap = [int(row) for row in e.heap[lane, : int(e.lanes.count[lane])]]
        for i, row in enumerate(heap):
            at = (int(rows["lane"][row]), int(rows["position"][row]))
            assert at == (lane, i), f"row {row} is at {(lane, i)} and says {at}"
            if i and run.policy.keys != EVERY_STEP:
                assert above(e, heap[(i - 1) >> 1], row), f"row {row} is ranked before its parent in lane {lane}"


def keys_are_fresh(run: Instance) -> None:
    """Where keys change only with a row's own columns, those in the heap are what the policy says now."""
    e, rows, now = run.engine, run.buffers.rows, float(run.buffers.core["clock_s"][0])
    if run.policy.keys in (LANES, EVERY_STEP) or not hasattr(run.policy, "key"):
        return
    for row in _waiting(run):
        want = run.policy.key(e.table, row, now, e.state, e.scratch, e.cost, e.params)
        have = (int(rows["tier"][row]), float(rows["key"][row]))
        assert have == tuple(want), f"row {row} waits with key {have}, the policy says {want}"


def clock_moves_on(run: Instance, since_s: float) -> float:
    """The clock is not before ``since_s``; returns it for the next call."""
    now = float(run.buffers.core["clock_s"][0])
    assert since_s <= now < math.inf, f"the clock went from {since_s} to {now}"
    return now


def tokens(run: Instance) -> None:
    """Tokens computed, under way and delivered fit together, with and without an output token at prefill."""
    table, rows = run.buffers.table, run.buffers.rows
    emits, stored = 1 if run.rules.prefill_emits else 0, _stored(run)
    for row in _live(run):
        prompt, made = int(table["prompt_tokens"][row]), int(table["generated_tokens"][row])
        computed, target = int(table["computed_tokens"][row]), int(rows["target_tokens"][row])
        pending, most = int(rows["pending_tokens"][row]), int(rows["output_tokens"][row])
        facts = f"row {row}: prompt {prompt}, computed {computed}/{target}, output {made}+{pending}/{most}"
        assert made < most, facts
        assert 0 <= pending <= most - made, facts
        assert int(table["attained_tokens"][row]) >= computed, facts
        swapped = bool(stored[row])
        if table["phase"][row] == PREFILL or (swapped and computed < target):
            assert prompt <= target == prompt + made + pending, facts
            assert computed < target, facts
        elif table["phase"][row] == DECODE or swapped:
            assert computed == prompt + made + pending - emits, facts
    done = np.flatnonzero(run.records.out["reason"] == 1)
    assert (table["generated_tokens"][done] == rows["output_tokens"][done]).all(), "finished without all its output"


def budgets(run: Instance) -> None:
    """Steps under way hold no more tokens than the budget, and no more run than the cap."""
    e = run.engine
    width, most = len(e.slots.items), len(e.seats.run)
    assert _scalar(run, "running") <= _scalar(run, "max_seqs"), f"{_scalar(run, 'running')} run"
    for i in range(_scalar(run, "in_flight")):
        slot = (_scalar(run, "first_slot") + i) % width
        items = range(slot * most, slot * most + int(e.slots.items[slot]))
        held = [int(e.items.row[j]) for j in items]
        total = sum(int(e.items.tokens[j]) for j in items)
        assert total <= run.config.token_budget, f"{total} tokens in a step"
        assert all(e.items.tokens[j] > 0 for j in items), f"an empty item in slot {slot}"
        assert len(set(held)) == len(held), f"twice in a step: {held}"


def marks(run: Instance) -> None:
    """No plan leaves a mark behind."""
    rows = run.buffers.rows
    assert (rows["mark"] == NONE).all(), f"marked rows {np.flatnonzero(rows['mark'])}"
    assert (rows["tentative"] == 0).all(), f"tentative rows {np.flatnonzero(rows['tentative'])}"


def causality(run: Instance) -> None:
    """Nothing happens before what it needs: arrival, start, first token, finish."""
    table, finish, now = run.buffers.table, run.records.out["finish_s"], float(run.buffers.core["clock_s"][0])
    arrival, started, first = (table[name] for name in ("arrival_s", "started_s", "first_token_s"))
    chain = (("started", started, "arrival", arrival), ("finish", finish, "first token", first))
    for late, after, early, start in chain:
        bad = np.flatnonzero(~np.isnan(after) & ~(after >= start))
        assert not bad.size, f"rows {bad}: {late} {after[bad]} before {early} {start[bad]}"
    bad = np.flatnonzero(~np.isnan(first) & ~(first > started))
    assert not bad.size, f"rows {bad}: first token {first[bad]} not after the start {started[bad]}"
    for name, seconds in (("first token", first), ("finish", finish)):
        assert not (seconds > now).any(), f"{name} later than the clock {now}: {seconds[seconds > now]}"


def total_order(run: Instance) -> None:
    """Of any two live rows one is earlier: no two share arrival and number."""
    table = run.buffers.table
    keys = Counter((float(table["arrival_s"][row]), int(table["seq"][row])) for row in _live(run))
    assert all(count == 1 for count in keys.values()), f"equal rows: {[k for k, count in keys.items() if count > 1]}"


def _memory(run: Instance) -> dict[str, Any]:
    """Copies of all that planning must leave alone."""
    e, kept = run.engine, ("lane", "position", "target_tokens", "pending_tokens", "mark", "tentative", "output_tokens")
    state = {name: _bytes(part) for name, part in e.state._asdict().items()}
    under_way = [(_scalar(run, "first_slot") + i) % len(e.slots.items) for i in range(_scalar(run, "in_flight"))]
    most = len(e.seats.run)
    return {
        "table": run.buffers.table.tobytes(),
        "core": run.buffers.core.tobytes(),
        "rows": [run.buffers.rows[name].tobytes() for name in kept],
        "waiting": _waiting(run),
        "running": _running(run),
        "state": state,
        "blocks": [_bytes(e.blocks.memory)] if run.rules.prefix_cache else [],
        "host": [_bytes(getattr(e.blocks, part)) for part in _host_parts(run)],
        "items": [np.asarray(e.items.tokens[slot * most : (slot + 1) * most]).tobytes() for slot in under_way],
        "out": run.records.out.tobytes(),
    }


def _host_parts(run: Instance) -> tuple[str, ...]:
    """The fields of the engine's ``blocks`` that say what is in host memory."""
    more = ("offload", "orders", "log") if managed(run.rules) else ()
    return (*HostKV._fields, *more) if run.rules.evict == "swap" else ()


def _bytes(part: Any) -> list[bytes]:
    """An array's bytes, or those of a view's columns."""
    if isinstance(part, np.ndarray):
        return [np.asarray(part).tobytes()]
    return [np.asarray(column).tobytes() for column in vars(part).values()]


def plan_is_pure(run: Instance) -> None:
    """Planning twice gives the same plan and changes nothing but the plan."""
    memory = _memory(run)
    first, second = run.plan(), run.plan()
    assert first == second, f"planned {first}, then {second}"
    for name, part in _memory(run).items():
        assert part == memory[name], f"planning changed {name}"
