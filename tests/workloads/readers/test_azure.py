from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tailrace.errors import UserError
from tailrace.workloads.readers import azure

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"
FIRST = "2023-11-16 18:15:46.6805900,374,44"
GOOD = [HEADER, FIRST, "2023-11-16 18:15:50.9951690,396,109"]
Write = Callable[[str], Path]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("end", [True, False])
def test_reads_either_line_end(file: Write, newline: str, end: bool) -> None:
    workload = azure.read(file(newline.join(GOOD) + newline * end))
    assert workload.name == "trace"
    assert workload.arrival_s.tolist() == [0.0, 4.314579]
    assert workload.prompt_tokens.tolist() == [374, 396]
    assert workload.output_tokens.tolist() == [44, 109]
    assert workload.predictions == "oracle"
    assert workload.description["rows"] == 2


def test_parquet_with_times_or_text(tmp_path: Path, file: Write) -> None:
    stamps = ["2023-11-16 18:15:46.6805900", "2023-11-16 18:15:50.9951690"]
    lengths = {"ContextTokens": [374, 396], "GeneratedTokens": [44, 109]}
    text = pa.array(stamps)
    times = text.cast(pa.timestamp("ns"))
    for column in (text, times, times.cast(pa.timestamp("us", "UTC"))):
        pq.write_table(pa.table({"TIMESTAMP": column} | lengths), tmp_path / "x.parquet")
        workload = azure.read(tmp_path / "x.parquet")
        assert workload.digest() == azure.read(file("\n".join(GOOD))).digest()


def test_the_seventh_digit_counts(file: Write) -> None:
    rows = ["2023-11-16 18:15:46.0000000,1,1", "2023-11-16 18:15:46.0000001,1,1", "2023-11-16 19:15:46.0000003,1,1"]
    workload = azure.read(file("\n".join([HEADER, *rows])))
    assert workload.arrival_s.tolist() == [0.0, 1e-7, 3600.0000003]


def test_time_zones_columns_in_any_order_bom_spaces_and_more_columns(file: Write) -> None:
    text = "\ufeffContextTokens, TIMESTAMP,GeneratedTokens,Note\n"
    text += "5,2024-05-10 00:00:00+00:00, 7,é\n\n6, 2024-05-10 02:00:00.5+02:00,8,\n"
    workload = azure.read(file(text))
    assert workload.arrival_s.tolist() == [0.0, 0.5]
    assert workload.output_tokens.tolist() == [7, 8]
    assert workload.description["ignored_columns"] == ["Note"]


def test_rows_out_of_order_are_sorted_stably_and_counted(file: Write) -> None:
    seconds = (3, 1, 2, 4, 2)
    rows = [f"2023-11-16 18:15:0{second}.0,{index + 1},1" for index, second in enumerate(seconds)]
    workload = azure.read(file("\n".join([HEADER, *rows])))
    assert workload.arrival_s.tolist() == [0, 1, 1, 2, 3]
    assert workload.prompt_tokens.tolist() == [2, 3, 5, 1, 4]
    assert workload.description["reordered_rows"] == 3


