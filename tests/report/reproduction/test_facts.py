"""Sentences that follow the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.report.reproduction import facts
from tailrace.report.reproduction.facts import Axis
from tailrace.report.reproduction.study import Curve, Value

RATE = Axis(after=" req/s", many="loads")


def curve(*values: float | None, half: float = 0.0, start: float = 26.0) -> Curve:
    return {start + i: Value(v, (v - half, v + half) if v is not None and half else None) for i, v in enumerate(values)}


def names(xs: Sequence[float], among: Sequence[float]) -> str:
    return Axis("k = ").among(xs, among)


def test_neighbours_are_named_as_a_range() -> None:
    every = [2.0, 4.0, 6.0, 8.0, 10.0]
    assert names(every, every) == "k = 2 to 10"
    assert names([2, 4, 8], every) == "k = 2, 4 and 8"
    assert names([2, 6, 8, 10], every) == "k = 2 and 6 to 10"
    assert Axis("ε = ").at(0.1 + 0.2) == "ε = 0.3"


def test_an_order_marks_neighbours_that_are_not_told_apart() -> None:
    values = {"a": Value(2.0, (1.9, 2.1)), "b": Value(1.0, (0.9, 1.1)), "c": Value(2.2, (2.05, 2.3)), "d": None}
    assert facts.ranked(values) == "b 1.00 s < a 2.00 s ≈ c 2.20 s"
    assert facts.ranked({"a": Value(2.0), "b": Value(2.0)}) == "a 2.00 s ≈ b 2.00 s"
    assert facts.ranked({}) == ""


def test_who_is_lowest_flips_with_the_numbers() -> None:
    low, high = curve(1, 2, 3), curve(2, 3, 4)
    assert facts.leader({"a": low, "b": high}, "wait", RATE) == "The wait is lowest under a at all 3 loads."
    assert facts.leader({"a": high, "b": low}, "wait", RATE) == "The wait is lowest under b at all 3 loads."
    mixed = facts.leader({"a": curve(1, 2, 5), "b": high}, "wait", RATE)
    assert mixed == "The wait is lowest under a at 26 and 27 req/s; under b at 28 req/s."
    tied = {"a": curve(1.0, half=0.2), "b": curve(1.1, half=0.2)}
    assert facts.leader(tied, "wait", RATE) == "The wait is lowest under a and b at 26 req/s."
    assert facts.leader({"a": low}, "wait", RATE) == ""


def test_an_order_that_changes_is_named_where_it_does() -> None:
    a, b = curve(1, 2, 5), curve(2, 3, 4)
    text = facts.ranking({"a": a, "b": b}, "wait", RATE)
    assert text == "The wait has the order a < b at 2 of 3 loads; b < a at 28 req/s."
    assert facts.ranking({"a": curve(1, None), "b": curve(2, None)}, "wait", RATE).endswith("a < b at 26 req/s.")
    assert facts.ranking({"a": curve(None), "b": curve(None)}, "wait", RATE) == ""


def test_crossings() -> None:
    def said(a: Curve, b: Curve) -> str:
        return facts.crossing({"a": a, "b": b}, "a", "b", "wait", RATE)

    flat = curve(3, 3, 3, 3)
    assert said(curve(1, 2, 4, 5), flat) == "a's wait is below b's at 26 and 27 req/s, above it at 28 and 29 req/s."
    assert said(flat, curve(1, 2, 4, 5)) == "a's wait is above b's at 26 and 27 req/s, below it at 28 and 29 req/s."
    assert said(curve(1, 1, 1, 1), flat) == "a's wait is below b's at 26 to 29 req/s."
    assert said(curve(1, 4, 1, 4), flat) == "a's wait is below b's at 26 and 28 req/s, above it at 27 and 29 req/s."
    assert said(flat, flat) == "a's wait is nowhere told apart from b's."
    near = said(curve(1, 2.9, 4, 5, half=0.2), curve(3, 3, 3, 3, half=0.2))
    assert near == "a's wait is below b's at 26 req/s, above it at 28 and 29 req/s; not told apart at 27 req/s."
    assert said(curve(None), flat) == ""
    assert facts.crossing({"a": flat}, "a", "b", "wait", RATE) == ""


def test_changes_and_distances() -> None:
    assert facts.change(curve(11.1, 12, 17.3)) == "11.1 → 17.3 (+56 %)"
    assert facts.change(curve(2, 1, None)) == "2.00 → 1.00 (−50 %)"
    assert facts.change(curve(0, 1)) == "0 → 1.00"
    assert facts.change(curve(1)) == ""
    pair = {"a": curve(1, 3), "b": curve(2, 10)}
    assert facts.against(pair, "a", "b", "wait", RATE) == "At 27 req/s a's wait is 70 % below b's."
    assert facts.against(pair, "b", "a", "wait", RATE) == "At 27 req/s b's wait is 233 % above a's."
    assert facts.against(pair, "a", "c", "wait", RATE) == ""


def test_the_lowest_place_names_those_it_cannot_be_told_from() -> None:
    axis = Axis("k = ")
    text = facts.lowest_at(curve(3, 1, 1.1, 4, half=0.2, start=2), "P99", axis)
    assert text == "P99 is lowest at k = 3 (1.00 s; not told apart from that at k = 4) and highest at k = 5 (4.00 s)."
    assert facts.lowest_at(curve(3, 1, start=2), "P99", axis).startswith("P99 is lowest at k = 3 (1.00 s) and")
    assert facts.lowest_at(curve(3), "P99", axis) == ""


def test_spans() -> None:
    assert facts.spans({"a": [1.0, 3.0, 2.0], "b": [], "c": [2.0]}) == "1.00 to 3.00 for a and 2.00 for c"
    assert facts.spans({}) == ""
