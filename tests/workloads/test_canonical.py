from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailrace.errors import UserError
from tailrace.workloads import Prefix, Workload, canonical, generate, write
from tailrace.workloads.readers import delimited

HEADER = "arrival_s,prompt_tokens,output_tokens"
BLOCKS = HEADER + ",prefix_blocks,block_tokens"
GOOD = [HEADER, "0.5,10,1", "1,20,2"]
Write = Callable[[str], Path]


def rich() -> Workload:
    return Workload.of(
        [0.1, 1 / 3, 1e-9, 7.25],
        [10, 20, 30, 2**31],
        [1, 2, 3, 4],
        name="rich",
        class_id=[1, 0, 0, 1],
        class_names=["chat, fast", 'say "hi"\nthere'],
        class_weights=[2.5, 1 / 3],
        tenant=[0, 1, 0, 1],
        tenant_names=["añb", "b"],
        priority=[-2, 0, 5, 1],
        ttft_slo_s=[0.1, math.inf, 2, math.inf],
        tpot_slo_s=0.05,
        session=[5, -1, 5, 3],
        prefix=Prefix(5, np.array([2**62, 9, 9, 4, 7]), np.array([0, 2, 4, 4, 5])),
    )


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".CSV"])
@pytest.mark.parametrize("make", [rich, lambda: generate("qba", {"requests": 1000})])
def test_round_trip(tmp_path: Path, make: Callable[[], Workload], suffix: str) -> None:
    workload = make()
    path = tmp_path / f"out{suffix}"
    write(workload, path)
    back = canonical.read(path)
    assert back.digest() == workload.digest()
    assert back.name == "out"
    assert back.description["rows"] == len(workload)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=20), st.sampled_from([".csv", ".parquet"]))
def test_arrivals_come_back_to_the_last_bit(tmp_path: Path, arrivals: list[float], suffix: str) -> None:
    workload = Workload.of(arrivals, np.ones(len(arrivals), int), np.ones(len(arrivals), int), name="x")
    write(workload, tmp_path / f"x{suffix}")
    assert canonical.read(tmp_path / f"x{suffix}").arrival_s.tolist() == workload.arrival_s.tolist()


def test_plain_columns_only_when_nothing_else_is_said(tmp_path: Path) -> None:
    write(generate("deterministic", {"requests": 2}), tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text().splitlines() == [HEADER, "0,512,128", "0.1,512,128"]


def test_classes_numbered_by_appearance_and_missing_slos(file: Write) -> None:
    path = file(f"class, tenant,{HEADER},ttft_slo_s\ngold,a,3,1,1,\nfree ,b,2,1,1, 0.5\ngold,b,2,1,1,inf\n")
    workload = canonical.read(path)
    assert workload.class_names == ("gold", "free")
    assert workload.tenant_names == ("a", "b")
    assert workload.class_id.tolist() == [1, 0, 0]
    assert workload.ttft_slo_s.tolist() == [0.5, math.inf, math.inf]
    assert workload.description["reordered_rows"] == 2


def test_sessions_and_blocks_as_people_write_them(file: Write) -> None:
    more = "session,prefix_blocks,block_tokens"
    path = file(f"{HEADER},{more}\n2,40,1,ann, 1  2 ,16\n1,40,1,,,16\n3,40,1,ann,1 5,16\n4,40,1,bob,7,16.0\n")
    workload = canonical.read(path)
    assert workload.session.tolist() == [-1, 0, 0, 1]
    assert workload.prefix is not None
    assert workload.prefix.block_tokens == 16
    assert workload.prefix.ids.tolist() == [1, 2, 1, 5, 7]
    assert workload.prefix.offsets.tolist() == [0, 0, 2, 4, 5]


def test_blocks_in_parquet_may_be_null_or_small_integers(tmp_path: Path) -> None:
    columns = {"arrival_s": [0, 1], "prompt_tokens": [40, 40], "output_tokens": [1, 1], "block_tokens": [16, 16]}
    for kind in (pa.list_(pa.int32()), pa.large_list(pa.uint64())):
        table = pa.table(columns | {"prefix_blocks": pa.array([None, [3, 4]], kind)})
        pq.write_table(table, tmp_path / "x.parquet")
        prefix = canonical.read(tmp_path / "x.parquet").prefix
        assert prefix is not None
        assert prefix.ids.tolist() == [3, 4]


def test_many_blocks_in_one_row_of_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids, offsets = np.arange(120_000), np.array([0, 60_000, 120_000])
    workload = Workload.of([0, 1], [60_000] * 2, [1, 1], name="x", prefix=Prefix(1, ids, offsets))
    write(workload, tmp_path / "x.csv")
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1 << 16)
    assert canonical.read(tmp_path / "x.csv").digest() == workload.digest()


