"""Token gain against sums worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tailrace import metrics

from .made_up import requests

INF = np.inf


def known(**changes: Any) -> metrics.Requests:
    """`made_up.requests` with a TTFT objective of 2 s and a TPOT objective of 0.5 s: tokens 5, 1, 10, 3, of which the
    first comes after 1, 3, 1 s and never."""
    columns: dict[str, Any] = {
        "prompt_tokens": np.array([10, 20, 30, 16]),
        "ttft_slo_s": np.full(4, 2.0),
        "tpot_slo_s": np.full(4, 0.5),
        "on_time_tokens": np.array([3, 0, 2, 0]),
        "weight": np.array([2.0, 1.0, 1.0, 2.0]),
    }
    return requests(**{**columns, **changes})


def test_nothing_is_said_without_a_ttft_objective() -> None:
    assert metrics.gain(requests()) is None
    assert metrics.gain(requests(tpot_slo_s=np.full(4, 1.0))) is None
    assert "gain" not in metrics.summarise(requests())


def test_tokens_count_by_class_and_place() -> None:
    # w_p : w_d = 19 : 4.75 = 4 : 1. First tokens in time: 2 and 1 of weights 2 + 1 + 1 + 2; later ones 2·3 + 1·2 of
    # 2·4 + 1·0 + 1·9 + 2·2. The third request never finished; what it delivered counts, as does what it did not.
    found = metrics.gain(known())
    assert found == {
        "tdg_ratio": (4 * 3 + 8) / (4 * 6 + 21),
        "first_token_ratio": 3 / 6,
        "later_token_ratio": 8 / 21,
        "first_token_weight": 4.0,
    }
    assert metrics.summarise(known())["gain"] == found


def test_the_weight_of_first_tokens_can_be_given() -> None:
    found = metrics.gain(known(), first_token_weight=0.5)
    assert found is not None
    assert found["tdg_ratio"] == pytest.approx((0.5 * 3 + 8) / (0.5 * 6 + 21))
    assert found["first_token_weight"] == 0.5
    assert metrics.summarise(known(), None, 0.5)["gain"] == found


def test_a_group_keeps_the_workloads_weight() -> None:
    found = metrics.gain(known(), np.array([True, False, False, False]))
    assert found == {
        "tdg_ratio": (4 * 2 + 6) / (4 * 2 + 8),
        "first_token_ratio": 1.0,
        "later_token_ratio": 0.75,
        "first_token_weight": 4.0,
    }
    assert metrics.gain(known(ttft_slo_s=np.array([2.0, INF, 2.0, 2.0])), np.array([False, True, False, False])) is None


def test_with_ttft_objectives_alone_first_tokens_count_alone() -> None:
    found = metrics.gain(known(tpot_slo_s=np.full(4, INF), on_time_tokens=np.full(4, -1)))
    assert found == {
        "tdg_ratio": 0.5,
        "first_token_ratio": 0.5,
        "later_token_ratio": None,
        "first_token_weight": 4.0,
    }


def test_a_first_token_that_comes_when_it_is_due_is_late() -> None:
    assert metrics.gain(known(ttft_slo_s=np.full(4, 1.0)))["first_token_ratio"] == 0.0  # type: ignore[index]
    assert metrics.gain(known(ttft_slo_s=np.full(4, 1.001)))["first_token_ratio"] == 0.5  # type: ignore[index]
