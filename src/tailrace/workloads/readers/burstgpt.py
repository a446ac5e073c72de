"""Reader of BurstGPT: requests to ChatGPT and GPT-4 through a regional Azure OpenAI service.

Source: https://github.com/HPMLL/BurstGPT (CC-BY-4.0); Wang et al., BurstGPT, arXiv 2401.17644. Failed
requests have 0 response tokens; some releases are without them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from ..workload import Workload
from . import tables
from .about import describe, from_earliest, refuse_gaps, reordered
from .rows import Rows
from .source import Source

__all__ = ["COLUMNS", "read"]

COLUMNS: Final = ("Timestamp", "Model", "Request tokens", "Response tokens", "Total tokens", "Log Type")
OPTIONAL: Final = ("Session ID", "Elapsed time")
UNITS: Final = {"Timestamp": "s", "Request tokens": "tokens", "Response tokens": "tokens"}


def read(path: str | Path | Source) -> Workload:
    """The trace in the CSV file ``path``; arrivals count from its earliest request.

    The model is the tenant: two models are two services that share nothing but the trace.
    The log type (conversation or API) is the class, as it is the kind of request that an
    operator would weigh. Failed requests, and those without a prompt, are dropped and
    counted. A ``Session ID``, where the file has it, is the session.

    Raises UserError naming file, row and field of what is wrong.
    """
    source = Source.of(path)
    rows = tables.read(source, COLUMNS, OPTIONAL)
    prompt, output = rows.whole("Request tokens", low=0), rows.whole("Response tokens", low=0)
    kept = (prompt > 0) & (output > 0)
    if not kept.any():
        raise rows.unanswered("Response tokens")
    stamp = rows.real("Timestamp", "finite and 0 or more", lambda values: np.isfinite(values) & (values >= 0))[kept]
    arrival, notes = from_earliest(stamp, "s", 1.0)
    refuse_gaps(rows, "Timestamp", np.flatnonzero(kept), arrival)
    failed = int((output == 0).sum())
    description = describe(
        source.path,
        "burstgpt",
        len(stamp),
        units=UNITS,
        dropped={"failed, no response tokens": failed, "no request tokens": len(rows) - len(stamp) - failed},
        reordered_rows=reordered(stamp),
        ignored=[*rows.ignored, "Total tokens", *(["Elapsed time"] if "Elapsed time" in rows else [])],
        notes=[*notes, "the model is the tenant, the log type the class", *_totals(rows, prompt + output)],
    )
    columns = _columns(rows, kept)
    return Workload.of(arrival, prompt[kept], output[kept], name=source.name, description=description, **columns)


def _columns(rows: Rows, kept: Any) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    columns["tenant"], columns["tenant_names"] = rows.names("Model", among=np.flatnonzero(kept))
    columns["class_id"], columns["class_names"] = rows.names("Log Type", among=np.flatnonzero(kept))
    if "Session ID" in rows:
        columns["session"] = rows.names("Session ID", missing=True)[0][kept]
    return columns


def _totals(rows: Rows, total: Any) -> list[str]:
    """A total that is not the sum is no mistake of ours to mend, but worth saying."""
    off = int((rows.whole("Total tokens", low=0) != total).sum())
    return [f"rows whose total is not the sum of request and response: {off:,}"] if off else []
