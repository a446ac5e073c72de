"""CSV: read fast as text, and read again slowly when the fast reader refuses, to say why."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from ...errors import UserError
from .rows import FIX_ROW, Rows
from .source import Source, in_blocks

__all__ = ["header", "read"]

BLOCK_BYTES: Final = 1 << 20
"""What is parsed at once. A row must fit, so it is doubled until the longest does."""
LONGEST_FIELD: Final = 2**30
"""Characters. A prompt's block ids may be many."""


def header(source: Source) -> tuple[int, list[str]]:
    """``(line, cells)`` of the first row that is not blank. Raises UserError for other separators than commas."""
    line, cells = next(_numbered(source), (1, [""]))
    for mark, name in ((";", "semicolons"), ("\t", "tabs")):
        if len(cells) == 1 and mark in cells[0]:
            raise UserError(f"{source.path}: row {line}: columns are separated by {name}; save the file with commas")
    return line, cells


def read(source: Source, line: int, names: Sequence[str], wanted: Sequence[str], ignored: Sequence[str]) -> Rows:
    """The columns ``wanted``, as text, of the rows under the header ``names`` on ``line``.

    Raises UserError for rows of unequal length, text that is not UTF-8, and no rows.
    """
    import pyarrow as pa
    import pyarrow.csv as pcsv

    if next(itertools.islice(_numbered(source), 1, None), None) is None:
        raise UserError(f"{source.path}: has a header and no rows; there is nothing to run")

    def parsed(block: int, handler: Callable[[Any], str] | None = None) -> Any:
        with source.stream() as file:
            return pcsv.read_csv(
                file,
                pcsv.ReadOptions(column_names=list(names), skip_rows=line, block_size=block),
                pcsv.ParseOptions(newlines_in_values=True, invalid_row_handler=handler),
                pcsv.ConvertOptions(column_types=dict.fromkeys(wanted, pa.string()), include_columns=list(wanted)),
            )

    try:
        table = in_blocks(parsed, BLOCK_BYTES)
    except (pa.ArrowInvalid, OSError) as error:
        _refuse(source, names)
        try:  # rows of spaces, then: the slow reader passes over them too
            table = in_blocks(lambda block: parsed(block, _blank), BLOCK_BYTES)
        except (pa.ArrowInvalid, OSError):
            wrong = " ".join(str(error).split())[:200]
            raise UserError(f"{source.path}: is not a CSV file that can be read: {wrong}") from None
    _refuse_open_quote(source)
    return Rows(source.path, table, lambda index: _place(source, index), ignored)


def _place(source: Source, index: int) -> str:
    line: Any = next(itertools.islice(_numbered(source), index + 1, None), ("?",))[0]
    return f"row {line}"


def _blank(row: Any) -> str:
    """Leaves out a row of spaces, which pyarrow takes for one field."""
    return "error" if row.text.strip() else "skip"


def _refuse_open_quote(source: Source) -> None:
    """A quote opened and never closed hides all rows below it, which neither reader minds."""
    quotes = 0
    with source.guard(), source.stream() as stream:
        while chunk := stream.read(1 << 22):
            quotes += chunk.count(b'"')
    if quotes % 2 == 0:
        return
    last = 1
    try:
        for last, _ in _numbered(source, strict=True):  # noqa: B007
            pass
    except UserError as error:
        if "unexpected end of data" in str(error):
            wrong = "a quote is opened below it and never closed"
            raise UserError(f"{source.path}: row {last}: {wrong}; close it, or delete it") from None


def _numbered(source: Source, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Each row that is not blank, with the line it starts on."""
    with source.guard(), source.text() as file:
        csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
        reader, line = csv.reader(file, strict=strict), 1
        try:
            for cells in reader:
                if cells and (len(cells) > 1 or cells[0].strip()):
                    yield line, cells
                line = reader.line_num + 1
        except csv.Error as error:
            raise UserError(f"{source.path}: row {line}: {error}; is it a CSV file?") from None


def _refuse(source: Source, names: Sequence[str]) -> None:
    """Raises UserError for what made the fast reader refuse, found by reading again, slowly, if it is found."""
    try:
        for _, text in source.lines():
            text.decode()
    except UnicodeDecodeError:
        raise source.not_utf8() from None
    for line, cells in _numbered(source):
        if len(cells) != len(names):
            field = names[min(len(cells), len(names) - 1)]
            wrong = f"the row has {len(cells)} fields, the header {len(names)}"
            raise UserError(f"{source.path}: row {line}: field {field}: {wrong}; {FIX_ROW}")