def test_rows_without_output_are_dropped_and_counted(file: Write) -> None:
    rows = ["2023-11-16 18:15:40,0,0", *GOOD[1:], "2023-11-16 18:15:59,9,0"]
    workload = azure.read(file("\n".join([HEADER, *rows])))
    assert workload.arrival_s.tolist() == [0.0, 4.314579]
    assert workload.description["rows"] == 2
    assert workload.description["dropped_rows"] == 2


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([FIRST], "row 1: field TIMESTAMP: no header, found .*; put first the line TIMESTAMP,ContextTokens"),
        (["TIMESTAMP,Context,GeneratedTokens", FIRST], "row 1: field ContextTokens: no such column; the columns are"),
        (["TIMESTAMP,ContextToken,GeneratedTokens", FIRST], "ContextTokens: no such column; rename 'ContextToken'"),
        (["timestamp,ContextTokens,GeneratedTokens", FIRST], "TIMESTAMP: no such column; rename 'timestamp'"),
        ([HEADER + ",TIMESTAMP", FIRST + ",x"], "row 1: field TIMESTAMP: two columns"),
        ([*GOOD, "2023-11-16 18:15:51,many,1"], "row 4: field ContextTokens: 'many' is not a whole number; correct"),
        ([*GOOD, "2023-11-16 18:15:51,1.5,1"], "row 4: field ContextTokens: '1.5' is not a whole number"),
        ([*GOOD, "2023-11-16 18:15:51,,1"], "row 4: field ContextTokens: it is empty"),
        ([*GOOD, "", "2023-11-16 18:15:51,0,1"], r"row 5: field ContextTokens: '0' is outside \[1, 2147483648\]"),
        ([*GOOD, "2023-11-16 18:15:51,1,-4"], r"row 4: field GeneratedTokens: '-4' is outside \[0, "),
        ([*GOOD, "2023-11-16 18:15:51,1,3000000000"], "row 4: field GeneratedTokens: '3000000000' is outside"),
        ([*GOOD, "2023-11-16 18:15:51,1,99999999999999999999"], "row 4: field GeneratedTokens: '9+' is not a whole"),
        ([*GOOD, "2023-02-30 18:15:51,1,1"], "row 4: field TIMESTAMP: '2023-02-30 18:15:51' is not a date and time"),
        ([*GOOD, "yesterday,1,1"], "row 4: field TIMESTAMP: 'yesterday' is not date and time, as in 2023"),
        ([*GOOD, "2023-11-16,1,1"], "row 4: field TIMESTAMP: '2023-11-16' is not date and time"),
        ([*GOOD, "2023-11-16 18:15:51+00:00,1,1"], "row 4: field TIMESTAMP: .* without time zone, as in the first"),
        (
            [*GOOD, "2032-11-16 18:15:51,1,1"],
            "row 4: field TIMESTAMP: it is 9.01 years later than every request before",
        ),
        ([*GOOD, ",1,1"], "row 4: field TIMESTAMP: '' is not date and time"),
        ([*GOOD, "2023-11-16 18:15:51,1"], "row 4: field GeneratedTokens: the row has 2 fields, the header 3"),
        ([*GOOD, "2023-11-16 18:15:51,1,1,1"], "row 4: field GeneratedTokens: the row has 4 fields, the header 3"),
        ([HEADER.replace(",", ";"), FIRST], "row 1: columns are separated by semicolons; save the file with commas"),
        ([HEADER.replace(",", "\t"), FIRST], "row 1: columns are separated by tabs"),
        ([HEADER], "has a header and no rows"),
        ([HEADER, "2023-11-16 18:15:51,5,0"], "field GeneratedTokens: 0 in all 1 rows"),
        ([""], "is empty"),
    ],
)
def test_mistakes_in_rows(file: Write, lines: list[str], message: str) -> None:
    path = file("\r\n".join(lines))
    with pytest.raises(UserError, match=message) as caught:
        azure.read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_mistake_far_down_is_found(file: Write) -> None:
    rows = [FIRST] * 100_000
    rows[77_776] = "2023-11-16 18:15:46.6805900,374,oops"
    with pytest.raises(UserError, match="row 77778: field GeneratedTokens: 'oops'"):
        azure.read(file("\n".join([HEADER, *rows])))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n".join(GOOD).encode("utf-16"), "row 1: is UTF-16 text, not UTF-8; save it as UTF-8"),
        ("\n".join(GOOD).encode("utf-16-le"), "row 1: holds zero bytes"),
        (
            f"{HEADER}\n{FIRST}\n2023-11-16 18:15:51,caf\xe9,2\n".encode("latin-1"),
            "row 3: holds bytes that are not UTF-8",
        ),
        (b"\x1f\x8b" + b"x" * 50, "its gzip data cannot be unpacked .*download or copy it again"),
        (b"PK\x03\x04" + b"x" * 50, "is zip"),
    ],
)
def test_mistakes_of_encoding(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        azure.read(path)


def test_mistakes_of_path(file: Write, tmp_path: Path) -> None:
    path = file("\n".join(GOOD))
    with pytest.raises(UserError, match="is a folder; name a file in it"):
        azure.read(tmp_path)
    with pytest.raises(UserError, match=r"no such file \(did you mean '.*trace\.csv'\?\)"):
        azure.read(path.with_name("trase.csv"))
    with pytest.raises(UserError, match="no such file; check the name"):
        azure.read(path.with_name("zzzzzzzzzzzzz"))
    with pytest.raises(UserError, match=r"no such file; its folder .*nowhere does not exist"):
        azure.read(tmp_path / "nowhere" / "trace.csv")


def test_the_name_does_not_make_it_packed(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv.gz"
    path.write_text("\n".join(GOOD))
    assert len(azure.read(path)) == 2


def test_the_real_trace(azure_trace: Path) -> None:
    azure.read(azure_trace)  # imports pyarrow
    workload = azure.read(azure_trace)
    assert len(workload) == 19_366
    assert workload.span_s == pytest.approx(3501.721937, abs=1e-9)
    assert (workload.prompt_tokens[0], workload.output_tokens[-1]) == (374, 183)
    assert workload.description["dropped_rows"] == workload.description["reordered_rows"] == 0
    assert np.diff(workload.arrival_s).min() >= 0


@pytest.mark.slow
def test_a_million_rows_are_read(file: Write) -> None:
    assert len(azure.read(file("\n".join([HEADER, *[FIRST] * 1_000_000])))) == 1_000_000
