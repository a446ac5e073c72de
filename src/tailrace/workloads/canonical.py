"""Our own trace files, CSV or Parquet: one row a request, one column a field.

Columns: arrival_s, prompt_tokens, output_tokens; optional class, class_weight, tenant,
priority, ttft_slo_s, tpot_slo_s. An SLO left empty is none. Predictions are a setting of
the run and are not kept in files.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..errors import UserError
from ..table import I8
from ._rows import PARQUET_MAGIC, Rows, check_file, read_csv, read_parquet
from .workload import Workload

__all__ = ["COLUMNS", "OPTIONAL", "read", "write"]

COLUMNS: Final = ("arrival_s", "prompt_tokens", "output_tokens")
OPTIONAL: Final = ("class", "class_weight", "tenant", "priority", "ttft_slo_s", "tpot_slo_s")


def read(path: str | Path) -> Workload:
    """The trace in ``path``, CSV or Parquet as its first bytes say.

    Arrivals are seconds from the start of the trace. Rows out of order are sorted stably
    and counted in ``description["reordered_rows"]``. Classes and tenants are numbered in
    order of first appearance.

    Raises UserError naming file, row and field; CSV rows are counted as an editor does
    (header = 1), Parquet rows from 1.
    """
    path = Path(path)
    parquet = check_file(path).startswith(PARQUET_MAGIC)
    rows, ignored = (read_parquet if parquet else read_csv)(path, COLUMNS, OPTIONAL)
    arrival = rows.real("arrival_s", "finite and 0 or more", lambda values: np.isfinite(values) & (values >= 0))
    description = {
        "source": str(path),
        "format": "canonical",
        "parameters": {},
        "seed": 0,
        "rows": len(rows),
        "dropped_rows": 0,
        "reordered_rows": int(np.count_nonzero(arrival < np.maximum.accumulate(arrival))),
        "ignored_columns": ignored,
    }
    lengths = [rows.whole(field, low=1) for field in COLUMNS[1:]]
    return Workload.of(arrival, *lengths, name=path.stem, description=description, **_optional(rows))


def _optional(rows: Rows) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if "class" in rows:
        columns["class_id"], columns["class_names"] = rows.names("class")
    if "class_weight" in rows:
        names = columns.get("class_names", ("default",))
        columns["class_weights"] = _weights(rows, columns.get("class_id", np.zeros(len(rows), dtype=np.int64)), names)
    if "tenant" in rows:
        columns["tenant"], columns["tenant_names"] = rows.names("tenant")
    if "priority" in rows:
        columns["priority"] = rows.whole("priority", low=-(2**31), high=2**31 - 1)
    for field in ("ttft_slo_s", "tpot_slo_s"):
        if field in rows:
            columns[field] = rows.real(field, "above 0", lambda values: values > 0, missing=np.inf)
    return columns


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

    The file appears complete or not at all. Not kept: predictions, the description, the
    prefix, and classes and tenants without a request. Raises UserError for another suffix, or when the
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
    if workload.priority.any():
        columns["priority"] = workload.priority
    for field in ("ttft_slo_s", "tpot_slo_s"):
        if np.isfinite(getattr(workload, field)).any():
            columns[field] = getattr(workload, field)
    return pa.table(columns)


def _write_csv(table: Any, file: Any) -> None:
    import pyarrow.csv as pcsv

    file.write((",".join(table.column_names) + "\n").encode())
    pcsv.write_csv(table, file, pcsv.WriteOptions(include_header=False, quoting_style="needed"))


def _write_parquet(table: Any, file: Any) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, file)
