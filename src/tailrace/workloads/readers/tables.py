"""The rows of a trace file, whichever of CSV, Parquet, JSON Lines or a JSON array it is."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import UserError
from . import delimited, json_rows
from .rows import Rows
from .source import Source

__all__ = ["header", "read", "resembles", "schema"]


def read(
    path: str | Path | Source,
    required: Sequence[str],
    optional: Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
) -> Rows:
    """The columns ``required`` and ``optional`` of the file, unpacked and found from its content.

    ``kinds`` says what JSON must hold: "number" (the default), "name" or "numbers", a list.
    Raises UserError for a file that is none of these, columns missing, misspelt or named
    twice, rows cut off or of unequal length, text that is not UTF-8, and no rows.
    """
    source = Source.of(path)
    if source.is_parquet:
        return _parquet(source, required, optional)
    source.check_text()
    place, found = header(source)
    wanted, ignored = _wanted(source.path, place, found, required, optional)
    if source.is_json:
        return json_rows.read(source, required, optional, kinds or {}, ignored)
    return delimited.read(source, int(place.split()[1]), found, wanted, ignored)


def header(source: Source) -> tuple[str, list[str]]:
    """``(place, names of the columns)`` of a text file: a CSV's header, or the keys of the first JSON object."""
    source.check_text()
    if source.is_json:
        return json_rows.first_keys(source)
    line, names = delimited.header(source)
    return f"row {line}", [name.strip() for name in names]


def schema(source: Source) -> list[str]:
    """The names of a Parquet file's columns. Raises UserError when it cannot be read."""
    with _opened(source) as file:
        return list(file.schema_arrow.names)


def resembles(found: Sequence[str], wanted: Sequence[str]) -> int:
    """How many of the names ``wanted`` have a like among those ``found``."""
    lower = [name.strip().lower() for name in found]
    return sum(bool(difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.7)) for name in wanted)


def _parquet(source: Source, required: Sequence[str], optional: Sequence[str]) -> Rows:
    """The rows of a Parquet file are counted from 1."""
    with _opened(source) as file:
        wanted, ignored = _wanted(source.path, "schema", file.schema_arrow.names, required, optional)
        table = file.read(columns=wanted)
    if table.num_rows == 0:
        raise UserError(f"{source.path}: has no rows; there is nothing to run")
    return Rows(source.path, table, lambda index: f"row {index + 1}", ignored)


@contextlib.contextmanager
def _opened(source: Source) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(pa.BufferReader(source.everything()) if source.packed else source.path) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        wrong = f"is not a readable Parquet file: {reason}"
        raise UserError(f"{source.path}: {wrong}; write or download it again") from None


def _wanted(
    path: Path, where: str, found: Sequence[str], required: Sequence[str], optional: Sequence[str]
) -> tuple[list[str], list[str]]:
    if not resembles(found, required):
        shown, add = ",".join(found)[:80], ",".join(required)
        raise UserError(f"{path}: {where}: field {required[0]}: no header, found {shown!r}; put first the line {add}")
    others = [name for name in found if name not in (*required, *optional)]
    for name in (*required, *optional):
        like = difflib.get_close_matches(name.lower(), [other.lower() for other in others], n=1, cutoff=0.8)
        close = next((other for other in others if other.lower() in like), None)
        if name not in found and (close or name in required):
            remedy = f"rename {close!r} to it" if close else f"the columns are {', '.join(found)}; add it"
            raise UserError(f"{path}: {where}: field {name}: no such column; {remedy}")
        if list(found).count(name) > 1:
            raise UserError(f"{path}: {where}: field {name}: two columns have this name; keep one")
    return [name for name in found if name not in others], others
