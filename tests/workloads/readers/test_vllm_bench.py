from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tailrace.errors import UserError
from tailrace.workloads import load

Write = Callable[[str], Path]
RESULT: dict[str, Any] = {
    "date": "20260101-000000",
    "request_rate": 5.0,
    "duration": 3.0,
    "completed": 3,
    "request_throughput": 1.0,
    "input_lens": [10, 20, 30, 40],
    "output_lens": [5, 6, 0, 7],
    "ttfts": [0.1, 0.2, 0.0, 0.3],
    "itls": [[0.01], [0.02, 0.03], [], []],
    "start_times": [101.5, 100.5, 102.0, 103.0],
    "errors": ["", "", "refused", ""],
}


def without(*fields: str) -> dict[str, Any]:
    return {field: value for field, value in RESULT.items() if field not in fields}


@pytest.mark.parametrize("indent", [None, 2])
def test_requests_as_they_were_sent(file: Write, indent: int | None) -> None:
    w = load(str(file(json.dumps(RESULT, indent=indent))))
    assert w.arrival_s.tolist() == [0, 1, 2.5]
    assert w.prompt_tokens.tolist() == [20, 10, 40]
    assert w.output_tokens.tolist() == [6, 5, 7]
    about = w.description
    assert about["format"] == "vllm_bench"
    assert about["dropped_by_reason"] == {"failed": 1}
    assert about["reordered_rows"] == 1
    assert about["measured"]["ttft_s"]["mean"] == pytest.approx(0.2)
    assert about["measured"]["itl_s"] == pytest.approx({"mean": 0.02, "p50": 0.02, "p90": 0.028, "p99": 0.0298})
    json.dumps(about)


def test_without_start_times_all_arrive_at_once_and_it_says_so(file: Write) -> None:
    w = load(str(file(json.dumps(without("start_times", "ttfts", "itls", "errors")))))
    assert w.arrival_s.tolist() == [0, 0, 0]
    assert w.description["notes"] == [
        "the file has no start_times: all requests arrive at 0 s (it was asked for 5.0 requests/s)"
    ]
    assert w.description["measured"] == {}


def test_a_file_with_several_results(file: Write) -> None:
    other = {**RESULT, "input_lens": [1, 2, 3, 4]}
    path = str(file(json.dumps(RESULT) + "\n" + json.dumps(other)))
    with pytest.raises(UserError, match="holds 2 results; choose one by --format vllm_bench:result=1 to 2"):
        load(path)
    assert load(path, format="vllm_bench:result=2").prompt_tokens.tolist() == [2, 1, 4]
    with pytest.raises(UserError, match="holds 2 results; choose one"):
        load(path, format="vllm_bench:result=3")


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (
            without("input_lens", "output_lens", "start_times", "ttfts", "itls", "errors"),
            "field input_lens: no such list of requests; run it again with --save-result --save-detailed",
        ),
        ({**RESULT, "input_lens": []}, "field input_lens: is empty"),
        ({**RESULT, "output_lens": [1]}, "field output_lens: 1 entries, but input_lens has 4; the file is damaged"),
        ({**RESULT, "ttfts": 3}, "field ttfts: no list of entries"),
        ({**RESULT, "output_lens": [1, "x", 2, 3]}, r"field output_lens\[1\]: 'x' is not a number"),
        (
            {**RESULT, "output_lens": [1, 2, -2, 3]},
            r"output_lens\[2\]: -2 is not a whole number in \[0, 2147483648\]",
        ),
        ({**RESULT, "output_lens": [1, 2.5, 2, 3]}, r"field output_lens\[1\]: 2.5 is not a whole number"),
        ({**RESULT, "output_lens": [1, 10**18, 2, 3]}, r"field output_lens\[1\]: 1000000000000000000 is not"),
        ({**RESULT, "output_lens": [1, 10**400, 2, 3]}, r"field output_lens\[1\]: 10+ is not"),
        ({**RESULT, "input_lens": [1, 2, 3, 0]}, r"field input_lens\[3\]: 0 is no prompt"),
        ({**RESULT, "start_times": [1, 2, 3, float("nan")]}, r"field start_times\[3\]: must be finite"),
        ({**RESULT, "itls": [[0.1], ["a"], [], []]}, "'a' is not a number"),
        ({**RESULT, "itls": [0.1, 0.2, 0.3, 0.4]}, "field itls: must hold a list of gaps for each request"),
        ({**RESULT, "output_lens": [0, 0, 0, 0]}, "none of 4 requests was answered"),
    ],
)
def test_mistakes(file: Write, result: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        load(str(file(json.dumps(result))))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_file_cut_off(file: Write) -> None:
    with pytest.raises(UserError, match="row 1: the JSON is cut off; download it again"):
        load(str(file(json.dumps(RESULT)[:-50])), format="vllm_bench")
