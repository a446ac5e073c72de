"""Host memory under ProServe's block management (arXiv 2512.12928): its copies ahead, its reload, its copy budget.

A `ManagedKV` is a `HostKV` with what `offload` (copies ahead of a preemption) and `budget` (how much is copied
back in a step) need, and the trait ``managed``. Each part is a rule of its own, off by default; engines that ask for
none of them have a plain `HostKV`, and are compiled without any of this.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _jit
from .._jit import kernel
from ..table import I8, Columns, allocate
from .host import HostKV, drop
from .offload import Copy, Offload, Order, cancel, go_on
from .transfer import IN, OUT, finished_s

__all__ = ["Choice", "ManagedKV", "Management", "Pick", "build_managed", "pipelined"]

LOGGED = 8
"""Copies a row of the table that are remembered: more than one step can make."""


class Choice(Columns):
    """Scalars of the plan being made: one row."""

    left_blocks: I8
    """Blocks that may still be copied back in this step; -1 = any number."""
    taken_blocks: I8
    """Blocks that rows which start in it have copied back."""
    skipped: I8
    """Rows that did not start for want of copy budget."""
    most_tokens: I8
    """Tokens that the step may hold."""


class Pick(Columns):
    """One row of the table, of the plan being made."""

    kept_tokens: I8
    """Leading tokens of a waiting row that come back from host memory if it starts; the rest it computes."""
    rows: I8
    """A list of rows that have something in host memory."""


class Management(NamedTuple):
    """What is asked of it. ``every_blocks``: n_off of each row, or None: nothing is copied ahead. ``layers``: 1 = a
    step waits for all that is copied back. ``beta``: 0 = nothing is copied back in part."""

    block_tokens: int
    every_blocks: NDArray[np.int64] | None
    layers: int
    beta: float


class ManagedKV(NamedTuple):
    """The fields of `HostKV`, then the engine's, then the plan's."""

    host: Any
    stored: Any
    lanes: Any
    offload: Any
    orders: Any
    log: Any
    choice: Any
    picks: Any


def build_managed(rows: int, host: HostKV, how: Management) -> ManagedKV:
    """``host``, which has as many ``rows``, managed as ``how`` says."""
    settings, scalars = allocate(Offload, 1)
    settings["block_tokens"], settings["layers"], settings["beta"] = how.block_tokens, how.layers, how.beta
    records, orders = allocate(Order, rows)
    if how.every_blocks is not None:
        settings["on"], records["every_blocks"] = 1, how.every_blocks
    plan = allocate(Choice, 1)[1], allocate(Pick, rows)[1]
    return ManagedKV(*host, scalars, orders, allocate(Copy, LOGGED * rows)[1], *plan)


@kernel
def _give_back(b: Any, row: int) -> None:
    cancel(b, row)
    drop(b, row)


@kernel
def _kept(b: Any, row: int, computed: int) -> int:
    return b.picks.kept_tokens[row]


@kernel
def pipelined(b: Any, begins_s: float, step_s: float) -> float:
    """`with_copies`: seconds of a step that computes for C = ``step_s`` and has KV copied back for T seconds.

    Layers are alike: of L each computes for C/L and its KV comes in T/L, one layer after the other. Layer i computes
    when its own KV is there, at i·T/L, and layer i - 1 has computed. So the first layer's copy is waited for, then
    the longer of the two sets the pace, and the last layer computes alone:

        T/L + (L - 1)/L · max(T, C) + C/L   =   max(T/L + C, T + C/L)

    C is all of the step, its constant too. With L = 1 that is T + C, a reload that is waited for whole. A step that
    has KV copied out (``swap_out`` not ahead) does not compute before it is, as it is written over.
    """
    lanes, layers = b.lanes, b.offload.layers[0]
    out_s = finished_s(lanes, OUT, begins_s) if lanes.asked[OUT] > 0 else 0.0
    in_s = finished_s(lanes, IN, begins_s) if lanes.asked[IN] > 0 else 0.0
    first_s = in_s / layers if in_s / layers > out_s else out_s
    seconds = first_s + step_s
    if in_s + step_s / layers > seconds and in_s > 0:
        seconds = in_s + step_s / layers
    b.host.wait_s[0] += seconds - step_s
    b.offload.skipped[0] += b.choice.skipped[0]  # by the plan that is carried out
    return seconds


_jit.register(
    ManagedKV,
    {"give_back": _give_back, "with_copies": pipelined, "catch_up": go_on, "kept_tokens": _kept},
    traits=["host", "managed"],
)
