"""JSON Lines and JSON arrays of flat objects: read fast, and again slowly when that fails, to say why."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ...errors import UserError
from .json_values import values
from .rows import FIX_ROW, Rows
from .source import Source, in_blocks

__all__ = ["first_keys", "objects", "read"]

BLOCK_BYTES: Final = 16 << 20
"""What is parsed at once. An object must fit, so it is doubled until the longest does."""
SAMPLE: Final = 20
"""Objects looked at to tell names that are numbers from names that are text."""
WANTED: Final = {"number": "a number", "name": "a name", "numbers": "a list of whole numbers of 0 or more"}


def objects(source: Source) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each object of the file with its place: ``row 3`` of lines, ``item 3`` of an array (both from 1)."""
    for place, value in values(source):
        if not isinstance(value, dict):
            shown = json.dumps(value)[:40]
            raise UserError(f"{source.path}: {place}: {shown} is not an object of field: value; {FIX_ROW}")
        yield place, value


def first_keys(source: Source) -> tuple[str, list[str]]:
    """``(place, keys)`` of the first object. Raises UserError when there is none."""
    for place, value in objects(source):
        return place, list(value)
    raise UserError(f"{source.path}: has no rows; there is nothing to run")


def read(
    source: Source, required: Sequence[str], optional: Sequence[str], kinds: Mapping[str, str], ignored: Sequence[str]
) -> Rows:
    """The fields of every object as columns; an optional one null or absent throughout is left out.

    Numbers come as float64, so whole ones are exact up to 2**53. Raises UserError for what
    is not JSON, not an object, or not of the field's kind.
    """
    schema = _schema(source, [*required, *optional], kinds)
    table = _table(source, schema, kinds)
    if table.num_rows == 0:
        raise UserError(f"{source.path}: has no rows; there is nothing to run")
    kept = [name for name in table.column_names if name in required or table[name].null_count < table.num_rows]
    return Rows(source.path, table.select(kept), lambda index: _place(source, index, table.num_rows), ignored)


def _table(source: Source, schema: Any, kinds: Mapping[str, str]) -> Any:
    import pyarrow as pa
    import pyarrow.json as pj

    def parsed(block: int) -> Any:
        with _stream(source) as file:
            options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
            return pj.read_json(file, pj.ReadOptions(block_size=block), options)

    try:
        table = in_blocks(parsed, BLOCK_BYTES)
        table.validate(full=True)  # a name may hold bytes that are not UTF-8
    except (pa.ArrowInvalid, OSError) as error:
        raise _why_not(source, schema, kinds, str(error)) from None
    return table


def _stream(source: Source) -> Any:
    import pyarrow as pa

    if not source.is_json_array:
        return source.stream()
    lines = "\n".join(json.dumps(value) for _, value in objects(source))
    return pa.BufferReader(lines.encode())


def _schema(source: Source, fields: Sequence[str], kinds: Mapping[str, str]) -> Any:
    """Names may be numbers in JSON, and numbers be written in quotes: the first objects tell."""
    import pyarrow as pa

    sample = [value for _, value in itertools.islice(objects(source), SAMPLE)]

    def type_of(field: str) -> Any:
        kind = kinds.get(field, "number")
        found = next((value[field] for value in sample if value.get(field) is not None), None)
        if kind == "numbers":
            return pa.list_(pa.int64())
        if kind == "name":
            return pa.int64() if isinstance(found, int) and not isinstance(found, bool) else pa.string()
        return pa.string() if isinstance(found, str) else pa.float64()

    return pa.schema([(field, type_of(field)) for field in fields])


def _place(source: Source, index: int, rows: int) -> str:
    if source.is_json_array:
        return f"item {index + 1}"
    lines = [number for number, text in source.lines() if text.strip()]
    return f"row {lines[index]}" if len(lines) == rows else f"object {index + 1}"


def _why_not(source: Source, schema: Any, kinds: Mapping[str, str], error: str) -> UserError:
    """Why the fast reader refused: found by reading again, slowly, which may raise the mistake itself."""
    import pyarrow as pa

    for place, value in objects(source):
        for field, kind in zip(schema.names, schema.types, strict=True):
            given = value.get(field)
            if given is None or _fits(given, kind):
                continue
            wrong = f"{repr(given)[:60]} is not {WANTED[kinds.get(field, 'number')]}"
            if isinstance(given, str | int | float) and isinstance(given, str) != pa.types.is_string(kind):
                wrong += ": in quotes" if isinstance(given, str) else ": not in quotes, as the first is"
            return UserError(f"{source.path}: {place}: field {field}: {wrong}; {FIX_ROW}")
    return UserError(f"{source.path}: is not JSON that can be read: {' '.join(error.split())[:200]}")


def _fits(value: Any, kind: Any) -> bool:
    """Whether a column of type ``kind`` holds the JSON value."""
    import pyarrow as pa

    def whole(one: Any) -> bool:
        return isinstance(one, int) and not isinstance(one, bool) and abs(one) < 2**63

    if pa.types.is_list(kind):
        return isinstance(value, list) and all(one is None or whole(one) for one in value)
    if pa.types.is_integer(kind):
        return whole(value)
    if pa.types.is_string(kind):
        return isinstance(value, str)
    return isinstance(value, int | float) and not isinstance(value, bool)
