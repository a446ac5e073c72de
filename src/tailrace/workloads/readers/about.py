"""What a reader says of the trace it read: `Workload.description`, the same keys for every format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...params import show
from ...table import F8, I8
from .rows import Rows

__all__ = ["describe", "from_earliest", "refuse_gaps", "remarks", "reordered"]

YEAR_S: Final = 365 * 86400.0


def describe(
    source: object,
    format: str,
    rows: int,
    *,
    units: Mapping[str, str],
    params: Any = None,
    dropped: Mapping[str, int] | None = None,
    reordered_rows: int = 0,
    ignored: Sequence[str] = (),
    notes: Sequence[str] = (),
    estimates: Sequence[str] = (),
) -> dict[str, Any]:
    """The description of a trace of ``rows`` requests, JSON-able.

    ``units`` gives the unit of each column as it is in the file; ``dropped`` the reasons,
    with rows each; ``notes`` what was taken for granted and ``estimates`` what was not in
    the file, both in whole sentences.
    """
    shown = show(params) if params is not None else {}
    reasons = {reason: int(count) for reason, count in (dropped or {}).items() if count}
    return {
        "source": str(source),
        "format": format,
        "parameters": shown,
        "seed": int(shown.get("seed", 0)),
        "units": dict(units),
        "rows": int(rows),
        "dropped_rows": sum(reasons.values()),
        "dropped_by_reason": reasons,
        "reordered_rows": int(reordered_rows),
        "ignored_columns": list(ignored),
        "notes": list(notes),
        "estimates": list(estimates),
    }


def refuse_gaps(rows: Rows, field: str, kept: I8, arrival_s: F8) -> None:
    """Raises UserError where nothing arrives for a year: then ``field`` does not count from one start.

    ``kept`` are the rows of ``arrival_s`` in the file.
    """
    order = np.argsort(arrival_s, kind="stable")
    gap = np.diff(arrival_s[order])
    if len(gap) and gap.max() > YEAR_S:
        i = int(np.argmax(gap))
        wrong = f"it is {gap[i] / YEAR_S:.3g} years later than every request before it"
        raise rows.mistake(int(kept[order[i + 1]]), field, wrong, "let all rows count from one start, in one unit")


def remarks(description: Mapping[str, Any]) -> list[str]:
    """What nobody should miss of a `Workload.description`: rows lost, rows sorted, and what the file did not say."""
    found = [
        f"rows dropped: {count:,} ({reason})" for reason, count in description.get("dropped_by_reason", {}).items()
    ]
    if description.get("reordered_rows"):
        found.append(f"rows out of order, sorted by arrival: {description['reordered_rows']:,}")
    return found + list(description.get("estimates", []))


def reordered(arrival: F8 | I8) -> int:
    """Rows that come after a later one."""
    return int(np.count_nonzero(arrival < np.maximum.accumulate(arrival))) if len(arrival) else 0


def from_earliest(timestamp: F8, unit: str, per_second: float) -> tuple[F8, list[str]]:
    """Arrivals in seconds from the earliest of ``timestamp``, and a note when that is not 0."""
    start = float(timestamp.min())
    arrival_s: F8 = (timestamp - start) / per_second
    note = f"arrivals count from the earliest request, at {start:.16g} {unit} in the file"
    return arrival_s, [note] if start else []