def test_a_prefix_without_ids_comes_back(tmp_path: Path) -> None:
    workload = Workload.of([0, 1], [5, 5], [1, 1], name="x", prefix=Prefix(4, np.zeros(0, int), np.zeros(3, int)))
    for name in ("x.csv", "x.parquet"):
        write(workload, tmp_path / name)
        assert canonical.read(tmp_path / name).digest() == workload.digest()


@pytest.mark.parametrize(
    ("first", "arrivals", "notes"),
    [
        ("1700000000.5", [0, 2.5], ["arrivals count from the earliest request, at 1700000000.5 s in the file"]),
        ("3600", [3600, 1700000003], ["the first request arrives at 3600 s"]),
        ("0.5", [0.5, 1700000003], []),
    ],
)
def test_arrivals_since_1970_count_from_the_earliest(
    file: Write, first: str, arrivals: list[float], notes: list[str]
) -> None:
    workload = canonical.read(file(f"{HEADER}\n{first},1,1\n1700000003,1,1\n"))
    assert workload.arrival_s.tolist() == arrivals
    assert workload.description["notes"] == notes


def test_parquet_of_other_types(tmp_path: Path) -> None:
    columns: dict[str, Any] = {
        "arrival_s": pa.array([0, 1], pa.int32()),
        "prompt_tokens": pa.array([5.0, 6.0]),
        "output_tokens": pa.array(["7", "8"], pa.large_string()),
        "class": pa.array(["a", "b"]).dictionary_encode(),
        "tenant": pa.array([17, 3]),
        "ttft_slo_s": pa.array([None, 1.5]),
    }
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    workload = canonical.read(tmp_path / "x.parquet")
    assert workload.prompt_tokens.tolist() == [5, 6]
    assert workload.output_tokens.tolist() == [7, 8]
    assert workload.class_names == ("a", "b")
    assert workload.tenant_names == ("17", "3")
    assert workload.ttft_slo_s.tolist() == [math.inf, 1.5]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["0,1,1"], "row 1: field arrival_s: no header"),
        (
            ["arrival,prompt_tokens,output_tokens", "0,1,1"],
            "field arrival_s: no such column; rename 'arrival' to it",
        ),
        ([HEADER + ",priorty", "0,1,1,1"], "row 1: field priority: no such column; rename 'priorty' to it"),
        ([*GOOD, "-1,1,1"], "row 4: field arrival_s: '-1' must be finite and 0 or more"),
        ([*GOOD, "nan,1,1"], "row 4: field arrival_s: 'nan' must be finite"),
        ([*GOOD, "soon,1,1"], "row 4: field arrival_s: 'soon' is not a number"),
        ([*GOOD, ",1,1"], "row 4: field arrival_s: it is empty"),
        ([*GOOD, "1,0,1"], r"row 4: field prompt_tokens: '0' is outside \[1"),
        ([*GOOD, "1,1,0"], r"row 4: field output_tokens: '0' is outside \[1"),
        ([*GOOD, "1,1"], "row 4: field output_tokens: the row has 2 fields, the header 3"),
        ([HEADER + ",priority", "0,1,1,high"], "row 2: field priority: 'high' is not a whole number"),
        ([HEADER + ",ttft_slo_s", "0,1,1,0"], "row 2: field ttft_slo_s: '0' must be above 0"),
        ([HEADER + ",class", "0,1,1,a", "0,1,1, "], "row 3: field class: it is empty"),
        (
            [HEADER + ",class,class_weight", "0,1,1,a,1", "0,1,1,a,2"],
            "row 3: field class_weight: 2, but class 'a' has 1",
        ),
        ([HEADER + ",class_weight", "0,1,1,0"], "row 2: field class_weight: '0' must be finite and above 0"),
        ([HEADER + ",class", '0,1,1,"two', 'lines"', "0,1,x,b"], "row 4: field output_tokens: 'x' is not"),
        ([HEADER + ",prefix_blocks", "0,9,1,1"], "row 2: field block_tokens: prefix_blocks has no meaning without it"),
        ([HEADER + ",block_tokens", "0,9,1,4", "0,9,1,8"], "row 3: field block_tokens: 8, but 4 before; give all rows"),
        ([HEADER + ",block_tokens", "0,9,1,0"], r"row 2: field block_tokens: '0' is outside \[1"),
        ([BLOCKS, "0,9,1,1 2,4", "0,9,1,1 2 3,4"], "row 3: field prefix_blocks: 3 ids, but 9 tokens fill 2 blocks"),
        ([BLOCKS, "0,9,1,1 1,4"], "row 2: field prefix_blocks: id 1 comes twice"),
        ([BLOCKS, "0,9,1,1 x,4"], r"row 2: field prefix_blocks: \['1', 'x'\] is not a list of whole numbers"),
        (
            [BLOCKS, "0,9,1,1 2,4", "0,9,1,1 x,4"],
            r"row 3: field prefix_blocks: \['1', 'x'\] is not a list of whole numbers",
        ),
        ([BLOCKS, "0,9,1,1,4", "0,9,1,-1,4"], r"row 3: field prefix_blocks: \[-1\] is not a list of whole numbers"),
        ([HEADER], "has a header and no rows"),
        ([""], "is empty"),
    ],
)
def test_mistakes_in_csv(file: Write, lines: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        canonical.read(file("\n".join(lines)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt_tokens": None}, "schema: field prompt_tokens: no such column"),
        ({"prompt_tokens": [1, 0]}, r"row 2: field prompt_tokens: 0 is outside \[1"),
        ({"prompt_tokens": [1.5, 1]}, "row 1: field prompt_tokens: 1.5 is not a whole number"),
        ({"output_tokens": [1, None]}, "row 2: field output_tokens: it is empty"),
        ({"arrival_s": [[1.0], [2.0]]}, "field arrival_s: its type list<.*> is not a number; convert it"),
    ],
)
def test_mistakes_in_parquet(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    columns = {"arrival_s": [0.0, 1.0], "prompt_tokens": [1, 1], "output_tokens": [1, 1]} | change
    table = pa.table({field: values for field, values in columns.items() if values is not None})
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(UserError, match=message):
        canonical.read(tmp_path / "x.parquet")


def test_broken_and_empty_parquet(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1" + b"\0" * 100)
    with pytest.raises(UserError, match="is not a readable Parquet file"):
        canonical.read(path)
    pq.write_table(pa.table({field: pa.array([], pa.int64()) for field in canonical.COLUMNS}), path)
    with pytest.raises(UserError, match="has no rows"):
        canonical.read(path)


def test_writing_mistakes(tmp_path: Path) -> None:
    workload = rich()
    (tmp_path / "folder.csv").mkdir()
    for path, message in {
        tmp_path / "x.json": r"written as \.csv or \.parquet",
        tmp_path / "none" / "x.csv": "its folder does not exist",
        tmp_path / "folder.csv": "is a folder",
    }.items():
        with pytest.raises(UserError, match=message):
            write(workload, path)


@pytest.mark.parametrize("stage", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, stage, full)
    with pytest.raises(UserError, match="cannot be written: No space left"):
        write(rich(), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
