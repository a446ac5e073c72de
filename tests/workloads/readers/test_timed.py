from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tailrace.errors import UserError
from tailrace.workloads import Workload, load, write
from tailrace.workloads.readers.timed import block_size

Write = Callable[[str], Path]
MOONCAKE = [
    {"timestamp": 5000, "input_length": 1100, "output_length": 7, "hash_ids": [0, 1, 9]},
    {"timestamp": 3000, "input_length": 1024, "output_length": 8, "hash_ids": [0, 2]},
    {"timestamp": 9000, "input_length": 300, "output_length": 0, "hash_ids": [0]},
]
CHAT = {"chat_id": 1, "parent_chat_id": -1, "timestamp": 0.5, "input_length": 40, "output_length": 3, "type": "text"}
CHAT |= {"turn": 1, "hash_ids": [5, 6, 7]}
TIMED = {"timestamp": 1.5, "input_length": 40, "output_length": 3}


def lines(*objects: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in objects)


def blocks(w: Workload) -> list[list[int]]:
    assert w.prefix is not None
    return [w.prefix.ids[a:z].tolist() for a, z in zip(w.prefix.offsets, w.prefix.offsets[1:], strict=False)]


def test_mooncake(file: Write) -> None:
    w = load(str(file(lines(*MOONCAKE))))
    assert w.arrival_s.tolist() == [0.0, 2.0]
    assert w.prompt_tokens.tolist() == [1024, 1100]
    assert w.prefix is not None
    assert w.prefix.block_tokens == 512
    assert blocks(w) == [[0, 2], [0, 1]], "the last block of 1100 tokens is partial"
    about = w.description
    assert about["format"] == "mooncake"
    assert about["units"]["timestamp"] == "ms"
    assert about["dropped_rows"] == 1
    assert about["dropped_by_reason"] == {"no output tokens": 1}
    assert about["reordered_rows"] == 1
    assert about["estimates"] == []
    assert about["notes"] == [
        "arrivals count from the earliest request, at 3000 ms in the file",
        "hash_ids name blocks of 512 tokens; last ones that their prompts do not fill, left out: 1",
    ]


def test_mooncake_without_prefixes_or_in_another_unit(file: Write) -> None:
    path = str(file(lines(*MOONCAKE)))
    plain = load(path, format="mooncake:prefix=false,unit=s")
    assert plain.prefix is None
    assert plain.arrival_s.tolist() == [0, 2000]
    assert "hash_ids were not read" in plain.description["notes"]
    assert plain.description["parameters"] == {"unit": "s", "block_tokens": 512, "prefix": False}
    with pytest.raises(UserError, match=r"unit=h is not one of s \| ms"):
        load(path, format="mooncake:unit=h")
    with pytest.raises(UserError, match=r"unknown parameter 'block_token' \(did you mean 'block_tokens'\?\)"):
        load(path, format="mooncake:block_token=4")


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([0], "1 ids, but 1024 tokens are 2 blocks of 512; correct it, give block_tokens, or do without: --format"),
        ([0, 1, 2], "3 ids, but 1024 tokens are 2 blocks of 512"),
        ([], "0 ids, but 1024 tokens"),
        (None, "0 ids, but 1024 tokens"),
        ([3, 3], "id 3 comes twice in a request; correct it, or do without: --format mooncake:prefix=false"),
        ([1, -2], r"\[1, -2\] is not a list of whole numbers of 0 or more"),
        ([1, None], r"\[1, None\] is not a list"),
        ([1, 1.5], r"\[1, 1.5\] is not a list"),
        ([1, 10**30], r"\[1, 10+\] is not a list of whole numbers"),
        ("1 2", "'1 2' is not a list"),
    ],
)
def test_mistakes_of_ids(file: Write, ids: Any, message: str) -> None:
    with pytest.raises(UserError, match=f"row 2: field hash_ids: {message}"):
        load(str(file(lines(MOONCAKE[0], {**MOONCAKE[1], "hash_ids": ids}))))


