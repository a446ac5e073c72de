"""KV that is copied to host memory while its request runs (``swap_out=ahead``), so that a preemption need not wait.

Source: ProServe (arXiv 2512.12928), Asynchronous Offloading. Whenever a row has so many new full blocks (`Order`,
``every_blocks``: fewer for lighter classes, which are likelier to be preempted), it **orders** the copy of all of
them. Host memory is reserved with the order. Orders wait in one queue, a row has at most one in it, and the lane
out copies block after block, none before the step has ended that computes them; no step waits for it.

So of a row a prefix of whole blocks is in host memory. It stays there while the row runs, and after it was copied
back. When the row is preempted its device blocks are free at once. What is ordered and not copied by then is
discarded, with the copy just being made, and costs the lane no more time; the row waits with the tokens of
the prefix, and computes the rest again as a prefill. Where host memory is full nothing is ordered.

The lane's clock is moved on when the engine's is (`catch_up`), before anybody looks at what is copied.
"""

from __future__ import annotations

from typing import Any, Final

from .._jit import generic, kernel, routine, where
from ..table import F8, I8, Columns
from .transfer import IN, OUT

__all__ = ["Copy", "Offload", "Order", "cancel", "catch_up", "go_on", "kept_tokens", "note", "note_reload"]
__all__ += ["offload", "order", "retain", "set_aside"]

NOT_BEGUN: Final = -1.0


class Offload(Columns):
    """Scalars: one row."""

    on: I8
    """1 under ``swap_out=ahead``."""
    block_tokens: I8
    layers: I8
    """For the reload: see `managed.pipelined`."""
    beta: F8
    """β of a copy in part; 0 = none."""
    clock_s: F8
    """Until when the lane out has been followed."""
    begins_s: F8
    """When the step that is being carried out begins."""
    head: I8
    queued: I8
    """The queue of orders: a ring in ``Order.queue``."""
    orders: I8
    """Orders made."""
    discarded: I8
    """Blocks ordered and not copied when their row was preempted."""
    refused: I8
    """Times that blocks were due to be copied and host memory was full."""
    lost_tokens: I8
    """Tokens whose KV preemptions lost, as it was not copied by then."""
    partial: I8
    """Rows that resumed with less than what host memory had of them."""
    dropped_tokens: I8
    """Tokens of theirs that were not copied back."""
    skipped: I8
    """Times that a row did not start in a step as the copy budget had no room for it."""
    wasted_s: F8
    """Seconds that the lane out spent on copies that were discarded."""
    noted: I8
    """Copies written to `Copy` so far."""


class Order(Columns):
    """One row of the table."""

    every_blocks: I8
    """New full blocks after which they are copied: n_off."""
    left_blocks: I8
    """Blocks ordered and not copied; they are counted in ``Stored.blocks``."""
    whole_blocks: I8
    """Blocks of the order."""
    ready_s: F8
    """End of the step that computes the last of them."""
    begun_s: F8
    """When the lane began with them."""
    queue: I8
    """Rows with an order, a ring."""


class Copy(Columns):
    """A ring of the latest copies, for whoever watches the run."""

    lane: I8
    row: I8
    blocks: I8
    begin_s: F8
    end_s: F8
    discarded: I8


# ── what the engine asks; does nothing where blocks are not managed ──────────────────


@generic(on="b")
def catch_up(b: Any, now: float, begins_s: float) -> None:
    """It is ``now``, and a step is carried out that begins at ``begins_s``: the lane out has gone on until now."""


@generic(on="b")
def kept_tokens(b: Any, row: int, computed: int) -> int:
    """Of the ``computed`` tokens of a waiting row, the leading ones that the plan has copied back."""
    return computed


@kernel
def go_on(b: Any, now: float, begins_s: float) -> None:
    """`catch_up` of managed blocks: the orders that are done by ``now`` leave the queue."""
    b.offload.clock_s[0], b.offload.begins_s[0] = now, begins_s
    if b.offload.queued[0] > 0:
        _copy_on(b, now)


@routine
def _copy_on(b: Any, now: float) -> None:
    q, o, lanes = b.offload, b.orders, b.lanes
    while q.queued[0] > 0:
        row, begin_s, each_s = o.queue[q.head[0]], lanes.until_s[OUT], lanes.block_s[OUT]
        if o.ready_s[row] > begin_s:
            begin_s = o.ready_s[row]
        if begin_s >= now:
            return
        if o.begun_s[row] == NOT_BEGUN:
            o.begun_s[row] = begin_s
        done = o.left_blocks[row]
        if begin_s + done * each_s > now:
            whole = int((now - begin_s) / each_s)
            done = whole if whole < done else done - 1
        lanes.until_s[OUT] = begin_s + done * each_s
        lanes.blocks[OUT] += done
        lanes.tokens[OUT] += done * q.block_tokens[0]
        o.left_blocks[row] -= done
        if o.left_blocks[row] > 0:
            return
        note(b, OUT, row, o.whole_blocks[row], o.begun_s[row], lanes.until_s[OUT], 0)
        q.head[0] = (q.head[0] + 1) % o.queue.shape[0]
        q.queued[0] -= 1


@routine
def note(b: Any, lane: int, row: int, blocks: int, begin_s: float, end_s: float, discarded: int) -> None:
    """Write a copy down."""
    log, at = b.log, b.offload.noted[0] % b.log.row.shape[0]
    log.lane[at], log.row[at], log.blocks[at], log.discarded[at] = lane, row, blocks, discarded
    log.begin_s[at], log.end_s[at] = begin_s, end_s
    b.offload.noted[0] += 1


