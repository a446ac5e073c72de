"""ProServe's claims on made-up worlds: in that of the notes they hold, in a flat one those of a difference do not."""

from __future__ import annotations

import numpy as np
import pytest

from tailrace.studies.reproduce.proserve import engine_claims, published, shape_claims
from tailrace.studies.reproduce.proserve.claims import CLAIMS, View, gained, points
from tailrace.studies.reproduce.proserve.plan import EXPERIMENTS
from tailrace.studies.reproduce.verdicts import Ratio

from .worlds import as_in_the_notes, flat, view_of

pytestmark = pytest.mark.plain


def test_every_claim_holds_where_every_shape_is_there() -> None:
    judged = CLAIMS.judge(view_of(as_in_the_notes), EXPERIMENTS)
    assert None not in (shape_claims.__doc__, engine_claims.__doc__)  # they register their own
    assert len(judged) == len(CLAIMS) > 40
    assert [(c["claim"], c["why"]) for c in judged if c["holds"] is not True] == []


ALIKE = (
    "best of all",
    "at most 2 points",
    "longest wait",
    "the ranking",
    "every request",
    "less than 100",
    "below 6 %",
    "itself is not",
)
"""What a world without differences bears out too."""


def test_no_claim_of_a_difference_holds_in_a_flat_world() -> None:
    judged = CLAIMS.judge(view_of(flat), EXPERIMENTS)
    held = [c["claim"] for c in judged if c["holds"] is True]
    assert [text for text in held if not any(part in text for part in ALIKE)] == []


def test_what_was_not_run_is_not_tested() -> None:
    bare = View([], {})
    bare.overhead_us, bare.estimator = {}, {}
    judged = CLAIMS.judge(bare, EXPERIMENTS)
    assert {(c["experiment"], c["holds"]) for c in judged if c["holds"] is not None} == set()
    judged = CLAIMS.judge(view_of(as_in_the_notes), ("fig3",))
    assert {c["experiment"] for c in judged if c["holds"] is not None} == {"fig3"}


def test_gains_are_per_cent_more() -> None:
    found = gained(np.array([0.9, 0.8]), np.array([0.6, 0.4]))
    assert found.value == pytest.approx(70.0)
    assert points(Ratio(-0.012, -0.02, 0.001)) == "−1.2 points [−2.0, 0.1]"


def test_printed_numbers_stand_beside_ours() -> None:
    assert published.value("headline", "tailrace", "tdg_ratio_gain", {}) == 35.0
    assert published.value("headline", "tailrace", "attainment_gain", {}) == 52.0
    assert published.value("estimator", "", "mape_percent", {"model": "qwen2-7b", "jitter": 0.05}) == 4.5
    assert published.value("fig12", "tailrace", "attainment", {}) is None
