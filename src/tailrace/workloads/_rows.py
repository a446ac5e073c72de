"""Reading table files so that every mistake is named by file, row and field.

Columns are converted whole, which is fast; only when that fails is the first bad row
looked for, and its line counted as an editor counts it (the header is line 1).
"""

from __future__ import annotations

import csv
import difflib
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..errors import UserError
from ..table import F8, I8
from .workload import MAX_TOKENS

__all__ = ["PARQUET_MAGIC", "Rows", "check_file", "first_row", "read_csv", "read_parquet", "resembles"]

PARQUET_MAGIC: Final = b"PAR1"
TIMESTAMP_LENGTH: Final = len("2023-11-16 18:15:46")
FIX_ROW: Final = "correct it or delete the row"


class Rows:
    """The wanted columns of one file. ``place`` says where its row ``index`` stands."""

    def __init__(self, path: Path, table: Any, place: Callable[[int], str]) -> None:
        self.path, self.table, self.place = path, table, place

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __contains__(self, field: str) -> bool:
        return field in self.table.column_names

    def mistake(self, index: int, field: str, wrong: str, remedy: str = FIX_ROW) -> UserError:
        """The error for row ``index`` (from 0, header and blank lines not counted)."""
        return UserError(f"{self.path}: {self.place(index)}: field {field}: {wrong}; {remedy}")

    def whole(self, field: str, low: int, high: int = MAX_TOKENS, among: Any = True) -> I8:
        """A column of whole numbers; those of the rows ``among`` must lie in [low, high]."""
        import pyarrow as pa

        values: I8 = self._convert(field, pa.int64(), "a whole number").to_numpy()
        self._refuse(field, among & ((values < low) | (values > high)), f"is outside [{low}, {high}]")
        return values

    def real(self, field: str, wanted: str, good: Callable[[F8], Any], missing: float | None = None) -> F8:
        """A column of numbers that are all ``good``; an empty field is ``missing``, or a mistake."""
        import pyarrow as pa

        values: F8 = self._convert(field, pa.float64(), "a number", missing).to_numpy()
        self._refuse(field, ~good(values), f"must be {wanted}")
        return values

    def nanoseconds(self, field: str) -> I8:
        """A column of date and time, exact to 9 fractional digits, since 1970 (UTC if a zone is given)."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.table[field]
        # A date alone would pass for midnight; spreadsheets leave such columns behind.
        short = pc.less(pc.binary_length(column), TIMESTAMP_LENGTH).to_numpy()
        self._refuse(field, short, "is not date and time, as in 2023-11-16 18:15:46.6805900")
        zoned = column[0].as_py()[TIMESTAMP_LENGTH:].lstrip(".0123456789") != ""
        kind = pa.timestamp("ns", "UTC" if zoned else None)
        wanted = f"a date and time {'with' if zoned else 'without'} time zone, as in the first row, 1678 to 2261"
        values: I8 = self._convert(field, kind, wanted).cast(pa.int64()).to_numpy()
        return values

    def names(self, field: str) -> tuple[I8, tuple[str, ...]]:
        """A column of names as (index, names in order of first appearance)."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = pc.utf8_trim_whitespace(self._convert(field, pa.string(), "a name"))
        coded = column.combine_chunks().dictionary_encode()
        codes: I8 = coded.indices.to_numpy().astype(np.int64)
        names = tuple(coded.dictionary.to_pylist())
        if "" in names:
            raise self.mistake(int(np.argmax(codes == names.index(""))), field, "it is empty", "give a name")
        return codes, names

    def _refuse(self, field: str, bad: Any, wrong: str) -> None:
        if bad.any():
            index = int(np.argmax(bad))
            raise self.mistake(index, field, f"{self.table[field][index].as_py()!r} {wrong}")

    def _convert(self, field: str, kind: Any, wanted: str, missing: float | None = None) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.table[field]
        try:
            if not column.null_count:  # the fast way: nothing to mend
                return pc.cast(column, kind)
        except pa.ArrowNotImplementedError:
            raise UserError(f"{self.path}: field {field}: its type {column.type} is not {wanted}; convert it") from None
        except pa.ArrowInvalid:
            pass
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = pc.utf8_trim_whitespace(column)  # a CSV written by hand: "1, 2"
            column = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
        index = _first_bad(column, kind)
        if index is not None:
            raise self.mistake(index, field, f"{column[index].as_py()!r} is not {wanted}")
        column = pc.cast(column, kind)
        if missing is not None:
            return pc.fill_null(column, missing)
        if column.null_count:
            raise self.mistake(int(np.argmax(column.is_null().to_numpy())), field, "it is empty")
        return column