@routine
def cancel(b: Any, row: int) -> int:
    """Take back what is left of the row's order, if it has one: its host blocks become free; returns how many."""
    q, o, lanes = b.offload, b.orders, b.lanes
    left, now = o.left_blocks[row], q.clock_s[0]
    if left == 0:
        return 0
    if o.begun_s[row] == NOT_BEGUN:
        note(b, OUT, row, left, now, now, 1)
    else:
        done = o.whole_blocks[row] - left
        if done > 0:
            note(b, OUT, row, done, o.begun_s[row], lanes.until_s[OUT], 0)
        begin_s = lanes.until_s[OUT] if lanes.until_s[OUT] > o.ready_s[row] else o.ready_s[row]
        q.wasted_s[0] += now - begin_s
        lanes.until_s[OUT] = now
        note(b, OUT, row, left, begin_s, now, 1)
    size, at = o.queue.shape[0], 0
    while o.queue[(q.head[0] + at) % size] != row:
        at += 1
    q.queued[0] -= 1
    for i in range(at, q.queued[0]):
        o.queue[(q.head[0] + i) % size] = o.queue[(q.head[0] + i + 1) % size]
    o.left_blocks[row] = 0
    b.stored.blocks[row] -= left
    b.host.free_blocks[0] += left
    return int(left)


@routine
def order(b: Any, row: int, full_blocks: int, ready_s: float) -> None:
    """Copies of a row that has ``full_blocks`` are due, or not: see the module's text."""
    q, o, host, fresh = b.offload, b.orders, b.host, full_blocks - b.stored.blocks[row]
    if o.left_blocks[row] > 0 or fresh < o.every_blocks[row]:
        return
    if fresh > host.free_blocks[0]:
        q.refused[0] += 1
        return
    host.free_blocks[0] -= fresh
    b.stored.blocks[row] += fresh
    used = host.total_blocks[0] - host.free_blocks[0]
    if used > host.most_blocks[0]:
        host.most_blocks[0] = used
    o.left_blocks[row] = o.whole_blocks[row] = fresh
    o.ready_s[row], o.begun_s[row] = ready_s, NOT_BEGUN
    o.queue[(q.head[0] + q.queued[0]) % o.queue.shape[0]] = row
    q.queued[0] += 1
    q.orders[0] += 1


def _nothing(e: Any, slot: int, ready_s: float) -> None:
    return


@where("managed", otherwise=_nothing, of="blocks")
def offload(e: Any, slot: int, ready_s: float) -> None:
    """The step in ``slot`` ends at ``ready_s``: order the copies that are due by what it computes. O(items)."""
    if e.blocks.offload.on[0] == 0:
        return
    base = slot * e.seats.run.shape[0]
    for i in range(base, base + e.plan.items[0]):
        row = e.items.row[i]
        order(e.blocks, row, e.table.computed_tokens[row] // e.core.block_tokens[0], ready_s)


def _not_ahead(e: Any, row: int) -> bool:
    return False


@where("managed", otherwise=_not_ahead, of="blocks")
def set_aside(e: Any, row: int) -> bool:
    """Preempt a running row whose KV is copied ahead: it keeps what is in host memory. False if it is not."""
    b, table = e.blocks, e.table
    if b.offload.on[0] == 0:
        return False
    b.offload.discarded[0] += cancel(b, row)
    tokens = b.stored.blocks[row] * e.core.block_tokens[0]
    if tokens > 0:
        b.host.swapped[0] += 1
    if tokens < table.computed_tokens[row]:
        b.offload.lost_tokens[0] += table.computed_tokens[row] - tokens
        table.computed_tokens[row] = tokens
        known = table.prompt_tokens[row] + table.generated_tokens[row] + e.rows.pending_tokens[row]
        e.rows.target_tokens[row] = known  # what it lacks is a prefill, though it may have decoded
    e.core.free_blocks[0] += table.kv_blocks[row]
    table.kv_blocks[row] = 0
    return True


@where("managed", otherwise=_not_ahead, of="blocks")
def retain(e: Any, row: int) -> bool:
    """A waiting row resumes with what the plan has copied back, and has lost the rest. Whether the copy stays
    in host memory, as it does where more of it is copied ahead."""
    b, table = e.blocks, e.table
    kept = kept_tokens(b, row, table.computed_tokens[row])
    if kept < table.computed_tokens[row]:
        b.offload.partial[0] += 1
        b.offload.dropped_tokens[0] += table.computed_tokens[row] - kept
        table.computed_tokens[row] = kept
        e.rows.target_tokens[row] = table.prompt_tokens[row] + table.generated_tokens[row]
    if b.offload.on[0] == 0:
        return False
    blocks = kept // e.core.block_tokens[0]
    b.host.free_blocks[0] += b.stored.blocks[row] - blocks
    b.stored.blocks[row] = blocks
    return True


def _unseen(e: Any, row: int, blocks: int) -> None:
    return


@where("managed", otherwise=_unseen, of="blocks")
def note_reload(e: Any, row: int, blocks: int) -> None:
    """``blocks`` of the row are about to be asked for: they come after those already asked for in this step."""
    lanes, begin_s = e.blocks.lanes, e.blocks.offload.begins_s[0]
    asked, each_s = lanes.asked[IN], lanes.block_s[IN]
    if lanes.until_s[IN] > begin_s:
        begin_s = lanes.until_s[IN]
    note(e.blocks, IN, row, blocks, begin_s + asked * each_s, begin_s + (asked + blocks) * each_s, 0)
