"""A file name for each policy."""

from __future__ import annotations

from tailrace.exports import per_policy


def test_labels_become_parts_of_names_that_any_system_takes() -> None:
    assert per_policy("out/b.json", ["fcfs", "qba:k=3"]) == ["out/b-fcfs.json", "out/b-qba_k=3.json"]
    assert per_policy("b", ["../x:y z", "é"]) == ["b-.._x_y_z", "b-_"]


def test_labels_that_become_the_same_are_numbered() -> None:
    assert per_policy("b.json", ["a:b", "a_b", "A b"]) == ["b-a_b.json", "b-a_b-2.json", "b-A_b-3.json"]
