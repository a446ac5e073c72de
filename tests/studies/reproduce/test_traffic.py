"""Windows of a trace: where they begin, their rate, their lengths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tailrace.errors import UserError
from tailrace.studies.reproduce.traffic import Generated, Traffic, Windows


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A thousand requests with growing gaps; the prompt says which one it is."""
    path = tmp_path / "trace.csv"
    times = np.cumsum(np.linspace(0.01, 1.0, 1000))
    rows = [f"{t:.6f},{i + 1},{2 * (i + 1)}" for i, t in enumerate(times)]
    path.write_text("\n".join(["arrival_s,prompt_tokens,output_tokens", *rows]) + "\n")
    return path


def test_without_a_size_windows_cover_the_trace_without_overlap(trace: Path) -> None:
    windows = Windows(str(trace), 10, 32.0, 1.0)
    seen = np.concatenate([windows.load(i).prompt_tokens for i in range(10)])
    assert (seen == np.arange(1, 1001)).all()


def test_a_window_keeps_order_and_relative_gaps_at_the_rate(trace: Path) -> None:
    w = Windows(str(trace), 10, 32.0, 1.0).load(4)
    assert len(w) == 100
    assert w.arrival_s[0] == 0.0
    assert (len(w) - 1) / w.arrival_s[-1] == pytest.approx(32.0)
    raw = np.cumsum(np.linspace(0.01, 1.0, 1000))[400:500]
    assert w.arrival_s / w.arrival_s[-1] == pytest.approx((raw - raw[0]) / (raw[-1] - raw[0]), rel=1e-4, abs=1e-9)


def test_with_a_size_they_are_spread_evenly_from_first_to_last(trace: Path) -> None:
    windows = Windows(str(trace), 7, 32.0, 1.0, 400)
    firsts = [int(windows.load(i).prompt_tokens[0]) for i in range(7)]
    assert firsts == [1, 101, 201, 301, 401, 501, 601]
    every_third = Windows(str(trace), 7, 32.0, 1.0, 400, stride=3)
    assert [int(every_third.load(i).prompt_tokens[0]) for i in range(3)] == [1, 301, 601]


def test_lengths_are_scaled_rounded_and_at_least_one(trace: Path) -> None:
    w = Windows(str(trace), 10, 32.0, 0.44).load(0)
    assert w.prompt_tokens[:4].tolist() == [1, 1, 1, 2]  # 0.44, 0.88, 1.32, 1.76
    assert w.output_tokens[99] == 88


def test_a_trace_that_makes_no_windows_is_refused(trace: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"1,000 requests are too few for 600 windows"):
        Windows(str(trace), 600, 32.0, 1.0).load(0)
    at_once = tmp_path / "at-once.csv"
    at_once.write_text("arrival_s,prompt_tokens,output_tokens\n" + "5,10,10\n" * 40)
    with pytest.raises(UserError, match="arrive at once"):
        Windows(str(at_once), 4, 32.0, 1.0).load(0)


def test_keys_tell_traffic_apart(trace: Path, tmp_path: Path) -> None:
    base = Windows(str(trace), 10, 32.0, 0.44)
    others: list[Traffic] = [Windows(base.file, 10, 32.0, 0.5), Windows(base.file, 10, 32.0, 0.44, 200)]
    keys = {base.key(), Generated("qba").key(), *(other.key() for other in others)}
    assert len(keys) == 4
    copy = tmp_path / "copy.csv"
    copy.write_bytes(trace.read_bytes())
    assert Windows(str(copy), 10, 32.0, 0.44).key() == base.key()
    assert Generated("qba:requests=30").load(1).digest() != Generated("qba:requests=30").load(2).digest()
