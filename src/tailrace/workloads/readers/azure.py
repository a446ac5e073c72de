"""Reader of the Azure LLM inference traces.

Source: https://github.com/Azure/AzurePublicDataset (CC-BY); cite Patel et al., Splitwise,
ISCA 2024 (code and conversation, 2023), and Stojkovic et al., DynamoLLM, HPCA 2025 (the
week of 2024, whose timestamps carry a time zone).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from ..workload import Workload
from . import tables
from .about import describe, refuse_gaps, reordered
from .source import Source

__all__ = ["COLUMNS", "read"]

COLUMNS: Final = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
UNITS: Final = {"TIMESTAMP": "date and time", "ContextTokens": "tokens", "GeneratedTokens": "tokens"}


def read(path: str | Path | Source) -> Workload:
    """The trace in the CSV file ``path``; arrivals count from its earliest request.

    Timestamps are exact to 0.1 µs. Rows out of order are sorted stably and counted in
    ``description["reordered_rows"]``. Rows with 0 generated tokens say nothing about
    serving; they are dropped and counted in ``description["dropped_rows"]``.

    Raises UserError naming file, row (as an editor counts it) and field of what is wrong.
    """
    source = Source.of(path)
    rows = tables.read(source, COLUMNS)
    generated = rows.whole("GeneratedTokens", low=0)
    kept = generated > 0
    context = rows.whole("ContextTokens", low=1, among=kept)[kept]
    # Whole tenths of a microsecond until the last step: seconds since 1970 would lose the digit.
    ticks = rows.nanoseconds("TIMESTAMP")[kept] // 100
    if not len(ticks):
        raise rows.unanswered("GeneratedTokens")
    arrival_s = (ticks - ticks.min()) / 1e7
    refuse_gaps(rows, "TIMESTAMP", np.flatnonzero(kept), arrival_s)
    first = np.datetime64(int(ticks.min()) * 100, "ns")
    description = describe(
        source.path,
        "azure",
        len(ticks),
        units=UNITS,
        dropped={"no generated tokens": len(rows) - len(ticks)},
        reordered_rows=reordered(ticks),
        ignored=rows.ignored,
        notes=[f"arrivals count from the earliest request, at {first} in the file"],
    )
    return Workload.of(arrival_s, context, generated[kept], name=source.name, description=description)
