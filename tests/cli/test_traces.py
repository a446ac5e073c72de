"""What the command line makes of trace files, good and bad."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tailrace.cli import main

ROWS = """{"timestamp": 3.5, "input_length": 40, "output_length": 5}
{"timestamp": 1, "input_length": 40, "output_length": 0}
{"timestamp": 2.5, "input_length": 400, "output_length": 50}
"""


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["tailrace", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0)


def test_a_trace_says_what_it_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(ROWS.encode()))
    assert call(monkeypatch, "simulate", str(path), "--policy", "fcfs") == 0
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("trace: ")]
    assert told[:2] == [
        "trace: rows dropped: 1 (no output tokens)",
        "trace: rows out of order, sorted by arrival: 1",
    ]
    assert told[2].startswith("trace: timestamps were taken as seconds")


def _chats(block_tokens: int, columns: tuple[str, ...]) -> str:
    """Twelve chats of three turns each; all begin with the same block, and a turn with the turn before it."""
    rows = []
    for turn in range(3):
        for chat in range(12):
            ids = [0, *(100 * (chat + 1) + i for i in range(2 * turn + 2))]
            row: dict[str, Any] = {"timestamp": turn + 0.02 * chat, "output_length": 40 + block_tokens, "hash_ids": ids}
            row["input_length"] = len(ids) * block_tokens + 3
            number = 12 * turn + chat
            more = {"chat_id": number, "parent_chat_id": number - 12 if turn else -1, "type": "text", "turn": turn + 1}
            rows.append({**row, **{name: more[name] for name in columns}})
    return "\n".join(map(json.dumps, rows))


@pytest.mark.plain
@pytest.mark.parametrize(
    ("block_tokens", "columns", "options"),
    [
        (16, ("chat_id", "parent_chat_id", "type", "turn"), ["--format", "bailian"]),
        (64, (), ["--format", "mooncake:unit=s,block_tokens=64"]),
    ],
)
def test_traces_with_block_hashes_run_with_a_prefix_cache_and_swap(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    block_tokens: int,
    columns: tuple[str, ...],
    options: list[str],
) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text(_chats(block_tokens, columns))
    kv = f"kv_tokens={16 * block_tokens},host_kv_tokens={400 * block_tokens},token_budget={4 * block_tokens}"
    call_ = ["compare", str(path), *options, "--policies", "fcfs,memguard:k_tokens=16,uniboost:k_tokens=16"]
    call_ += ["--engine", f"vllm_v1:prefix_cache=true,evict=swap,{kv}", "--latency", "llama-3-8b-a100-derived"]
    assert call(monkeypatch, *call_, "--jobs", "1", "--report", "", "--json", "--no-cache") == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert [result["counts"]["completed"] for result in results] == [36] * 3
    for result in results:
        swap = result["swap"]
        assert swap["swapped"] > 0
        assert swap["swapped_in_tokens"] < swap["swapped_out_tokens"]
        assert (swap["host_full"], result["recompute_tax"]) == (0, 0)
        assert result["engine"]["cached_tokens"] > 36 * block_tokens


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (ROWS[:-20], [], "row 3: the JSON is cut off; download it again or delete what is cut"),
        (ROWS.replace("400", "4.5"), [], "row 3: field input_length: 4.5 is not a whole number; correct it or delete"),
        (ROWS.replace("3.5", "1700000000000"), ["--format", "timed"], "field timestamp: the unit is not clear from"),
        (ROWS, ["--format", "timed:unit=h"], "format timed: unit=h is not one of s | ms | us | ns | auto"),
        (ROWS, ["--format", "mooncake"], "row 1: field hash_ids: no such column"),
    ],
)
def test_a_bad_trace_is_one_line_and_status_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: str,
    options: list[str],
    message: str,
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(content)
    assert call(monkeypatch, "simulate", str(path), *options) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tailrace: ")
    assert message in err
    assert err.count("\n") == 1
