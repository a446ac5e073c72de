"""A trace file's bytes, unpacked as they are read, and what they are at first sight."""

from __future__ import annotations

import contextlib
import difflib
import io
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from ...errors import UserError

__all__ = ["PARQUET_MAGIC", "Source", "in_blocks"]

PARQUET_MAGIC: Final = b"PAR1"
BOM: Final = b"\xef\xbb\xbf"
START_BYTES: Final = 4096
MOST_BYTES: Final = 2**30
"""Largest block that a row must fit."""
PACKED: Final = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bz2"))
REFUSED: Final = ((b"PK\x03\x04", "zip (or a spreadsheet)"), (b"\xfd7zXZ", "xz"), (b"7z\xbc\xaf", "7z"))


class Source:
    """A file that is there, readable and not empty; ``start`` is its first 4 KiB, unpacked.

    gzip, zstd and bz2 are told by the first bytes, never by the name, and unpacked while
    reading, so memory holds no second copy. Raises UserError from everything that reads.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        _refuse_path(self.path)
        try:
            with self.path.open("rb") as file:
                start = file.read(START_BYTES)
        except OSError as error:
            raise UserError(f"{self.path}: cannot be read: {error.strerror}; check its permissions") from None
        self.packed = next((kind for magic, kind in PACKED if start.startswith(magic)), None)
        if self.packed:
            with self.guard(), self.stream() as stream:
                start = stream.read(START_BYTES)
        self.start = start
        if not start:
            raise UserError(f"{self.path}: is empty; expected a header and rows")

    @classmethod
    def of(cls, path: str | Path | Source) -> Source:
        """``path`` as a source, or the source that it is."""
        return path if isinstance(path, Source) else cls(path)

    @property
    def name(self) -> str:
        """The file's name without its suffixes of format and packing."""
        stem = Path(self.path.stem)
        return stem.stem if self.packed and stem.suffix else stem.name

    @property
    def is_parquet(self) -> bool:
        return self.start.startswith(PARQUET_MAGIC)

    @property
    def is_json(self) -> bool:
        return self.start.removeprefix(BOM).lstrip()[:1] in (b"{", b"[")

    @property
    def is_json_array(self) -> bool:
        return self.start.removeprefix(BOM).lstrip()[:1] == b"["

    def stream(self) -> Any:
        """The unpacked bytes as a pyarrow input file; close it."""
        import pyarrow as pa

        file = pa.OSFile(str(self.path))  # by name, pyarrow would unpack what only looks packed
        return pa.CompressedInputStream(file, self.packed) if self.packed else file

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Each line with its number from 1, without the mark of a UTF-8 file."""
        with self.guard(), io.BufferedReader(self.stream(), 1 << 20) as file:
            for number, line in enumerate(file, start=1):
                yield number, line.removeprefix(BOM) if number == 1 else line

    def text(self, errors: str = "replace") -> io.TextIOWrapper:
        """The whole as text, bytes that are not UTF-8 treated as ``errors`` says; read it within `guard`."""
        return io.TextIOWrapper(io.BufferedReader(self.stream(), 1 << 20), "utf-8-sig", errors=errors, newline="")

    def everything(self) -> bytes:
        """All of it, without the mark of a UTF-8 file."""
        with self.guard(), self.stream() as stream:
            return bytes(stream.read()).removeprefix(BOM)

    def not_utf8(self) -> UserError:
        """The error for bytes that are not UTF-8, which must be there, by the first line that holds some."""
        found = (line for line, text in self.lines() if len(text.decode(errors="ignore").encode()) < len(text))
        return UserError(f"{self.path}: row {next(found, 1)}: holds bytes that are not UTF-8; save the file as UTF-8")

    def check_text(self) -> None:
        """Raises UserError for what is not UTF-8 text at first sight."""
        for magic, kind in REFUSED:
            if self.start.startswith(magic):
                raise UserError(f"{self.path}: is {kind}, not text; unpack it (or export it as CSV) first")
        if self.start[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise UserError(f"{self.path}: row 1: is UTF-16 text, not UTF-8; save it as UTF-8")
        if b"\0" in self.start:
            raise UserError(f"{self.path}: row 1: holds zero bytes, so it is not UTF-8 text; save it as UTF-8 CSV")
        if self.start.startswith(b"version https://git-lfs"):
            raise UserError(f"{self.path}: is a Git LFS pointer, not the data; fetch it with: git lfs pull")
        if not self.start.removeprefix(BOM).strip() and len(self.start) < START_BYTES:
            raise UserError(f"{self.path}: is empty; expected a header and rows")

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """Turns what goes wrong in unpacking and reading into a UserError."""
        try:
            yield
        except OSError as error:
            reason = " ".join(str(error.strerror or error).split())
            broken = f"its {self.packed} data cannot be unpacked" if self.packed else "cannot be read"
            raise UserError(f"{self.path}: {broken} ({reason}); download or copy it again") from None


def in_blocks(read: Callable[[int], Any], block_bytes: int) -> Any:
    """What pyarrow's ``read`` of so many bytes at once gives, doubled while a row does not fit. Raises what it does."""
    import pyarrow as pa

    while True:
        try:
            return read(block_bytes)
        except pa.ArrowInvalid as error:
            if "straddl" not in str(error) or block_bytes >= MOST_BYTES:
                raise
            block_bytes *= 2


def _refuse_path(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise UserError(f"{path}: no such file{_nearest_file(path)}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}; check the name and its folders") from None
    if stat.S_ISDIR(mode):
        raise UserError(f"{path}: is a folder; name a file in it")
    if not stat.S_ISREG(mode):
        raise UserError(f"{path}: is a pipe or a device, which cannot be read twice; save it to a file and name that")


def _nearest_file(path: Path) -> str:
    if not path.parent.is_dir():
        return f"; its folder {path.parent} does not exist"
    close = difflib.get_close_matches(path.name, [entry.name for entry in path.parent.iterdir()], n=1, cutoff=0.5)
    return f" (did you mean {str(path.with_name(close[0]))!r}?)" if close else "; check the name and the folder"
