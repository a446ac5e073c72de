from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.errors import UserError
from tailrace.table import LONG, SHORT
from tailrace.workloads import Workload, long_class


def small(**columns: Any) -> Workload:
    given: dict[str, Any] = {"arrival_s": [0.5, 1.0, 2.5], "prompt_tokens": [10, 20, 30], "output_tokens": [1, 2, 3]}
    given |= {"name": "small"} | columns
    return Workload.of(given.pop("arrival_s"), given.pop("prompt_tokens"), given.pop("output_tokens"), **given)


def test_defaults() -> None:
    workload = small()
    assert len(workload) == 3
    assert workload.span_s == 2.0
    assert workload.rate_rps == 1.0
    assert workload.class_names == workload.tenant_names == ("default",)
    assert workload.class_weights == (1.0,)
    assert np.isinf(workload.ttft_slo_s).all()
    assert np.isinf(workload.tpot_slo_s).all()
    for field in ("class_id", "tenant", "priority"):
        assert getattr(workload, field).tolist() == [0, 0, 0]
    assert workload.true_class.tolist() == workload.predicted_class.tolist() == [SHORT, SHORT, LONG]
    assert workload.predicted_output_tokens.tolist() == [1, 2, 3]
    assert workload.predictions == "oracle"
    assert json.loads(json.dumps(workload.description)) == {"rows": 3, "dropped_rows": 0}


def test_sessions_are_numbered_by_first_appearance() -> None:
    workload = Workload.of([3, 1, 2, 4, 5], [1] * 5, [1] * 5, name="x", session=[7, 900, -1, 900, 7])
    assert workload.session.tolist() == [0, -1, 1, 0, 1]
    assert workload.head(2).session.tolist() == [0, -1]
    assert workload.scaled(2).session.tolist() == workload.session.tolist()
    assert small().session.tolist() == [-1, -1, -1]
    assert small(session=[5, 5, 5]).session.tolist() == [0, 0, 0]
    with pytest.raises(UserError, match=r"session\[1\]=-2 must be a whole number in \[-1, "):
        small(session=[0, -2, 1])


def test_types_and_no_writing() -> None:
    workload = small(arrival_s=[0, 1, 2], priority=np.int32(3), ttft_slo_s=[1, 2, 3])
    for field in ("arrival_s", "ttft_slo_s", "tpot_slo_s"):
        assert getattr(workload, field).dtype == np.float64
    for field in ("prompt_tokens", "output_tokens", "session", "priority", "predicted_output_tokens", "true_class"):
        assert getattr(workload, field).dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        workload.arrival_s[0] = 1.0


def test_the_callers_arrays_stay_writable_and_apart() -> None:
    arrival = np.array([0.0, 1.0])
    workload = Workload.of(arrival, [1, 1], [1, 1], name="x")
    arrival[0] = 9.0
    assert workload.arrival_s[0] == 0.0


def test_own_predictions_are_called_given() -> None:
    assert small(predicted_output_tokens=[3, 2, 1]).predictions == "given"
    assert small(predicted_class=1, predictions="mine").predictions == "mine"


