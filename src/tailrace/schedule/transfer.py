"""Copies of KV between device and host memory: how long they take, and what a step waits for.

The link has a lane each way that work at the same time (PCIe is full duplex); in a lane copies go one
after the other, in the order in which they were asked for. Whole blocks are copied.

Copies are synchronous: those that a step asks for begin with it, and it computes when both lanes
have done them. vLLM's engine V0 swapped so (in stream order, before the forward pass), and gave a
block away in the step that copies it out; here it is as if a block came in when one has gone out.

A lane knows until when it is busy, so copies that no step waits for (ProServe's offload ahead of an
eviction) have a place to queue in; a step that waits for less than all of its copies (reload layer by
layer) is another implementation of `with_copies`.
"""

from __future__ import annotations

from typing import Any, Final

from .._jit import generic, kernel
from ..table import F8, I8, Columns

__all__ = ["IN", "OUT", "CopyLane", "ask", "finished_s", "lanes_wait_s", "with_copies"]

OUT: Final = 0
"""The lane from device to host."""
IN: Final = 1
"""The lane from host to device."""


class CopyLane(Columns):
    """One direction of the link; `OUT` and `IN` are the rows."""

    block_s: F8
    """Seconds a block."""
    until_s: F8
    """When it has done all that it began."""
    asked: I8
    """Blocks asked for and not begun."""
    blocks: I8
    """Blocks asked for in all."""
    tokens: I8
    """Tokens whose KV they hold."""


@generic(on="b")
def with_copies(b: Any, begins_s: float, step_s: float) -> float:
    """Seconds of a step that begins at ``begins_s`` and computes for ``step_s``, with the copies it asked for."""
    return step_s


@kernel
def ask(lanes: Any, lane: int, blocks: int, tokens: int) -> None:
    """Put ``blocks`` blocks with the KV of ``tokens`` tokens into the queue of ``lane``."""
    lanes.asked[lane] += blocks
    lanes.blocks[lane] += blocks
    lanes.tokens[lane] += tokens


@kernel
def finished_s(lanes: Any, lane: int, begins_s: float) -> float:
    """Begin, not before ``begins_s``, what ``lane`` was asked for: seconds from then until it is all done."""
    late = lanes.until_s[lane] - begins_s
    copies_s = lanes.asked[lane] * lanes.block_s[lane]
    lanes.asked[lane] = 0
    if late > 0:
        copies_s += late
    lanes.until_s[lane] = begins_s + copies_s
    return copies_s


@kernel
def lanes_wait_s(lanes: Any, begins_s: float) -> float:
    """Seconds from ``begins_s`` until both lanes have done all that they were asked for; 0 if nothing was."""
    if lanes.asked[OUT] == 0 and lanes.asked[IN] == 0:
        return 0.0
    out_s, in_s = finished_s(lanes, OUT, begins_s), finished_s(lanes, IN, begins_s)
    return out_s if out_s > in_s else in_s
