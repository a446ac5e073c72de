"""UniBoost's claims on made-up worlds: in the article's they hold, in a flat one those of a difference do not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tailrace.studies.reproduce.uniboost import claims, design_claims, published
from tailrace.studies.reproduce.uniboost.claims import CLAIMS, View, gain
from tailrace.studies.reproduce.uniboost.plan import EXPERIMENTS

from .worlds import KNEES, TOYS, as_in_the_article, flat, view_of

pytestmark = pytest.mark.plain


def test_every_claim_holds_in_the_articles_own_world() -> None:
    judged = CLAIMS.judge(view_of(as_in_the_article, TOYS), EXPERIMENTS)
    assert len(judged) == len(CLAIMS) > 30
    assert design_claims.__doc__ is not None  # registers its own
    assert [(c["claim"], c["why"]) for c in judged if c["holds"] is not True] == []


ALIKE = ("throughput at most 1 % lower", "at most 35 % worse", "γ ends within 5 %", "at most Sarathi's")
"""What a world without differences bears out too."""


def test_no_claim_of_a_difference_holds_in_a_flat_world() -> None:
    judged = CLAIMS.judge(view_of(flat, dict.fromkeys(TOYS, 5.0)), EXPERIMENTS)
    held = [c["claim"] for c in judged if c["holds"] is True]
    assert [text for text in held if not any(part in text for part in ALIKE)] == []


def test_what_was_not_run_is_not_tested() -> None:
    judged = CLAIMS.judge(view_of(as_in_the_article, TOYS), ("toys",))
    assert {c["holds"] for c in judged if c["experiment"] == "toys"} == {True}
    assert {(c["holds"], c["why"][:10]) for c in judged if c["experiment"] != "toys"} == {(None, "not tested")}
    bare = View([], {})
    bare.toys = TOYS
    judged = CLAIMS.judge(bare, EXPERIMENTS)
    assert {c["holds"] for c in judged if c["experiment"] != "toys"} == {None}


@pytest.mark.parametrize(("metric", "expected"), [("e2e_p99_s", 20.0), ("requests_per_s", -20.0)])
def test_gains_are_per_cent_better(metric: str, expected: float) -> None:
    ours, base = np.array([8.0, 16.0, 8.0]), np.array([10.0, 20.0, 10.0])
    found = gain(ours, base, metric)
    assert found.value == pytest.approx(expected)
    assert found.low <= found.value <= found.high


def test_knees_are_where_the_tail_has_doubled() -> None:
    view = view_of(as_in_the_article, TOYS)
    for policy, start in KNEES.items():
        assert claims.knee(view, policy).mean() == pytest.approx(start + math.log(2) / 10, abs=0.04), policy


def test_printed_numbers_stand_beside_ours() -> None:
    at: dict[str, Any] = {"mix": "mix-2", "rule": "srpt_swap"}
    assert published.value("against", "uniboost_high", "e2e_p99_gain", at) == 35.1
    assert published.value("against", "uniboost_high", "e2e_p99_gain", {**at, "mix": "mix-1"}) is None
    assert published.value("starvation", "srpt_decode_first", "long_preempted_p99_s", {}) == 18.6
    assert published.value("starvation", "uniboost_low", "short_e2e_p99_s", {}) == 3.62
    assert published.value("toys", "fcfs", "mean_steps", {"schedule": "convoy"}) == 9.0
    assert published.value("main", "fcfs", "ttft_mean_s", {"mix": "mix-2"}) is None
