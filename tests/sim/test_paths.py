"""What policies keep over time: what is refused, what is thinned, what a result says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tailrace.errors import UserError
from tailrace.hooks import Policy
from tailrace.registry import POLICIES
from tailrace.sim import paths

pytestmark = pytest.mark.plain


class Keeps(Policy):
    """Its state is what it kept."""

    name = "keeps"

    @staticmethod
    def paths(state: Any) -> dict[str, tuple[Any, Any]]:
        return dict(state)


def test_no_policy_must_keep_anything() -> None:
    policy = POLICIES.get("fcfs")
    assert paths.gather(policy, policy.make_state(None, 1)) == {}
    assert paths.summary({}) == {}


def test_lists_become_arrays_and_what_has_no_point_is_left_out() -> None:
    found = paths.gather(Keeps, {"a_s": ([1, 2], [3, 4]), "none": ([], [])})
    assert list(found) == ["a_s"]
    assert paths.summary(found) == {"paths": {"a_s": {"time_s": [1.0, 2.0], "value": [3.0, 4.0]}}}


def test_what_is_gathered_is_a_copy() -> None:
    ring = np.array([1.0, 2.0])
    found = paths.gather(Keeps, {"a": (ring, ring)})
    ring[:] = 0
    assert found["a"][1].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"a b": ([1], [1])}, "policy keeps: paths: 'a b' must be letters"),
        ({"a": ([1, 2], [1])}, r"paths: a: times of shape \(2,\), values of shape \(1,\); give two lists"),
        ({"a": (1.0, 1.0)}, "give two lists of one length"),
        ({"a": ([2, 1], [1, 1])}, "paths: a: times must not go back"),
    ],
)
def test_what_does_not_go_together_is_one_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        paths.gather(Keeps, given)


@pytest.mark.parametrize("n", [1, 2, 199, 200, 201, 4096])
def test_thinning_keeps_the_ends_and_the_order(n: int) -> None:
    clock: NDArray[np.float64] = 0.5 * np.arange(n, dtype=np.float64)
    path = clock, 4 * clock
    times, values = paths.thin(path)
    assert len(times) == len(values) == min(n, paths.POINTS)
    assert (times[0], times[-1], values[-1]) == (0.0, 0.5 * (n - 1), 2.0 * (n - 1))
    assert (np.diff(times) > 0).all()
    assert (values == 4 * times).all()
    assert np.diff(times).max(initial=0.0) <= 0.5 * max(1.0, n / paths.POINTS + 1)