def test_mistakes_of_rows_count_from_the_file_though_some_are_dropped(file: Write) -> None:
    with pytest.raises(UserError, match="row 2: field hash_ids: 1 ids"):
        load(str(file(lines(MOONCAKE[2], {**MOONCAKE[1], "hash_ids": [1]}))))
    with pytest.raises(UserError, match="field output_length: 0 in all 1 rows"):
        load(str(file(lines(MOONCAKE[2]))))


def test_the_real_mooncake_trace(tmp_path: Path) -> None:
    folder = Path(os.environ.get("TAILRACE_DATA", Path(__file__).parents[4] / "shared" / "data"))
    path = folder / "mooncake_conversation_head.jsonl"
    if not path.exists():
        pytest.skip("the Mooncake trace is not here; set TAILRACE_DATA to the folder that holds it")
    w = load(str(path))
    given = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(w) == len(given) == 2500
    assert w.span_s == (given[-1]["timestamp"] - given[0]["timestamp"]) / 1000
    assert blocks(w) == [row["hash_ids"][: row["input_length"] // 512] for row in given]
    assert w.prompt_tokens.tolist() == [row["input_length"] for row in given]
    for name in ("x.csv", "x.parquet"):
        write(w, tmp_path / name)
        assert load(str(tmp_path / name)).digest() == w.digest()


def test_bailian_sessions_are_chats_from_their_root(file: Write) -> None:
    w = load(
        str(
            file(
                lines(
                    CHAT,
                    {**CHAT, "chat_id": 2, "parent_chat_id": 1, "turn": 2},
                    {**CHAT, "chat_id": 3, "parent_chat_id": 99, "type": "image"},
                    {**CHAT, "chat_id": 4, "parent_chat_id": 99},
                    {**CHAT, "chat_id": 5, "parent_chat_id": 2, "turn": 3},
                    {**CHAT, "chat_id": 6},
                )
            )
        )
    )
    assert w.session.tolist() == [0, 0, 1, 1, 0, 2]
    assert w.class_names == ("text", "image")
    assert w.class_id.tolist() == [0, 0, 1, 0, 0, 0]
    assert w.description["format"] == "bailian"
    assert w.description["units"]["timestamp"] == "s"
    assert w.description["ignored_columns"] == ["turn"]
    assert "chats that begin before the trace, so that their first parents are not in it: 1" in w.description["notes"]


def test_bailian_ids_name_contents_so_what_is_before_counts(file: Write) -> None:
    ids = ([5, 6, 7], [5, 6, 8], [6, 5, 7], [5, 5, 5])
    w = load(str(file(lines(*({**CHAT, "chat_id": i, "hash_ids": row} for i, row in enumerate(ids))))))
    assert w.prefix is not None
    assert w.prefix.block_tokens == 16
    (a, b), (a2, b2), (c, d), (a3, e) = blocks(w)
    assert (a, b) == (a2, b2)
    assert a3 == a
    assert len({a, b, c, d, e}) == 5


def test_bailian_a_loop_and_a_session_of_failed_requests(file: Write) -> None:
    loop = [{**CHAT, "chat_id": i, "parent_chat_id": (i + 1) % 3} for i in range(3)]
    with pytest.raises(UserError, match="row 1: field parent_chat_id: its parents lead back to itself"):
        load(str(file(lines(*loop))))
    child = {**CHAT, "chat_id": 2, "parent_chat_id": 1}
    w = load(str(file(lines({**CHAT, "output_length": 0}, child, {**child, "chat_id": 3}))))
    assert w.session.tolist() == [0, 0]


def test_long_chats(file: Write) -> None:
    turns = [{**CHAT, "chat_id": i, "parent_chat_id": i - 1, "timestamp": i} for i in range(300)]
    w = load(str(file(lines(*turns[::-1]))))
    assert set(w.session) == {0}
    assert w.description["reordered_rows"] == 299


def test_timed_is_read_in_seconds_and_says_so(file: Write) -> None:
    w = load(str(file(lines(TIMED, {**TIMED, "timestamp": 2.25}))))
    assert w.arrival_s.tolist() == [0, 0.75]
    assert w.prefix is None
    assert w.description["format"] == "timed"
    assert w.description["units"]["timestamp"] == "s"
    assert w.description["estimates"] == [
        "timestamps were taken as seconds (1.333 requests/s), as vLLM and GuideLLM do; unit=ms would read milliseconds"
    ]
    assert load(str(file("timestamp,input_length,output_length\n1.5,40,3\n2.25,40,3.0\n"))).digest() == w.digest()


def test_timed_with_a_unit_takes_nothing_for_granted(file: Write) -> None:
    text = lines({**TIMED, "timestamp": 1000}, {**TIMED, "timestamp": 3500})
    for unit, last in (("s", 2500), ("ms", 2.5), ("us", 0.0025), ("ns", 0.0000025)):
        w = load(str(file(text)), format=f"timed:unit={unit}")
        assert w.arrival_s.tolist() == pytest.approx([0, last])
        assert w.description["estimates"] == []


def test_timestamps_of_two_starts(file: Write) -> None:
    rows = [MOONCAKE[2], MOONCAKE[0], {**MOONCAKE[1], "timestamp": 1.7e12}, {**MOONCAKE[1], "timestamp": 1.7e12 + 5}]
    with pytest.raises(
        UserError, match=r"row 3: field timestamp: it is 53\.9 years later than every request before it"
    ):
        load(str(file(lines(*rows))))


@pytest.mark.parametrize("stamps", [(1000, 3500), (1700000000000, 1700000000500), (1.7e12, 1.7e12)])
def test_timed_asks_when_seconds_cannot_be_taken_for_granted(file: Write, stamps: tuple[float, float]) -> None:
    path = str(file(lines(*({**TIMED, "timestamp": stamp} for stamp in stamps))))
    with pytest.raises(UserError, match=r"the unit is not clear from 2 requests from .*; say --format timed:unit=s or"):
        load(path)


def test_timed_since_1970_and_all_at_once(file: Write) -> None:
    w = load(
        str(file(lines({**TIMED, "timestamp": 1.7e9}, {**TIMED, "timestamp": 1.7e9 + 3600}))), format="timed:unit=s"
    )
    assert w.arrival_s.tolist() == [0, 3600]
    assert "arrivals count from the earliest request, at 1700000000 s in the file" in w.description["notes"]
    assert load(str(file(lines(TIMED, TIMED)))).span_s == 0


def test_blocks_of_16_without_chats_are_vllms(file: Write) -> None:
    w = load(str(file(lines({**TIMED, "hash_ids": [1, 2, 3]}, {**TIMED, "hash_ids": [1, 4, 3]}))))
    assert w.description["format"] == "timed"
    assert w.prefix is not None
    assert w.prefix.block_tokens == 16
    (a, b), (a2, c) = blocks(w)
    assert a == a2
    assert b != c
    with pytest.raises(UserError, match=r"2 ids, but 40 tokens are 0\.07812 blocks of 512"):
        load(str(file(lines({**TIMED, "hash_ids": [1, 2]}, {**TIMED, "hash_ids": [1]}))), format="mooncake")


def test_in_parquet(tmp_path: Path, file: Write) -> None:
    for rows in (MOONCAKE, [CHAT, {**CHAT, "chat_id": 2, "parent_chat_id": 1}], [TIMED]):
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet")
        w = load(str(tmp_path / "x.parquet"))
        assert w.digest() == load(str(file(lines(*rows)))).digest()
        assert w.description["format"] in ("mooncake", "bailian", "timed")


def test_block_size() -> None:
    assert block_size([(1024, 2), (1025, 3), (1025, 2)]) == 512
    assert block_size([(40, 3), (32, 2)]) == 16
    assert block_size([(40, 1), (40, 3)]) == 0
    assert block_size([]) == 512
