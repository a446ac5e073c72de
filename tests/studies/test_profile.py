"""Files of measured steps: what is read, and what is said of mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tailrace.errors import UserError
from tailrace.latency import step_shape
from tailrace.studies import profile

pytestmark = pytest.mark.plain

STEPS = [
    (step_shape([(512, 0), (30, 1000)], [(1, 100), (1, 2500)]), 0.05),
    (step_shape(decodes=[(1, 100), (1, 2501)]), 0.011),
    (step_shape([(7, 20)]), 0.0095),
]
LISTS = """seconds,chunk_tokens,chunk_kv_tokens,decode_kv_tokens,note
0.05,512 30,0 1000,100 2500,first
0.011,,,100 2501,
0.0095,7,20,,
"""
SUMS = ",".join(profile.SUMS)


def _file(folder: Path, text: str, name: str = "steps.csv") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_lists_and_sums_say_the_same(tmp_path: Path) -> None:
    assert profile.read(_file(tmp_path, LISTS)) == STEPS
    rows = [",".join(str(shape._asdict().get(name, seconds)) for name in profile.SUMS) for shape, seconds in STEPS]
    assert profile.read(_file(tmp_path, "\n".join([SUMS, *rows, ""]))) == STEPS


def test_json_lines(tmp_path: Path) -> None:
    rows = [
        {"seconds": 0.05, "chunk_tokens": [512, 30], "chunk_kv_tokens": [0, 1000], "decode_kv_tokens": [100, 2500]},
        {"seconds": 0.011, "chunk_tokens": [], "chunk_kv_tokens": [], "decode_kv_tokens": [100, 2501]},
        {"seconds": 0.0095, "chunk_tokens": [7], "chunk_kv_tokens": [20], "decode_kv_tokens": []},
    ]
    path = _file(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "steps.jsonl")
    assert profile.read(path) == STEPS


def test_decodes_of_several_tokens_and_files_of_one_kind_of_step(tmp_path: Path) -> None:
    head = "seconds,chunk_tokens,chunk_kv_tokens,decode_kv_tokens,decode_output_tokens\n"
    assert profile.read(_file(tmp_path, f"{head}0.1,,,5 6,4 2\n")) == [(step_shape(decodes=[(4, 5), (2, 6)]), 0.1)]
    head = "seconds,chunk_tokens,chunk_kv_tokens,decode_kv_tokens\n"
    assert profile.read(_file(tmp_path, f"{head}0.1,5,0,\n")) == [(step_shape([(5, 0)]), 0.1)]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("0.011,", "0,", "row 3: field seconds: '0' must be a number of seconds above 0"),
        ("0.011,", "inf,", "row 3: field seconds: 'inf' must be"),
        ("0.011,", ",", "row 3: field seconds: it is empty"),
        ("0.011,", "fast,", "row 3: field seconds: 'fast' is not a number"),
        ("100 2501", "100 -1", "row 3: field decode_kv_tokens: [100, -1] is not a list of whole numbers"),
        ("100 2501", "100 x", "row 3: field decode_kv_tokens: ['100', 'x'] is not a list of whole numbers"),
        ("0 1000", "0", "row 2: field chunk_kv_tokens: holds 1 numbers and chunk_tokens 2"),
        ("512 30", "512 0", "row 2: field chunk_tokens: 0 tokens are no part of a step"),
        ("100 2501", "", "row 3: field chunk_tokens: the step holds no chunk and no decode"),
        ("chunk_kv_tokens", "chunk_kvtokens", "field chunk_kv_tokens: no such column; rename 'chunk_kvtokens' to it"),
        ("seconds", "note2", "field seconds: no such column"),
    ],
)
def test_a_mistake_names_row_and_field(old: str, new: str, says: str, tmp_path: Path) -> None:
    path = _file(tmp_path, LISTS.replace(old, new, 1))
    with pytest.raises(UserError) as caught:
        profile.read(path)
    assert says in str(caught.value)
    assert str(caught.value).startswith(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("0.1,0,0,0,0,0,0,0,0", "field prefill_tokens: the step holds no"),
        ("0.1,0,5,25,0,0,0,0,0", "field prefill_seqs: 0 chunks cannot hold 5"),
        ("0.1,6,5,25,0,0,0,0,0", "field prefill_seqs: 6 chunks cannot hold 5"),
        ("0.1,1,5,26,0,0,0,0,0", "field prefill_sq: 26 cannot be"),
        ("0.1,2,5,12,0,0,0,0,0", "field prefill_sq: 12 cannot be"),
        ("0.1,1,5,25,51,10,0,0,0", "field prefill_kv: 1 chunks of 5 tokens on 10 cannot cross 51"),
        ("0.1,0,0,0,0,0,0,3,9", "field decode_seqs: 0 decodes cannot make 3"),
        ("0.1,0,0,0,0,0,4,3,9", "field decode_seqs: 4 decodes cannot make 3"),
        ("0.1,1,5,25,0,0,0,0,9", "field decode_kv: 9 of no decode"),
        ("0.1,1,5.5,25,0,0,0,0,0", "field prefill_tokens: '5.5' is not a whole number"),
    ],
)
def test_sums_that_contradict_each_other(row: str, says: str, tmp_path: Path) -> None:
    path = _file(tmp_path, f"{SUMS}\n0.1,2,5,13,50,10,3,3,9\n{row}\n")
    with pytest.raises(UserError) as caught:
        profile.read(path)
    assert f"row 3: {says}" in str(caught.value)
