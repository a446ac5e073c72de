"""The columns of a table, converted so that every mistake is named by file, row and field.

Columns are converted whole, which is fast; only when that fails is the first bad row
looked for, and its line counted as an editor counts it (the header is line 1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...errors import UserError
from ...table import F8, I8
from ..workload import MAX_TOKENS

__all__ = ["FIX_ROW", "Rows"]

TIMESTAMP_LENGTH: Final = len("2023-11-16 18:15:46")
FIX_ROW: Final = "correct it or delete the row"


class Rows:
    """The wanted columns of one file. ``place`` says where its row ``index`` stands.

    A column absent or empty throughout is not ``in`` it. ``ignored`` names the other columns.
    """

    def __init__(self, path: Path, table: Any, place: Callable[[int], str], ignored: Sequence[str] = ()) -> None:
        self.path, self.table, self.place, self.ignored = path, table, place, list(ignored)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __contains__(self, field: str) -> bool:
        return field in self.table.column_names

    def mistake(self, index: int, field: str, wrong: str, remedy: str = FIX_ROW) -> UserError:
        """The error for row ``index`` (from 0, header and blank lines not counted)."""
        return UserError(f"{self.path}: {self.place(index)}: field {field}: {wrong}; {remedy}")

    def unanswered(self, field: str) -> UserError:
        """The error for a trace without a request that has a prompt and an answer."""
        return UserError(f"{self.path}: field {field}: 0 in all {len(self)} rows; a trace needs answered requests")

    def whole(self, field: str, low: int, high: int = MAX_TOKENS, among: Any = True) -> I8:
        """A column of whole numbers, 1.0 among them; those of the rows ``among`` must lie in [low, high]."""
        import pyarrow as pa

        values: I8 = self._convert(field, "a whole number", (pa.int64(),), (pa.float64(), pa.int64())).to_numpy()
        self._refuse(field, among & ((values < low) | (values > high)), f"is outside [{low}, {high}]")
        return values

    def real(self, field: str, wanted: str, good: Callable[[F8], Any], missing: float | None = None) -> F8:
        """A column of numbers that are all ``good``; an empty field is ``missing``, or a mistake."""
        import pyarrow as pa

        values: F8 = self._convert(field, "a number", (pa.float64(),), missing=missing).to_numpy()
        self._refuse(field, ~good(values), f"must be {wanted}")
        return values

    def nanoseconds(self, field: str) -> I8:
        """A column of date and time, exact to 9 fractional digits, since 1970 (UTC if a zone is given)."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.table[field]
        if not pa.types.is_string(column.type):
            column = pc.cast(column, pa.string())
        # A date alone would pass for midnight; spreadsheets leave such columns behind.
        short = pc.fill_null(pc.less(pc.binary_length(column), TIMESTAMP_LENGTH), True).to_numpy()
        self._refuse(field, short, "is not date and time, as in 2023-11-16 18:15:46.6805900")
        zoned = column[0].as_py()[TIMESTAMP_LENGTH:].lstrip(".0123456789") != ""
        kind = pa.timestamp("ns", "UTC" if zoned else None)
        wanted = f"a date and time {'with' if zoned else 'without'} time zone, as in the first row, 1678 to 2261"
        values: I8 = self._convert(field, wanted, (kind,)).cast(pa.int64()).to_numpy()
        return values

    def names(self, field: str, missing: bool = False, among: I8 | None = None) -> tuple[I8, tuple[str, ...]]:
        """A column of names as (index, names in order of first appearance), of the rows ``among`` or all.

        An empty field is a mistake, or -1 if some may be ``missing``.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        column = pc.utf8_trim_whitespace(self._convert(field, "a name", (pa.string(),), missing=""))
        column = column if among is None else column.take(among)
        coded = column.combine_chunks().dictionary_encode()
        codes: I8 = coded.indices.to_numpy().astype(np.int64)
        names = coded.dictionary.to_pylist()
        if "" in names:
            empty = names.index("")
            if not missing:
                index = int(np.argmax(codes == empty))
                raise self.mistake(index if among is None else int(among[index]), field, "it is empty", "give a name")
            codes = np.where(codes == empty, -1, codes - (codes > empty))
            names.remove("")
        return codes, tuple(names)

    def numbers(self, field: str) -> tuple[I8, I8]:
        """A column of lists of whole numbers of 0 or more as (all of them, offsets of the rows); empty is none.

        In CSV they are separated by spaces.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.table[field].combine_chunks()
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = _split(column)
        wanted = "a list of whole numbers of 0 or more"
        if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type) or pa.types.is_null(column.type)):
            raise UserError(f"{self.path}: field {field}: its type {column.type} is not {wanted}; convert it")
        index = _first_bad(column, (pa.list_(pa.int64()),))
        if index is not None:
            raise self.mistake(index, field, f"{_shown(column[index])} is not {wanted}")
        column = pc.cast(column, pa.list_(pa.int64()))
        counts = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
        flat, row = column.flatten(), np.repeat(np.arange(len(counts)), counts)
        values: I8 = pc.fill_null(flat, -1).to_numpy()
        if (values < 0).any():
            index = int(row[int(np.argmax(values < 0))])
            raise self.mistake(index, field, f"{_shown(column[index])} is not {wanted}")
        return values, np.concatenate(([0], np.cumsum(counts))).astype(np.int64)

    def _refuse(self, field: str, bad: Any, wrong: str) -> None:
        if bad.any():
            index = int(np.argmax(bad))
            raise self.mistake(index, field, f"{_shown(self.table[field][index])} {wrong}")

    def _convert(self, field: str, wanted: str, *ways: tuple[Any, ...], missing: Any = None) -> Any:
        """The column cast by the first of ``ways`` (types in turn) that does; null is ``missing``, or a mistake."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.table[field]
        try:
            if not column.null_count:  # the fast way: nothing to mend
                return _cast(column, ways[0])
        except pa.ArrowNotImplementedError:
            raise UserError(f"{self.path}: field {field}: its type {column.type} is not {wanted}; convert it") from None
        except pa.ArrowInvalid:
            pass
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = pc.utf8_trim_whitespace(column)  # a CSV written by hand: "1, 2"
            column = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
        bad = {way: _first_bad(column, way) for way in ways}
        way = next((way for way in ways if bad[way] is None), None)
        if way is None:
            index = bad[ways[-1]] or 0
            raise self.mistake(index, field, f"{_shown(column[index])} is not {wanted}")
        column = _cast(column, way)
        if missing is not None:
            return pc.fill_null(column, missing)
        if column.null_count:
            raise self.mistake(int(np.argmax(column.is_null().to_numpy())), field, "it is empty")
        return column


def _cast(column: Any, way: tuple[Any, ...]) -> Any:
    import pyarrow.compute as pc

    for kind in way:
        column = pc.cast(column, kind)
    return column


def _first_bad(column: Any, way: tuple[Any, ...]) -> int | None:
    """The first row that does not convert, in time linear in the rows."""
    import pyarrow as pa

    nested = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)

    def part(low: int, high: int) -> Any:
        # A slice of lists shares the items of all rows, and its cast fails for any of them.
        return column.take(pa.array(np.arange(low, high))) if nested else column.slice(low, high - low)

    def fails(low: int, high: int) -> bool:
        try:
            _cast(part(low, high), way)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return True
        return False

    low, high = 0, len(column)
    if not fails(low, high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(low, middle) else (middle, high)
    return low


def _split(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pc.utf8_trim_whitespace(column)
    column = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
    return pc.utf8_split_whitespace(column)


def _shown(value: Any) -> str:
    found = value.as_py()
    text = repr(int(found) if isinstance(found, float) and found.is_integer() and abs(found) < 1e16 else found)
    return text if len(text) <= 60 else f"{text[:57]}..."
