"""vLLM's benchmark file: its keys, its units, and who counts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tailrace.errors import UserError
from tailrace.exports.bench import bench, write_bench

from .watched_runs import N, document, watched

KEYS = {
    *("date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id", "num_prompts", "request_rate"),
    *("burstiness", "max_concurrency", "duration", "completed", "failed", "total_input_tokens"),
    *("total_output_tokens", "request_throughput", "request_goodput", "output_throughput"),
    *("total_token_throughput", "input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times"),
    *("queue_times", "generated_texts", "errors", "max_output_tokens_per_s", "max_concurrent_requests", "rtfx"),
    *(f"{kind}_{name}_ms" for name in ("ttft", "tpot", "itl") for kind in ("mean", "median", "std", "p99")),
}
"""What vLLM 0.32 writes with its defaults."""


def test_every_key_of_vllm_is_there() -> None:
    found = bench(watched(), document(watched()))
    assert set(found) >= KEYS
    assert found["tailrace"]["results"][0]["policy"] == "srpt"


def test_lists_have_an_entry_a_request_and_statistics_follow_from_them() -> None:
    found = bench(watched(), document(watched()))
    for name in ("input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "queue_times", "errors"):
        assert len(found[name]) == N, name
    assert (found["completed"], found["failed"], found["num_prompts"]) == (N - 1, 1, N)
    assert found["errors"][-1].startswith("rejected")
    assert (found["output_lens"][-1], found["ttfts"][-1], found["itls"][-1]) == (0, 0.0, [])
    for length, ttft, gaps, latency in list(
        zip(found["output_lens"], found["ttfts"], found["itls"], found["latencies"], strict=True)
    )[:-1]:
        assert len(gaps) == length - 1
        assert ttft + sum(gaps) == pytest.approx(latency)
    pooled = np.concatenate(found["itls"])
    assert found["mean_itl_ms"] == pytest.approx(1000 * pooled.mean())
    assert found["p99_itl_ms"] == pytest.approx(1000 * np.percentile(pooled, 99))
    assert found["std_e2el_ms"] == pytest.approx(1000 * np.std(found["latencies"][:-1]))
    columns = zip(found["latencies"], found["ttfts"], found["output_lens"], strict=True)
    several = [(e - t) / (n - 1) for e, t, n in columns if n > 1]
    assert found["median_tpot_ms"] == pytest.approx(1000 * np.median(several))


def test_totals_and_goodput() -> None:
    found = bench(watched(), document(watched()))
    assert found["total_output_tokens"] == sum(found["output_lens"])
    assert found["total_input_tokens"] == sum(found["input_lens"][:-1])
    assert found["output_throughput"] == pytest.approx(found["total_output_tokens"] / found["duration"])
    good = sum(
        t < 0.2 and (n == 1 or (e - t) / (n - 1) < 0.04)
        for t, n, e in list(zip(found["ttfts"], found["output_lens"], found["latencies"], strict=True))[:-1:2]
    )
    assert found["request_goodput"] == pytest.approx(good / found["duration"])


def test_peaks_are_those_of_whole_seconds() -> None:
    found = bench(watched(), document(watched()))
    first = found["start_times"][0]
    seconds = [0] * 60
    present = [0] * 60
    for begin, ttft, gaps, latency in list(
        zip(found["start_times"], found["ttfts"], found["itls"], found["latencies"], strict=True)
    )[:-1]:
        for time in begin + ttft + np.cumsum([0, *gaps]) - first:
            seconds[int(time)] += 1
        for second in range(int(begin - first), int(begin + latency - first) + 1):
            present[second] += 1
    assert found["max_output_tokens_per_s"] == max(seconds)
    assert found["max_concurrent_requests"] == max(present)


def test_the_file_is_strict_json_and_the_same_each_time(tmp_path: Path) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path in paths:
        write_bench(str(path), watched(), document(watched()))
    assert paths[0].read_bytes() == paths[1].read_bytes()
    json.loads(paths[0].read_text(), parse_constant=lambda name: pytest.fail(name))
    with pytest.raises(UserError, match="cannot be written"):
        write_bench("/proc/nowhere/b.json", watched(), document(watched()))
