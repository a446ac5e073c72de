from __future__ import annotations

import json

import numpy as np

from tailrace.workloads import generate, remarks
from tailrace.workloads.readers.about import describe, from_earliest, reordered


def test_description_counts_by_reason_and_is_json() -> None:
    about = describe("x", "timed", 3, units={"t": "s"}, dropped={"a": 2, "b": 0, "c": 1})
    assert json.loads(json.dumps(about)) == about
    assert about["dropped_rows"] == 3
    assert about["dropped_by_reason"] == {"a": 2, "c": 1}


def test_remarks_are_what_nobody_should_miss() -> None:
    about = describe("x", "f", 3, units={}, dropped={"failed": 1200}, reordered_rows=5, notes=["n"], estimates=["e"])
    assert remarks(about) == ["rows dropped: 1,200 (failed)", "rows out of order, sorted by arrival: 5", "e"]
    assert remarks(generate("qba", {"requests": 3}).description) == []


def test_arrivals_from_the_earliest() -> None:
    arrival, notes = from_earliest(np.array([5000.0, 3000.0]), "ms", 1000.0)
    assert arrival.tolist() == [2, 0]
    assert notes == ["arrivals count from the earliest request, at 3000 ms in the file"]
    assert from_earliest(np.array([0.0]), "s", 1.0)[1] == []


def test_reordered() -> None:
    assert reordered(np.array([1.0, 3, 2, 2, 4])) == 2
    assert reordered(np.array([], dtype=np.int64)) == 0
