"""vLLM's own benchmark calculation over the lists in our file gives the figures in our file."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed here; run scripts/vllm")

from tailrace.exports.bench import PERCENTILES, bench

from ..exports.watched_runs import document, watched


def _output(found: dict[str, Any], i: int) -> Any:
    from vllm.benchmarks.lib.endpoint_request_func import RequestFuncOutput

    out = RequestFuncOutput()
    out.success, out.error = found["errors"][i] == "", found["errors"][i]
    out.start_time, out.ttft, out.itl = found["start_times"][i], found["ttfts"][i], found["itls"][i]
    out.latency, out.prompt_len, out.output_tokens = (found[k][i] for k in ("latencies", "input_lens", "output_lens"))
    return out


@pytest.mark.plain
def test_vllm_finds_the_same_figures() -> None:
    from vllm.benchmarks.serve import calculate_metrics

    found = bench(watched(), document(watched()))
    outputs = [_output(found, i) for i in range(found["num_prompts"])]
    theirs, lengths = calculate_metrics([], outputs, found["duration"], None, list(PERCENTILES), {})
    assert lengths == found["output_lens"]
    names = {"total_input": "total_input_tokens", "total_output": "total_output_tokens"}
    for name, value in vars(theirs).items():
        if name.startswith("percentiles_"):
            for percent, each in value:
                assert found[f"p{percent:g}_{name.removeprefix('percentiles_')}"] == pytest.approx(each), name
        elif name != "request_goodput":  # theirs is of one objective for all
            assert found[names.get(name, name)] == pytest.approx(value), name
