"""The engine's memory: everything that planning a step reads, and where the plan goes.

One `Engine` tuple is passed to every kernel. Its arrays fall in three parts: what is
(``table``, ``rows``, ``core``, ``heap``, ``slots``), the plan of the step being
decided (``plan``, ``seats``, ``items``, ``cursor``), and the
policy's own (``state``, ``scratch``, ``params``, with ``cost`` the latency model's
figures). Planning writes the second part only.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import rules as rl
from .._jit import columns
from ..table import F8, I8, Columns, RequestTable, allocate, dtype_of
from .blocks import counted

__all__ = ["Core", "Cursor", "Engine", "Item", "PlanTotals", "RowState", "build"]

NONE: Final = 0
EVICTED: Final = -1
"""``RowState.mark``: not in the plan, evicted by it, or (positive) 1 + the index of its item."""

PART: Final = 0
LAST: Final = 1
STEADY: Final = 2
"""``Item.kind``: a chunk that leaves some, a chunk that ends the prefill, a decode."""

SECONDS: Final = 1
SPENT: Final = 2
"""``PlanTotals.timed``; 0: the policy does not limit the step's seconds."""


class RowState(Columns):
    """The engine's own notes on a row."""

    tier: I8
    key: F8
    """(tier, key) as last ranked."""
    lane: I8
    position: I8
    """Index in its lane's heap while it waits."""
    target_tokens: I8
    """Tokens to compute before it decodes: those known when it was admitted."""
    pending_tokens: I8
    """Output tokens of steps still under way."""
    mark: I8
    tentative: I8
    """1 while a set of victims that contains it is tried."""
    safe_until_tokens: I8
    """Attained service below which it may not be displaced."""
    output_tokens: I8
    """Truth, which only the simulator holds: output tokens at which the request stops."""
    group: I8
    """Row of the gap histogram it counts in."""


class Core(Columns):
    """Scalars: one row, followed by the engine rules as `rules.codes` gives them.

    The first seven are settings.
    """

    token_budget: I8
    max_seqs: I8
    total_blocks: I8
    watermark_blocks: I8
    lanes: I8
    sees_all: I8
    hold: I8
    """1 to look at a step while it is under way: see `sim.instance.advance`."""
    clock_s: F8
    free_blocks: I8
    running: I8
    waiting: I8
    next_row: I8
    rows: I8
    in_flight: I8
    first_slot: I8


class PlanTotals(Columns):
    """Scalars of the plan being made: one row."""

    budget: I8
    """Tokens left."""
    seqs: I8
    """Sequences left of the policy's limit; places are counted by ``residents``."""
    seconds: F8
    timed: I8
    """SECONDS if the policy limits the step's, SPENT once they have lowered ``budget`` and bind no more."""
    free: I8
    """Blocks left; may go below 0 where the limit is only reported."""
    chunk_cap: I8
    """Most prefill tokens of one request; 0 = no cap."""
    residents: I8
    """Requests that will hold a place: running, less evicted, plus admitted."""
    unchunked: I8
    """Blocks that the prompts admitted in this step will need beyond their first chunk."""
    growth: I8
    """Blocks that running requests take in this step."""
    decodes: I8
    items: I8
    evicted: I8
    admitted: I8
    pressure: I8
    """How many of the evicted yielded to a running request's need for KV."""
    escapes: I8
    exact: I8
    """1 while the plan is made on the named blocks themselves."""
    unserved: I8
    """The waiting row that was looked at last and did not start, or -1."""
    cursor_size: I8
    """Candidates in the cursor."""
    cursor_read: I8
    cursor_past: I8
    """Over a list: rows selected and read before; over heaps: 1 once the top was read."""


class Seat(Columns):
    """Lists of rows, one entry a running request."""

    run: I8
    """Running rows in order of admission, or as last ranked."""
    order: I8
    """Running rows in the order of this step."""
    evicted: I8
    gain: I8
    """The waiting row that an evicted one was displaced for, or -1."""
    ahead: I8
    ahead_gain: I8
    """The same two of those to displace before the step (prefix cache)."""
    admitted: I8


