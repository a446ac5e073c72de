"""Per-request results as one Parquet file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .. import files
from ..metrics import met
from ..metrics.fairness import slowdown

if TYPE_CHECKING:
    from ..sim.run import Result

__all__ = ["COLUMNS", "write_requests"]

LENGTHS: Final = ("short", "long")
REASONS: Final = ("unfinished", "finished", "aborted", "rejected")
"""By ``Requests.reason``."""

COLUMNS: Final[dict[str, str]] = {
    "policy": "the policy with its parameters, as in tables",
    "request": "number of the request in order of arrival, from 0",
    "class": "the operator's class",
    "tenant": "the tenant",
    "session": "number of the session; null for none",
    "true_class": "short or long, by the true output length",
    "predicted_class": "short or long, as the policy was told",
    "reason": "how it ended: finished, aborted, rejected, unfinished",
    "arrival_s": "seconds since the trace's start",
    "started_s": "start of its first chunk; null if it never started",
    "first_token_s": "end of the step that gave its first token",
    "finish_s": "end of its last step; null if it did not finish",
    "wait_s": "started_s - arrival_s",
    "ttft_s": "first_token_s - arrival_s",
    "tpot_s": "(finish_s - first_token_s) / (output_tokens - 1); null for one token",
    "e2e_s": "finish_s - arrival_s",
    "gap_max_s": "longest gap between two of its tokens",
    "alone_s": "seconds it would take by itself on an idle engine",
    "slowdown": "e2e_s / alone_s",
    "prompt_tokens": "",
    "output_tokens": "the true output length",
    "generated_tokens": "output tokens delivered",
    "preemptions": "times it lost its KV",
    "recomputed_tokens": "tokens computed again after preemptions",
    "preempted_s": "seconds that preemptions kept it from running, until it resumed or left",
    "ttft_slo_s": "its objective; null for none",
    "tpot_slo_s": "its objective; null for none",
    "ttft_met": "whether it met that objective (an unfinished request meets none); null without one",
    "tpot_met": "whether it met that objective; null without one",
    "slo_met": "whether it met all of its objectives; null without any",
    "first_on_time": "whether its first token came before it was due; null without a TTFT objective",
    "on_time_tokens": "output tokens after the first that came before they were due; null without both objectives",
}
"""Every column and what it is; the file's schema carries the same texts."""


def write_requests(path: str, found: Sequence[tuple[str, Result]]) -> None:
    """Write every policy's requests to ``path``, a row a request, whole or not at all. Raises UserError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts = []
    for label, result in found:
        columns = _columns(label, result)
        fields = [pa.field(n, c.type, metadata={"description": COLUMNS[n]}) for n, c in columns.items()]
        parts.append(pa.table(list(columns.values()), schema=pa.schema(fields)))
    files.write_atomically(path, lambda name: pq.write_table(pa.concat_tables(parts), name))


def _columns(label: str, result: Result) -> dict[str, Any]:
    import pyarrow as pa

    def named(codes: Any, names: Sequence[str]) -> Any:
        return pa.DictionaryArray.from_arrays(np.asarray(codes, dtype=np.int32), pa.array(list(names)))

    r, meta = result.requests, result.meta
    n = len(r.arrival_s)
    whole = pa.array(np.arange(n))
    computed: dict[str, Any] = {
        "policy": named(np.zeros(n), [label]),
        "request": whole,
        "class": named(r.class_id, meta["class_names"]),
        "tenant": named(r.tenant, meta["tenant_names"]),
        "session": pa.array(r.session, mask=r.session < 0),
        "true_class": named(r.true_class, LENGTHS),
        "predicted_class": named(r.predicted_class, LENGTHS),
        "reason": named(r.reason, REASONS),
        "slowdown": pa.array(slowdown(r), from_pandas=True),
        **_objectives(result),
    }
    return {
        name: computed[name] if name in computed else pa.array(getattr(r, name), from_pandas=True) for name in COLUMNS
    }


def _objectives(result: Result) -> dict[str, Any]:
    import pyarrow as pa

    r = result.requests
    first, later = met(r)
    has_ttft, has_tpot = np.isfinite(r.ttft_slo_s), np.isfinite(r.tpot_slo_s)
    return {
        "ttft_slo_s": pa.array(r.ttft_slo_s, mask=~has_ttft),
        "tpot_slo_s": pa.array(r.tpot_slo_s, mask=~has_tpot),
        "ttft_met": pa.array(first, mask=~has_ttft),
        "tpot_met": pa.array(later, mask=~has_tpot),
        "slo_met": pa.array(first & later, mask=~(has_ttft | has_tpot)),
        "first_on_time": pa.array(r.first_on_time, mask=~has_ttft),
        "on_time_tokens": pa.array(r.on_time_tokens, mask=r.on_time_tokens < 0),
    }
