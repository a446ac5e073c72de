"""Whose KV is on the device, told from what the steps of a run copy and compute, and from nothing else."""

from __future__ import annotations

from ..schedule.transfer import IN
from .run import Instance

__all__ = ["Presence"]


class Presence:
    """Follows which of each row's KV is on the device, from the steps' copies and work alone.

    Of a run under ProServe's block management but not ``swap_out=when_needed``, whose copies are not noted.
    """

    def __init__(self, run: Instance) -> None:
        self.run, self.there, self.steps, self.noted = run, dict[int, int](), 0, 0

    def look(self) -> None:
        """Call it after every single step. Raises AssertionError if one computes on KV that is not there."""
        run, e = self.run, self.run.engine
        steps = int(run.records.counters["steps"][0])
        if steps == self.steps:
            return
        self.steps = steps
        for row in e.seats.evicted[: int(e.plan.evicted[0])]:
            self.there.pop(int(row), None)
        log, size = e.blocks.log, run.rules.block_tokens
        for i in range(self.noted, int(e.blocks.offload.noted[0])):
            at = i % len(log.row)
            if log.lane[at] == IN:
                self.there[int(log.row[at])] = int(log.blocks[at]) * size
        self.noted = int(e.blocks.offload.noted[0])
        slot = int(e.core.first_slot[0] + e.core.in_flight[0] - 1) % len(e.slots.items)
        base = slot * len(e.seats.run)
        for j in range(base, base + int(e.slots.items[slot])):
            row, tokens = int(e.items.row[j]), int(e.items.tokens[j])
            before, there = int(run.buffers.table["computed_tokens"][row]) - tokens, self.there.get(row, 0)
            assert there >= before, f"row {row} computes on {before} tokens and has {there}"
            self.there[row] = before + tokens