def test_unknown_column() -> None:
    with pytest.raises(TypeError, match="no column"):
        small(prioritty=1)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_sorted_stably_with_every_column(arrivals: list[int]) -> None:
    rows = np.arange(1, len(arrivals) + 1)
    workload = Workload.of(arrivals, rows, rows, name="x", priority=rows, ttft_slo_s=rows)
    order = sorted(range(len(arrivals)), key=lambda row: arrivals[row])
    expected = [row + 1 for row in order]
    assert workload.arrival_s.tolist() == sorted(arrivals)
    for field in ("prompt_tokens", "output_tokens", "priority", "ttft_slo_s", "predicted_output_tokens"):
        assert getattr(workload, field).tolist() == expected


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"arrival_s": []}, "'small' has no requests"),
        ({"arrival_s": [0, -1, 2]}, r"arrival_s\[1\]=-1.0 must be finite and 0 or more"),
        ({"arrival_s": [0, math.nan, 2]}, r"arrival_s\[1\]=nan must be finite"),
        ({"arrival_s": [0, 1, math.inf]}, r"arrival_s\[2\]=inf must be finite"),
        ({"prompt_tokens": [1, 0, 1]}, r"prompt_tokens\[1\]=0 must be a whole number in \[1, 2147483648\]"),
        ({"output_tokens": [1, 1, 2**31 + 1]}, r"output_tokens\[2\]=2147483649 must be"),
        ({"output_tokens": [1, 1.5, 1]}, r"output_tokens\[1\]=1.5 must be a whole number"),
        ({"output_tokens": [1, math.nan, 1]}, r"output_tokens\[1\]=nan must be a whole number"),
        ({"output_tokens": np.array([1, 2**63, 1], dtype=np.uint64)}, "must be a whole number"),
        ({"output_tokens": [1, 1]}, "output_tokens has 2 rows, arrival_s has 3"),
        ({"output_tokens": ["a", "b", "c"]}, "output_tokens must be a list of numbers"),
        ({"class_id": [0, 1, 0]}, r"class_id\[1\]=1 must be a whole number in \[0, 0\]"),
        ({"tenant": -1}, r"tenant\[0\]=-1 must be"),
        ({"ttft_slo_s": [1, 0, 1]}, r"ttft_slo_s\[1\]=0.0 must be above 0"),
        ({"tpot_slo_s": math.nan}, r"tpot_slo_s\[0\]=nan must be above 0"),
        ({"class_weights": [1, 2]}, "2 class weights for 1 class names"),
        ({"class_weights": [0]}, "weight 0.0 of class 'default' is not above 0"),
        ({"predicted_class": 2}, r"predicted_class\[0\]=2"),
    ],
)
def test_mistakes(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        small(**columns)


def test_digest_is_the_same_on_every_machine() -> None:
    # A literal: results are cached under digests, so a change of them must be meant.
    assert small().digest() == "19afbf90f3589a1ba79fbaa8e3f1a5921e4fb85b4cd560cd86231748cdb9d8d9"


def test_digest_tells_contents_apart_but_not_labels() -> None:
    variants = [
        small(),
        small(session=[0, 1, 1]),
        small(session=[0, 0, 1]),
        small(session=[0, -1, 1]),
        small(arrival_s=[0.5, 1.0, 2.6]),
        small(prompt_tokens=[10, 20, 31]),
        small(priority=1),
        small(ttft_slo_s=1),
        small(class_names=["chat"]),
        small(class_weights=[2]),
        small(tenant_names=["a"]),
        small(predicted_class=1),
        small(predictions="noise:cv=0"),
    ]
    assert len({workload.digest() for workload in variants}) == len(variants)
    assert small(session=-1).digest() == small().digest()
    assert small(session=[4, 2, 2]).digest() == small(session=[0, 1, 1]).digest()
    assert small(name="other", description={"seed": 3}).digest() == small().digest()
    assert small(arrival_s=[-0.0, 1, 2]).digest() == small(arrival_s=[0.0, 1, 2]).digest()


def test_head() -> None:
    workload = small(priority=[3, 2, 1])
    head = workload.head(2)
    assert head.priority.tolist() == [3, 2]
    assert head.true_class.tolist() == [SHORT, SHORT]
    assert head.description == {"rows": 2, "dropped_rows": 0, "limit": 2}
    assert workload.head(3) is workload
    with pytest.raises(UserError, match="first 0 requests"):
        workload.head(0)


def test_scaled() -> None:
    workload = small(ttft_slo_s=2)
    faster = workload.scaled(2).scaled(2)
    assert faster.arrival_s.tolist() == [0.125, 0.25, 0.625]
    assert faster.rate_rps == 4 * workload.rate_rps
    assert faster.ttft_slo_s.tolist() == [2, 2, 2]
    assert faster.description["rate_factor"] == 4
    for factor in (0, -1, math.inf, math.nan):
        with pytest.raises(UserError, match="must be positive and finite"):
            workload.scaled(factor)


def test_all_at_once_has_no_rate() -> None:
    workload = small(arrival_s=[1, 1, 1])
    assert workload.span_s == 0
    assert math.isnan(workload.rate_rps)


def test_long_class_is_strict_about_the_quantile() -> None:
    assert long_class(np.array([5, 5, 5])).tolist() == [SHORT] * 3
    outputs = np.arange(1, 101)
    assert long_class(outputs).sum() == 15
    assert long_class(outputs, 1.0).sum() == 0
    assert long_class(outputs, 0.0).sum() == 99
