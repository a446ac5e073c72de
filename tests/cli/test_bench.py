"""What the benchmark measures is what it says."""

from __future__ import annotations

import pytest

from tailrace.cli import bench

pytestmark = pytest.mark.plain


def test_a_crowd_is_measured_with_all_places_taken() -> None:
    found = bench._crowd("uniboost", 4, 1)
    assert 3.5 < found["running"] <= 4
    assert found["waiting"] > 0
    assert found["request_steps_per_s"] > 0