class Lane(Columns):
    """One waiting list."""

    count: I8


class Slot(Columns):
    """One step under way."""

    items: I8
    end_s: F8
    step_s: F8


class Item(Columns):
    """One request's share of a step."""

    row: I8
    tokens: I8
    blocks: I8
    """KV blocks it takes, new or out of the prefix cache."""
    found: I8
    """Tokens that an admitted row finds in the prefix cache."""
    kind: I8
    emits: I8
    """Output tokens delivered when the step ends."""


class Cursor(Columns):
    """A heap of candidates over the heap of the waiting: reads them in order, moves none."""

    row: I8
    index: I8
    """Its place in its lane's heap."""
    live: I8
    """What `hooks.prepare` is shown."""


class Engine(NamedTuple):
    """See the module's text. Sizes: ``n`` rows of the table, ``m`` most running at once."""

    table: Any
    rows: Any
    core: Any
    plan: Any
    seats: Any
    lanes: Any
    heap: NDArray[np.int64]
    """(lanes, n) waiting rows: a binary heap a lane, or one unsorted list (EVERY_STEP)."""
    slots: Any
    items: Any
    """(slots · m) items; a step under way owns ``m`` of them."""
    cursor: Any
    blocks: Any
    """`blocks.Blocks` with a prefix cache, `host.HostKV` with host memory, `tiered.Tiered` with both, else
    `blocks.Counted`."""
    state: Any
    scratch: Any
    cost: Any
    params: Any


class Buffers(NamedTuple):
    """The structured arrays behind an `Engine`'s views."""

    table: np.ndarray[Any, Any]
    rows: np.ndarray[Any, Any]
    core: np.ndarray[Any, Any]


class Limits(NamedTuple):
    """An instance's size. ``max_seqs`` 0 = no cap."""

    token_budget: int
    max_seqs: int
    kv_tokens: int


def _watermark_blocks(rules: rl.EngineRules, blocks: int) -> int:
    """Blocks kept free at admission.

    A projection must stay under its share, so the reserve is rounded up. vLLM rounds down,
    and counts the null block that holds no KV.
    """
    if rules.admit == "projected":
        return math.ceil(rules.watermark * blocks)
    return int(rules.watermark * (blocks + (1 if rules.admit == "chunk" else 0)))


def build(
    rows: int, limits: Limits, rules: rl.EngineRules, policy: Any, params: Any, cost: Any, blocks: Any = None
) -> tuple[Engine, Buffers]:
    """An idle engine with room for ``rows`` requests, and the arrays behind its views.

    ``blocks``: those of a prefix cache or of host memory; by default they are only counted.
    """
    most = min(rows, limits.max_seqs) if limits.max_seqs else rows
    lanes, slots = policy.lanes, rules.steps_in_flight
    table, table_view = allocate(RequestTable, rows)
    row_state, row_view = allocate(RowState, rows)
    codes = rl.codes(rules)
    core = np.zeros(1, dtype=dtype_of(Core).descr + codes.dtype.descr)
    for name in codes.dtype.names or ():
        core[name] = codes[name]
    total = limits.kv_tokens // rules.block_tokens
    core["token_budget"], core["max_seqs"], core["total_blocks"] = limits.token_budget, most, total
    core["watermark_blocks"] = _watermark_blocks(rules, total)
    core["lanes"], core["sees_all"] = lanes, policy.sees_all(params)
    core["free_blocks"], core["rows"] = total, rows
    engine = Engine(
        table=table_view,
        rows=row_view,
        core=columns(core),
        plan=allocate(PlanTotals, 1)[1],
        seats=allocate(Seat, most)[1],
        lanes=allocate(Lane, lanes)[1],
        heap=np.zeros((lanes, rows), dtype=np.int64),
        slots=allocate(Slot, slots)[1],
        items=allocate(Item, slots * most)[1],
        cursor=allocate(Cursor, rows + lanes)[1],
        blocks=blocks if blocks is not None else counted(),
        state=policy.make_state(params, rows),
        scratch=policy.make_scratch(params, rows),
        cost=cost,
        params=params,
    )
    return engine, Buffers(table, row_state, core)
