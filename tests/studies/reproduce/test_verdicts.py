"""Verdicts: true, false, and not known where the seeds are too few to tell."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tailrace.studies.reproduce.verdicts import Ratio, all_hold, below, between, difference, ratio

RNG = np.random.Generator(np.random.PCG64(5))
BASE = RNG.exponential(2.0, 40)
NOISE = RNG.normal(0.0, 0.01, 40)


def test_pairs_are_told_apart_though_seeds_scatter() -> None:
    assert below(BASE, BASE + 0.05 + NOISE) is True
    assert below(BASE + 0.05 + NOISE, BASE) is False
    assert below(BASE, BASE + NOISE) is None
    assert below(BASE, BASE) is None
    # The same difference unpaired drowns in the scatter between seeds.
    assert below(BASE, np.roll(BASE, 1) + 0.05) is None


def test_seeds_without_a_value_do_not_count() -> None:
    gap = np.where(np.arange(40) < 20, np.nan, BASE)
    assert below(gap, BASE + 1) is True
    assert below(np.full(40, np.nan), BASE) is None
    assert ratio(gap, BASE).value == pytest.approx(1.0)


def test_a_ratios_interval_covers_the_truth_as_often_as_it_says() -> None:
    hits = 0
    for _ in range(400):
        under = RNG.exponential(1.0, 30)
        found = ratio(under * RNG.normal(1.5, 0.3, 30), under)
        hits += found.low <= 1.5 <= found.high
    assert 0.90 <= hits / 400 <= 0.99  # 95 % nominal; a ratio of 30 pairs falls a little short


def test_a_ratio_of_nothing_is_no_number() -> None:
    assert math.isnan(ratio(np.zeros(3), np.zeros(3)).value)
    assert between(ratio(np.full(3, np.nan), BASE[:3]), low=1) is None
    assert ratio(np.ones(1), np.ones(1)).high == math.inf


def test_between_wants_the_whole_interval() -> None:
    assert between(Ratio(1.0, 0.9, 1.1), 0.8, 1.2) is True
    assert between(Ratio(1.0, 0.9, 1.1), 1.2) is False
    assert between(Ratio(1.0, 0.9, 1.1), high=0.8) is False
    assert between(Ratio(1.0, 0.9, 1.1), 1.0, 1.2) is None


def test_one_false_part_decides() -> None:
    assert all_hold([True, True]) is True
    assert all_hold([True, None]) is None
    assert all_hold([None, False, True]) is False


def test_a_difference_is_paired_by_seed() -> None:
    ours, theirs = np.array([0.5, 0.9, np.nan]), np.array([0.4, 0.8, 0.1])
    found = difference(ours, theirs)
    assert tuple(found) == pytest.approx((0.1, 0.1, 0.1))
    assert between(found, low=0.05) is True
    assert between(difference(ours[:1], theirs[:1]), low=0.0) is None  # of one seed nothing is known
    assert between(difference(ours[2:], theirs[2:]), low=0.0) is None
