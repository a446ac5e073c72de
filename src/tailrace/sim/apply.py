"""Carry a plan out: `commit` when the step starts, `complete` when it ends.

`commit` moves requests between waiting and running, gives and takes blocks, and counts
tokens as computed, as vLLM does when it schedules. `complete` delivers output tokens and
lets requests leave. With two steps in flight the next plan is made between the two.
"""

from __future__ import annotations

from typing import Any

from .. import hooks
from .._jit import kernel, routine
from ..latency import StepShape, step_seconds
from ..rules import ORDER_ALL
from ..schedule.engine import EVICTED, LAST, NONE, PART, STEADY
from ..schedule.host import copy_in
from ..schedule.kv import blocks_free, free_row, name_blocks
from ..schedule.moves import requeue, start, suspend
from ..schedule.offload import catch_up, offload
from ..schedule.parked import reclaim
from ..schedule.transfer import with_copies
from ..schedule.waiting import discard
from ..table import DECODE, DONE, PREFILL, WAITING
from .record import gap_bin, sample

__all__ = ["commit", "complete", "remove"]


@kernel
def commit(e: Any, r: Any, slot: int, now: float, begins_s: float) -> float:
    """Apply the plan in ``slot``, made at ``now`` for a step that begins at ``begins_s``.

    Returns the step's seconds.
    """
    catch_up(e.blocks, now, begins_s)
    _leave(e, r, now, begins_s)
    _enter(e, r, slot, now, begins_s)
    shape = _compute(e, r, slot)
    reclaim(e, now)
    core, counters = e.core, r.counters
    used = core.total_blocks[0] - core.free_blocks[0]
    if used > counters.most_blocks[0]:
        counters.most_blocks[0] = used
    if core.free_blocks[0] < 0:
        counters.over_limit_steps[0] += 1
    seconds = step_seconds(shape, e.cost) * r.pace[counters.steps[0] & (r.pace.shape[0] - 1)]
    seconds = with_copies(e.blocks, begins_s, seconds)
    offload(e, slot, begins_s + seconds)
    e.slots.items[slot] = e.plan.items[0]
    e.slots.step_s[slot] = seconds
    counters.steps[0] += 1
    counters.request_steps[0] += e.plan.items[0]
    counters.busy_s[0] += seconds
    counters.step_tokens[0] += shape.tokens
    counters.pressure[0] += e.plan.pressure[0]
    counters.escapes[0] += e.plan.escapes[0]
    return seconds


@kernel
def _leave(e: Any, r: Any, now: float, begins_s: float) -> None:
    """The evicted go back to the waiting; ``run`` keeps the order of this step."""
    count, gone = e.core.running[0], e.plan.evicted[0]
    if gone > 0 or e.core.order_scope[0] == ORDER_ALL:
        kept = 0
        for i in range(count):
            row = e.seats.order[i]
            if e.rows.mark[row] != EVICTED:
                e.seats.run[kept] = row
                kept += 1
        e.core.running[0] = kept
    for i in range(gone):
        row = e.seats.evicted[i]
        e.rows.mark[row] = NONE
        suspend(e, row, now)
        r.out.preempted_at_s[row] = begins_s
        r.counters.preemptions[0] += 1
        if e.seats.gain[i] >= 0:
            r.counters.displaced[0] += 1
            if e.rows.mark[e.seats.gain[i]] <= NONE:
                r.counters.in_vain[0] += 1
                e.rows.safe_until_tokens[row] = e.table.attained_tokens[row] + e.core.min_service_tokens[0]


@kernel
def _enter(e: Any, r: Any, slot: int, now: float, begins_s: float) -> None:
    """The admitted start to run."""
    for i in range(e.plan.admitted[0]):
        row = e.seats.admitted[i]
        copy_in(e, row, slot)
        start(e, row, now, begins_s)
        if e.table.preemptions[row] > 0:
            r.out.preempted_s[row] += begins_s - r.out.preempted_at_s[row]
        e.seats.run[e.core.running[0]] = row
        e.core.running[0] += 1


@kernel
def _compute(e: Any, r: Any, slot: int) -> StepShape:
    """Allocate and count the items' tokens; returns the shape of the step."""
    table, items, base = e.table, e.items, slot * e.seats.run.shape[0]
    tokens = prefills = prefill_tokens = square = cross = prefill_kv = decodes = decode_kv = 0
    for i in range(base, base + e.plan.items[0]):
        row, q = items.row[i], items.tokens[i]
        if items.found[i] > 0:
            table.cached_tokens[row] = items.found[i]
            r.counters.cached_tokens[0] += items.found[i]
            if items.found[i] > table.computed_tokens[row]:  # less, where more is in host memory
                table.computed_tokens[row] = items.found[i]
        kv = table.computed_tokens[row]
        e.rows.mark[row] = NONE
        e.core.free_blocks[0] -= items.blocks[i]
        table.kv_blocks[row] += items.blocks[i]
        table.computed_tokens[row] = kv + q
        tokens += q
        if table.phase[row] == DECODE:
            decodes += 1
            decode_kv += kv
            items.kind[i], items.emits[i] = STEADY, q
        else:
            prefills += 1
            prefill_tokens += q
            square += q * q
            cross += q * kv
            prefill_kv += kv
            _chunk(e, r, i, row, kv, q)
        e.rows.pending_tokens[row] += items.emits[i]
        if kv + q > table.attained_tokens[row]:
            table.attained_tokens[row] = kv + q
    e.core.free_blocks[0] = blocks_free(e.blocks, e.core.free_blocks[0])
    r.counters.prefill_tokens[0] += prefill_tokens
    r.counters.decode_tokens[0] += tokens - prefill_tokens
    return StepShape(
        tokens,
        prefills + decodes,
        prefills,
        prefill_tokens,
        square,
        cross,
        prefill_kv,
        decodes,
        tokens - prefill_tokens,
        decode_kv,
    )