def _first_bad(column: Any, kind: Any) -> int | None:
    """The first row that does not convert, in time linear in the rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def fails(low: int, high: int) -> bool:
        try:
            pc.cast(column.slice(low, high - low), kind)
        except pa.ArrowInvalid:
            return True
        return False

    low, high = 0, len(column)
    if not fails(low, high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(low, middle) else (middle, high)
    return low


def check_file(path: Path) -> bytes:
    """The first 4 KiB of a file that is there, readable and not empty. Raises UserError."""
    if path.is_dir():
        raise UserError(f"{path}: is a folder; name a file in it")
    if not path.exists():
        raise UserError(f"{path}: no such file{_nearest_file(path)}")
    try:
        with path.open("rb") as file:
            start = file.read(4096)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    if not start:
        raise UserError(f"{path}: is empty; expected a header and rows")
    return start


def first_row(path: Path) -> list[str]:
    """The cells of the first row that is not blank. Raises UserError for what is not UTF-8 text."""
    start = check_file(path)
    for magic, kind in (
        (b"\x1f\x8b", "gzip"),
        (b"PK\x03\x04", "zip (or a spreadsheet)"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
    ):
        if start.startswith(magic):
            raise UserError(f"{path}: is {kind}, not text; unpack it (or export it as CSV) first")
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise UserError(f"{path}: row 1: is UTF-16 text, not UTF-8; save it as UTF-8")
    if b"\0" in start:
        raise UserError(f"{path}: row 1: holds zero bytes, so it is not UTF-8 text; save it as UTF-8 CSV")
    line, cells = next(_numbered(path), (1, [""]))
    for mark, name in ((";", "semicolons"), ("\t", "tabs")):
        if len(cells) == 1 and mark in cells[0]:
            raise UserError(f"{path}: row {line}: columns are separated by {name}; save the file with commas")
    return cells


def read_csv(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> tuple[Rows, list[str]]:
    """The columns wanted of a CSV file, as text, and the names of those ignored.

    Raises UserError for a file that is not one, a header without the columns, rows of
    unequal length, text that is not UTF-8, and a file without rows.
    """
    import pyarrow as pa
    import pyarrow.csv as pcsv

    first_row(path)
    start = list(itertools.islice(_numbered(path), 2))
    line, header = start[0] if start else (1, [""])
    header = [name.strip() for name in header]
    wanted, ignored = _wanted(path, f"row {line}", header, required, optional)
    if len(start) < 2:
        raise UserError(f"{path}: has a header and no rows; there is nothing to run")
    try:
        with pa.OSFile(str(path)) as file:  # by name, pyarrow would unpack what only looks packed
            table = pcsv.read_csv(
                file,
                pcsv.ReadOptions(column_names=header, skip_rows=line),
                pcsv.ParseOptions(newlines_in_values=True),
                pcsv.ConvertOptions(column_types=dict.fromkeys(wanted, pa.string()), include_columns=wanted),
            )
    except pa.ArrowInvalid as error:
        raise _why_not(path, header, str(error)) from None
    return Rows(
        path, table, lambda index: f"row {next(itertools.islice(_numbered(path), index + 1, None))[0]}"
    ), ignored


def read_parquet(path: Path, required: Sequence[str], optional: Sequence[str]) -> tuple[Rows, list[str]]:
    """As `read_csv`, of a Parquet file; its rows are counted from 1."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            wanted, ignored = _wanted(path, "schema", file.schema_arrow.names, required, optional)
            table = file.read(columns=wanted)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: is not a readable Parquet file: {reason}; write or download it again") from None
    if table.num_rows == 0:
        raise UserError(f"{path}: has no rows; there is nothing to run")
    return Rows(path, table, lambda index: f"row {index + 1}"), ignored


def resembles(found: Sequence[str], wanted: Sequence[str]) -> int:
    """How many of the names ``wanted`` have a like among those ``found``."""
    lower = [name.strip().lower() for name in found]
    return sum(bool(difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.7)) for name in wanted)


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


def _numbered(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Each row that is not blank, with the line it starts on."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        reader, line = csv.reader(file), 1
        try:
            for cells in reader:
                if cells:
                    yield line, cells
                line = reader.line_num + 1
        except csv.Error as error:
            raise UserError(f"{path}: row {line}: {error}; is it a CSV file?") from None


def _why_not(path: Path, header: list[str], error: str) -> UserError:
    """Why the fast reader refused: found by reading again, slowly."""
    with path.open("rb") as file:
        for line, text in enumerate(file, start=1):
            valid = len(text.decode(errors="ignore").encode())
            if valid < len(text):
                return UserError(f"{path}: row {line}: holds bytes that are not UTF-8; save the file as UTF-8")
    for line, cells in _numbered(path):
        if len(cells) != len(header):
            field = header[min(len(cells), len(header) - 1)]
            wrong = f"the row has {len(cells)} fields, the header {len(header)}"
            return UserError(f"{path}: row {line}: field {field}: {wrong}; {FIX_ROW}")
    return UserError(f"{path}: is not a CSV file that can be read: {' '.join(error.split())[:200]}")


def _nearest_file(path: Path) -> str:
    if not path.parent.is_dir():
        return f"; its folder {path.parent} does not exist"
    close = difflib.get_close_matches(path.name, [entry.name for entry in path.parent.iterdir()], n=1, cutoff=0.5)
    return f" (did you mean {str(path.with_name(close[0]))!r}?)" if close else "; check the name and the folder"
