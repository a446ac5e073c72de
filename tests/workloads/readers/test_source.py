from __future__ import annotations

import bz2
import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tailrace.errors import UserError
from tailrace.workloads import load
from tailrace.workloads.readers.source import Source

ROWS = "arrival_s,prompt_tokens,output_tokens\n" + "".join(f"{row},{row + 1},{row % 7 + 1}\n" for row in range(3000))
Pack = Callable[[bytes], bytes]


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


PACKERS = pytest.mark.parametrize("pack", [gzip.compress, zstd, bz2.compress])


@PACKERS
def test_packed_files_are_the_same_trace(tmp_path: Path, pack: Pack) -> None:
    plain, packed = tmp_path / "x.csv", tmp_path / "x.csv.packed"
    plain.write_text(ROWS)
    packed.write_bytes(pack(ROWS.encode()))
    assert load(str(packed)).digest() == load(str(plain)).digest()
    assert load(str(packed)).name == "x"
    assert load(str(packed), format="canonical").digest() == load(str(plain)).digest()


@PACKERS
def test_a_packed_file_cut_off(tmp_path: Path, pack: Pack) -> None:
    path = tmp_path / "x"
    packed = pack(ROWS.encode())
    for end in (len(packed) // 2, len(packed) - 4, 6):
        path.write_bytes(packed[:end])
        with pytest.raises(UserError, match=r"x: its (gzip|zstd|bz2) data cannot be unpacked .*download or copy"):
            load(str(path))


def test_rows_of_packed_files_are_counted_as_of_plain_ones(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(ROWS.replace("2000,2001,", "\n2000,many,").encode()))
    with pytest.raises(UserError, match="row 2003: field prompt_tokens: 'many' is not a whole number"):
        load(str(path))


def test_gzip_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    middle = ROWS.index("\n", len(ROWS) // 2) + 1
    path.write_bytes(gzip.compress(ROWS[:middle].encode()) + gzip.compress(ROWS[middle:].encode()))
    assert len(load(str(path))) == 3000


def test_a_packed_parquet_file(tmp_path: Path) -> None:
    from tailrace.workloads import generate, write

    write(generate("qba", {"requests": 20}), tmp_path / "x.parquet")
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress((tmp_path / "x.parquet").read_bytes()))
    assert load(str(path)).digest() == generate("qba", {"requests": 20}).digest()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty; expected a header and rows"),
        (b" \n\n", "is empty; expected a header and rows"),
        (b"\xef\xbb\xbf\n", "is empty; expected a header and rows"),
        (b"PK\x03\x04xxxx", "is zip .*; unpack it"),
        (b"\xfd7zXZ\0xxxx", "is xz, not text; unpack it"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "is a Git LFS pointer, .*: git lfs pull"),
        ("{}".encode("utf-16"), "row 1: is UTF-16 text, not UTF-8; save it as UTF-8"),
        (b'{"a": 1}\0', "row 1: holds zero bytes"),
        (gzip.compress(b"", mtime=0), "is empty; expected a header and rows"),
    ],
)
def test_what_is_no_trace_at_first_sight(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        load(str(path))
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_pipe_and_a_device_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(UserError, match="is a pipe or a device, which cannot be read twice; save it to a file"):
            load(str(path))


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.csv"
    path.write_text(ROWS)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # root may read what its permissions forbid
    with pytest.raises(UserError, match=r"x\.csv: cannot be read: Permission denied; check its permissions"):
        Source(path)


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(ROWS)
    with pytest.raises(UserError, match="cannot be read: Not a directory; check the name"):
        load(str(tmp_path / "x" / "y.csv"))
