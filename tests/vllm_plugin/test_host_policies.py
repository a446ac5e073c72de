"""What single policies decide in the host."""

from __future__ import annotations

from typing import Any

import pytest

from .hosts import arrive, decide, make_host, names


@pytest.mark.plain
def test_edf_in_the_host_goes_by_deadlines_and_displaces_for_kv() -> None:
    host = make_host("edf", seqs=2, blocks=8)
    arrive(host, "a", 0.0, prompt_tokens=100, ttft_slo_s=90.0, tpot_slo_s=5.0)
    host.complete(host.note({"a": 100}, {"a": 0}, [], 0.0), [1], [100], [False], 1.0)
    arrive(host, "b", 1.0, prompt_tokens=64, ttft_slo_s=95.5, tpot_slo_s=5.0)
    assert names(decide(host, ["a"], 1, 1.0).displaced) == []  # a is due at 95, b at 96.5
    arrive(host, "c", 2.0, prompt_tokens=64, ttft_slo_s=10.0, tpot_slo_s=5.0)
    decision = decide(host, ["a"], 1, 2.0)
    assert names(decision.displaced) == ["a"]
    assert names(decision.front)[:1] == ["c"]


@pytest.mark.plain
def test_fairbatchings_seconds_reach_the_host_as_tokens() -> None:
    host = make_host("fairbatching", latency_text="piecewise:constant_s=0.5,per_token_s=0.125,knee_tokens=0")
    arrive(host, "a", 0.0, prompt_tokens=10, ttft_slo_s=6.0, tpot_slo_s=1.0)
    assert decide(host, [], 900, 0.0).most_tokens is None  # no decodes: any length
    host.complete(host.note({"a": 10}, {"a": 0}, [], 0.0), [1], [10], [False], 2.0)
    arrive(host, "b", 2.0, prompt_tokens=200, ttft_slo_s=6.0, tpot_slo_s=1.0)
    assert decide(host, ["a"], 900, 2.0).most_tokens == 36  # due at 7: 5 s, less 0.5, at 8 tokens a second
    assert decide(host, ["a"], 900, 6.5).most_tokens == 4  # no less than the TPOT SLO


@pytest.mark.plain
def test_vtc_in_the_host_serves_who_had_least() -> None:
    host = make_host("vtc", seqs=1)
    for number, (name, class_id, weight) in enumerate([("a", 0, 1.0), ("b", 0, 1.0), ("c", 1, 4.0), ("d", 1, 4.0)]):
        arrive(host, name, float(number), class_id=class_id, weight=weight)
    host.complete(host.note({"a": 10}, {"a": 0}, [], 4.0), [1], [10], [True], 5.0)
    # Class 0 has had 10 + 2. Class 1 nothing, 2.5 with c, and less than that again with d.
    decision = decide(host, [], 900, 5.0)
    assert names(decision.front + host.more(5.0))[:3] == ["c", "d", "b"]


def test_a_locked_request_is_not_displaced_in_the_host() -> None:
    """memguard through the host's calls: it yields at a milestone, and not a token later."""
    given: dict[str, Any] = {
        "k_tokens": 16,
        "lock": "milestone",
        "gamma_per_s": 0.001,
        "hysteresis_s": 0.0,
        "seconds_per_token": 1.0,
    }
    host = make_host("memguard", seqs=1, **given)
    arrive(host, "a", 0.0, prompt_tokens=60)
    host.complete(host.note({"a": 60}, {"a": 0}, [], 0.0), [1], [60], [False], 1.0)
    arrive(host, "b", 1.0, prompt_tokens=10)
    assert names(decide(host, ["a"], 900, 1.0).displaced) == []  # 60 of 64 tokens
    host.complete(host.note({"a": 4}, {}, [], 1.0), [5], [64], [False], 2.0)
    assert names(decide(host, ["a"], 900, 2.0).displaced) == ["a"]
    host.complete(host.note({"a": 1}, {}, [], 2.0), [6], [65], [False], 3.0)
    assert names(decide(host, ["a"], 900, 3.0).displaced) == []
