"""Errors by regime, against sums by hand; the split."""

from __future__ import annotations

import pytest

from tailrace.errors import UserError
from tailrace.latency import REGIMES, Errors, ProfiledParams, Sample, errors_by_regime, mape, split, step_shape

pytestmark = pytest.mark.plain

COST = ProfiledParams(1.0)
"""One second for every step, so that the error of a measured t is 1/t - 1."""
PREFILL, DECODE, MIXED = step_shape([(10, 0)]), step_shape(decodes=[(1, 5)]), step_shape([(10, 0)], [(1, 5)])


def test_by_hand() -> None:
    samples: list[Sample] = [(PREFILL, 2.0), (DECODE, 0.5), (MIXED, 0.8), (DECODE, 1.25), (MIXED, 4.0), (MIXED, 1.0)]
    found = errors_by_regime(samples, COST)  # -0.5, 1, 0.25, -0.2, -0.75, 0
    assert tuple(found) == REGIMES
    assert found["all"] == pytest.approx(Errors(6, 2.7 / 6, 1.0, -0.2 / 6))
    assert found["decode only"] == pytest.approx(Errors(2, 0.6, 1.0, 0.4))
    assert found["prefill only"] == pytest.approx(Errors(1, 0.5, 0.5, -0.5))
    assert found["mixed"] == pytest.approx(Errors(3, 1 / 3, 0.75, -0.5 / 3))
    assert found["short"] == pytest.approx(Errors(2, 0.625, 1.0, 0.625))  # 0.5 and 0.8 s
    assert found["middle"] == pytest.approx(Errors(2, 0.1, 0.2, -0.1))
    assert found["long"] == pytest.approx(Errors(2, 0.625, 0.75, -0.625))
    assert found["all"].mape == pytest.approx(mape(samples, COST))


def test_what_there_is_none_of_is_left_out() -> None:
    found = errors_by_regime([(DECODE, 2.0)], COST)
    assert set(found) == {"all", "decode only", "short"}
    with pytest.raises(UserError, match="no samples"):
        errors_by_regime([], COST)
    with pytest.raises(UserError, match=r"sample 1: seconds=0\.0 must be positive"):
        errors_by_regime([(DECODE, 0.0)], COST)


def test_thirds_are_equal_in_number() -> None:
    found = errors_by_regime([(DECODE, 1.0)] * 10, COST)
    assert [found[name].steps for name in ("short", "middle", "long")] == [4, 3, 3]


def test_the_split_is_a_partition_that_the_seed_decides() -> None:
    samples: list[Sample] = [(DECODE, float(second)) for second in range(1, 101)]
    kept, held = split(samples, 0.25, 3)
    assert (len(kept), len(held)) == (75, 25)
    assert sorted([*kept, *held], key=lambda sample: sample[1]) == samples
    assert kept == sorted(kept, key=lambda sample: sample[1])
    assert split(samples, 0.25, 3) == (kept, held)
    assert split(samples, 0.25, 4) != (kept, held)


@pytest.mark.parametrize("share", [0.0, 1.0, float("nan"), 0.01, 0.99])
def test_a_split_with_an_empty_part_is_refused(share: float) -> None:
    with pytest.raises(UserError, match="holdout="):
        split([(DECODE, 1.0)] * 5, share, 0)
