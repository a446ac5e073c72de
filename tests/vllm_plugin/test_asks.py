"""What requests say of themselves."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tailrace.errors import UserError
from tailrace.table import LONG, SHORT
from tailrace.vllm_plugin.asks import Classes, columns


def test_what_a_client_sends() -> None:
    classes = Classes({"gold": {"weight": 4, "ttft_slo_ms": 500}, "basic": {}})
    told = {"tailrace_predicted_output_tokens": 12, "tailrace_predicted_class": "long", "tailrace_class": "basic"}
    found = columns({**told, "tailrace_tpot_slo_ms": 50}, 99, classes)
    assert (found["predicted_output_tokens"], found["predicted_class"], found["class_id"]) == (12, LONG, 1)
    assert (found["weight"], found["ttft_slo_s"], found["tpot_slo_s"]) == (1.0, math.inf, 0.05)
    absent = columns({}, 99, classes)
    assert (absent["predicted_output_tokens"], absent["predicted_class"], absent["weight"]) == (99, SHORT, 4.0)
    assert absent["ttft_slo_s"] == 0.5


@pytest.mark.parametrize("value", ["abc", -1, 0, True, [1], {}, float("nan"), float("inf"), 10**400])
def test_nothing_a_client_sends_stops_the_engine(value: Any) -> None:
    fields = ("predicted_output_tokens", "predicted_class", "class", "ttft_slo_ms", "tpot_slo_ms")
    found = columns({f"tailrace_{field}": value for field in fields}, 99, Classes())
    assert found == columns({}, 99, Classes())


def test_mistakes_in_classes() -> None:
    for given, message in (
        ({"a": {"wieght": 1}}, "did you mean 'weight'"),
        ({"a": {"weight": 0}}, "must be a number above 0"),
        ({"a": 3}, "must be an object"),
        ([], "tailrace.classes must be"),
    ):
        with pytest.raises(UserError, match=message):
            Classes(given)
