"""What the command line makes of trace files, good and bad."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

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
