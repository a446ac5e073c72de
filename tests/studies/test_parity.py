"""What the comparison with vLLM gives both sides, without vLLM."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tailrace.studies import parity
from tailrace.table import RequestTable, dtype_of
from tailrace.vllm_plugin import TESTED
from tailrace.vllm_plugin.asks import Classes, columns

pytestmark = pytest.mark.plain


DRAWN = parity.WORKLOAD.format(requests=200)
OWN = "gamma:rate_rps=0.13,requests=200,lengths=r1 ttft_slo_s=4"


@pytest.mark.parametrize("text", [DRAWN, f"{DRAWN},classes=gold@0.5 weight=3 ttft_slo_s=2 + basic@0.5", OWN])
def test_a_request_says_of_itself_what_the_simulator_is_told(text: str) -> None:
    w = parity._workload(text, False)
    classes, known = Classes(parity._classes(w)), dtype_of(RequestTable).names or ()
    for row in range(len(w)):
        told = columns(parity._told(w, row), 99, classes)
        assert set(told) <= set(known)
        for name in ("predicted_output_tokens", "predicted_class", "class_id", "ttft_slo_s", "tpot_slo_s"):
            assert told[name] == getattr(w, name)[row]
        assert told["weight"] == w.class_weights[w.class_id[row]]


def test_classes_are_drawn_where_there_are_none() -> None:
    w = parity._workload(DRAWN, False)
    assert w.class_names == ("gold", "basic")
    assert set(np.unique(w.class_id)) == {0, 1}
    assert {(t, p) for t, p in zip(w.ttft_slo_s, w.tpot_slo_s, strict=True)} == {(8.0, 2.0), (64.0, 8.0)}
    own = parity._workload(OWN, False)
    assert own.class_names == ("default",)
    assert set(own.ttft_slo_s) == {4.0}
    assert set(own.tpot_slo_s) == {math.inf}


def test_seconds_are_compared_where_they_can_be_the_same() -> None:
    """A policy that limits a step's seconds is in every main case but those with a prefix cache."""
    planned = parity.plan(TESTED[0])
    for policy in ("slide", "fairbatching"):
        assert parity._latency(policy) == parity.TIMED
        assert {case for name, case in planned if name == policy} == {"base", "async", "little memory"}
    for policy in ("edf:displaces=place", "vtc", "sarathi_priority"):
        assert parity._latency(parity.registered(policy)[0]) == parity.LATENCY
        assert (policy, "prefix cache") in planned