@kernel
def _chunk(e: Any, r: Any, item: int, row: int, kv: int, q: int) -> None:
    """A prefill item: what it ends, and what of it is done a second time."""
    again = e.table.attained_tokens[row] - kv
    if again > 0:
        if again > q:
            again = q
        r.out.recomputed_tokens[row] += again
        r.counters.recomputed_tokens[0] += again
    if kv + q == e.rows.target_tokens[row]:
        e.table.phase[row] = DECODE
        e.items.kind[item] = LAST
        e.items.emits[item] = 1 if e.core.prefill_emits[0] else 0
    else:
        e.items.kind[item] = PART
        e.items.emits[item] = 0


@kernel
def complete(e: Any, r: Any, slot: int, now: float) -> None:
    """The step in ``slot`` ends: hooks, output tokens, finished requests."""
    items, base = e.items, slot * e.seats.run.shape[0]
    count, finished = e.slots.items[slot], 0
    catch_up(e.blocks, now, now)
    for i in range(base, base + count):
        row = items.row[i]
        if e.table.phase[row] == DONE:  # aborted while the step ran
            continue
        hooks.on_progress(e.table, row, items.tokens[i], now, e.state, e.params)
        # Swapped out meanwhile it has its KV all the same; lost, it counts as prefilled when it is again.
        if items.kind[i] == LAST and e.table.computed_tokens[row] >= e.rows.target_tokens[row]:
            hooks.on_prefill_done(e.table, row, now, e.state, e.params)
        if items.emits[i] > 0:
            _deliver(e, r, row, items.emits[i], now)
            if e.core.steps_in_flight[0] > 1 and e.table.phase[row] != WAITING:
                name_blocks(e.blocks, row, e.table.computed_tokens[row] - e.rows.pending_tokens[row])
            if e.table.generated_tokens[row] >= e.rows.output_tokens[row]:
                _finish(e, r, row, hooks.FINISHED, now)
                finished += 1
        if e.table.phase[row] == WAITING:
            _requeue(e, row, now)
    if finished > 0:
        _compact(e)
    sample(e, r, now)
    hooks.after_step(e.table, items.row[base : base + count], e.slots.step_s[slot], now, e.state, e.params)


@routine
def _requeue(e: Any, row: int, now: float) -> None:
    """A step that was under way has ended for a preempted row: its key may have changed."""
    requeue(e, row, now)


@kernel
def _deliver(e: Any, r: Any, row: int, tokens: int, now: float) -> None:
    """Output tokens reach the client together, at the step's end."""
    table, group = e.table, e.rows.group[row]
    if table.generated_tokens[row] == 0:
        table.first_token_s[row] = now
    else:
        gap = now - table.last_token_s[row]
        r.gaps[group, gap_bin(gap)] += 1
        if gap > r.out.gap_max_s[row]:
            r.out.gap_max_s[row] = gap
    if tokens > 1:
        r.gaps[group, 0] += tokens - 1
    if r.on_time_tokens.shape[0] > 0 and r.on_time_tokens[row] >= 0:
        r.on_time_tokens[row] += _on_time(table, row, tokens, now - table.arrival_s[row])
    table.last_token_s[row] = now
    table.generated_tokens[row] += tokens
    e.rows.pending_tokens[row] -= tokens


@kernel
def _on_time(table: Any, row: int, tokens: int, elapsed_s: float) -> int:
    """Of the row's next ``tokens``, those after its first that are not yet due ``elapsed_s`` after its arrival.

    Token i is due at TTFT + (i - 1) TPOT (docs/metrics.md, Token gain).
    """
    first, count = table.generated_tokens[row], 0
    for i in range(first, first + tokens):  # i - 1, as counted there
        if i > 0 and elapsed_s < table.ttft_slo_s[row] + i * table.tpot_slo_s[row]:
            count += 1
    return count


@kernel
def _finish(e: Any, r: Any, row: int, reason: int, now: float) -> None:
    """The row leaves; the caller compacts ``run``."""
    if e.table.phase[row] == WAITING:
        discard(e, row)
        if e.table.preemptions[row] > 0 and now > r.out.preempted_at_s[row]:
            r.out.preempted_s[row] += now - r.out.preempted_at_s[row]
    free_row(e, row)
    e.table.phase[row] = DONE
    r.out.reason[row] = reason + 1
    if reason == hooks.FINISHED:
        r.out.finish_s[row] = now
        r.counters.completed[0] += 1
    else:
        r.counters.aborted[0] += 1
    hooks.on_remove(e.table, row, reason, now, e.state, e.params)


@kernel
def _compact(e: Any) -> None:
    kept = 0
    for i in range(e.core.running[0]):
        row = e.seats.run[i]
        if e.table.phase[row] != DONE:
            e.seats.run[kept] = row
            kept += 1
    e.core.running[0] = kept


@kernel
def remove(e: Any, r: Any, row: int, now: float) -> bool:
    """Abort a live request between steps. Returns whether it was live."""
    phase = e.table.phase[row]
    if phase != WAITING and phase != PREFILL and phase != DECODE:
        return False
    catch_up(e.blocks, now, now)
    _finish(e, r, row, hooks.ABORTED, now)
    _compact(e)
    return True
