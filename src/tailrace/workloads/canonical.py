"""Our own trace files, CSV, Parquet or JSON Lines: one row a request, one column a field.

Columns: arrival_s, prompt_tokens, output_tokens; optional class, class_weight, tenant,
session, priority, ttft_slo_s, tpot_slo_s, and prefix_blocks with block_tokens. An SLO or a
session left empty is none. Predictions are a setting of the run and are not kept in files.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..errors import UserError
from ..table import F8, I8
from .prefix import Prefix, twice
from .readers import tables
from .readers.about import describe, from_earliest, reordered
from .readers.rows import Rows
from .readers.source import Source
from .workload import Workload

__all__ = ["COLUMNS", "OPTIONAL", "read", "write"]

COLUMNS: Final = ("arrival_s", "prompt_tokens", "output_tokens")
OPTIONAL: Final = (
    "class",
    "class_weight",
    "tenant",
    "session",
    "priority",
    "ttft_slo_s",
    "tpot_slo_s",
    "prefix_blocks",
    "block_tokens",
)
KINDS: Final = {"class": "name", "tenant": "name", "session": "name", "prefix_blocks": "numbers"}
UNITS: Final = {"arrival_s": "s", "prompt_tokens": "tokens", "output_tokens": "tokens"}
LATEST_START_S: Final = 1e9
"""A later first arrival is seconds since 1970 (2001 or later), not since the start of the trace."""


def read(path: str | Path | Source) -> Workload:
    """The trace in ``path``, CSV, Parquet or JSON as its first bytes say.

    Arrivals are seconds from the start of the trace, or since 1970: those count from the
    earliest. Rows out of order are sorted stably and counted in
    ``description["reordered_rows"]``. Classes, tenants and sessions are numbered in order
    of first appearance. ``prefix_blocks`` holds the ids of the prompt's full blocks of
    ``block_tokens`` tokens as `Prefix` has them: a list, in CSV separated by spaces.

    Raises UserError naming file, row and field; CSV rows are counted as an editor does
    (header = 1), Parquet rows from 1.
    """
    source = Source.of(path)
    rows = tables.read(source, COLUMNS, OPTIONAL, KINDS)
    arrival = rows.real("arrival_s", "finite and 0 or more", lambda values: np.isfinite(values) & (values >= 0))
    lengths = [rows.whole(field, low=1) for field in COLUMNS[1:]]
    arrival_s, notes = _from_start(arrival)
    columns = _optional(rows) | _grouped(rows)
    description = describe(
        source.path,
        "canonical",
        len(rows),
        units=UNITS,
        reordered_rows=reordered(arrival),
        ignored=rows.ignored,
        notes=notes,
    )
    prefix = _prefix(rows, lengths[0])
    return Workload.of(arrival_s, *lengths, name=source.name, description=description, prefix=prefix, **columns)


def _from_start(arrival: F8) -> tuple[F8, list[str]]:
    if arrival.min() > LATEST_START_S:
        return from_earliest(arrival, "s", 1.0)
    late = float(arrival.min())
    return arrival, [f"the first request arrives at {late:.16g} s"] if late > 60 else []


def _grouped(rows: Rows) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if "class" in rows:
        columns["class_id"], columns["class_names"] = rows.names("class")
    if "class_weight" in rows:
        names = columns.get("class_names", ("default",))
        columns["class_weights"] = _weights(rows, columns.get("class_id", np.zeros(len(rows), dtype=np.int64)), names)
    if "tenant" in rows:
        columns["tenant"], columns["tenant_names"] = rows.names("tenant")
    if "session" in rows:
        columns["session"], _ = rows.names("session", missing=True)
    return columns


def _optional(rows: Rows) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if "priority" in rows:
        columns["priority"] = rows.whole("priority", low=-(2**31), high=2**31 - 1)
    for field in ("ttft_slo_s", "tpot_slo_s"):
        if field in rows:
            columns[field] = rows.real(field, "above 0", lambda values: values > 0, missing=np.inf)
    return columns


def _prefix(rows: Rows, prompt_tokens: I8) -> Prefix | None:
    if "block_tokens" not in rows:
        if "prefix_blocks" in rows:
            raise rows.mistake(0, "block_tokens", "prefix_blocks has no meaning without it", "add the column")
        return None
    size = rows.whole("block_tokens", low=1)
    if (size != size[0]).any():
        index = int(np.argmax(size != size[0]))
        raise rows.mistake(index, "block_tokens", f"{size[index]}, but {size[0]} before", "give all rows the same")
    empty = np.zeros(0, dtype=np.int64), np.zeros(len(rows) + 1, dtype=np.int64)
    ids, offsets = rows.numbers("prefix_blocks") if "prefix_blocks" in rows else empty
    counts = np.diff(offsets)
    over = counts > prompt_tokens // size[0]
    if over.any():
        index = int(np.argmax(over))
        wrong = f"{counts[index]} ids, but {prompt_tokens[index]} tokens fill {prompt_tokens[index] // size[0]} blocks"
        raise rows.mistake(index, "prefix_blocks", wrong, "name full blocks only")
    row = np.repeat(np.arange(len(rows)), counts)
    if (entry := twice(ids, row)) is not None:
        wrong = f"id {ids[entry]} comes twice"
        raise rows.mistake(int(row[entry]), "prefix_blocks", wrong, "let an id name a block and all before it")
    return Prefix(int(size[0]), ids, offsets)


def _weights(rows: Rows, class_id: I8, names: tuple[str, ...]) -> list[float]:
    weight = rows.real("class_weight", "finite and above 0", lambda values: (values > 0) & np.isfinite(values))
    _, first = np.unique(class_id, return_index=True)
    expected = weight[first][class_id]
    if (weight != expected).any():
        index = int(np.argmax(weight != expected))
        wrong = f"{weight[index]:g}, but class {names[class_id[index]]!r} has {expected[index]:g} before"
        raise rows.mistake(index, "class_weight", wrong, "give each class one weight")
    return [float(value) for value in weight[first]]


def write(workload: Workload, path: str | Path) -> None:
    """Write ``workload`` to ``path``, Parquet or CSV by its suffix; optional columns where they say something.

    The file appears complete or not at all. Not kept: predictions, the description, and
    classes and tenants without a request. Raises UserError for another suffix, or when the
    folder is missing or cannot be written.
    """
    path = Path(path)
    writers: dict[str, Callable[[Any, Any], None]] = {".csv": _write_csv, ".parquet": _write_parquet}
    if path.suffix.lower() not in writers:
        raise UserError(f"{path}: a trace is written as .csv or .parquet; end the name with one of them")
    if path.is_dir() or not path.parent.is_dir():
        raise UserError(
            f"{path}: {'is a folder' if path.is_dir() else 'its folder does not exist'}; choose another path"
        )
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            writers[path.suffix.lower()](_table(workload), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def _table(workload: Workload) -> Any:
    import pyarrow as pa

    columns: dict[str, Any] = {field: getattr(workload, field) for field in COLUMNS}
    if workload.class_names != ("default",):
        columns["class"] = np.array(workload.class_names, dtype=object)[workload.class_id]
    if set(workload.class_weights) != {1.0}:
        columns["class_weight"] = np.array(workload.class_weights)[workload.class_id]
    if workload.tenant_names != ("default",):
        columns["tenant"] = np.array(workload.tenant_names, dtype=object)[workload.tenant]
    if (workload.session >= 0).any():
        columns["session"] = pa.array(workload.session, mask=workload.session < 0)
    if workload.priority.any():
        columns["priority"] = workload.priority
    for field in ("ttft_slo_s", "tpot_slo_s"):
        if np.isfinite(getattr(workload, field)).any():
            columns[field] = getattr(workload, field)
    if workload.prefix is not None:
        prefix = workload.prefix
        columns["prefix_blocks"] = pa.LargeListArray.from_arrays(prefix.offsets, prefix.ids)
        columns["block_tokens"] = np.full(len(workload), prefix.block_tokens)
    return pa.table(columns)


def _write_csv(table: Any, file: Any) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pcsv

    if "prefix_blocks" in table.column_names:  # CSV knows no lists
        blocks = pc.cast(table["prefix_blocks"], pa.large_list(pa.string()))
        at = table.column_names.index("prefix_blocks")
        table = table.set_column(at, "prefix_blocks", pc.binary_join(blocks, " "))
    file.write((",".join(table.column_names) + "\n").encode())
    pcsv.write_csv(table, file, pcsv.WriteOptions(include_header=False, quoting_style="needed"))


def _write_parquet(table: Any, file: Any) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, file)
