"""Numbers of numpy count as numbers, and truth values do not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tailrace.errors import UserError
from tailrace.queueing.checks import columns, number, share, whole


def test_what_is_taken() -> None:
    assert number("x", np.float32(0.5)) == 0.5
    assert number("x", -3, low=-math.inf) == -3.0
    assert whole("n", np.int64(3)) == 3
    assert share("p", 1) == 1.0
    assert [list(column) for column in columns(a=(1, 2), b=np.array([0.0, 4.0]))] == [[1.0, 2.0], [0.0, 4.0]]


@pytest.mark.parametrize(
    ("check", "value", "text"),
    [
        (number, True, "x=True must be a number"),
        (number, "1", "x='1' must be a number"),
        (number, -1, "x=-1 must be finite and at least 0"),
        (whole, 2.0, "x=2.0 must be a whole number of at least 1"),
        (whole, True, "x=True must be a whole number"),
        (share, 1.01, "x=1.01 must be a share"),
    ],
)
def test_what_is_not(check: Any, value: Any, text: str) -> None:
    with pytest.raises(UserError, match=f"^{text}"):
        check("x", value)


def test_what_must_be_above_its_bound() -> None:
    with pytest.raises(UserError, match=r"^x=0 must be finite and above 0"):
        number("x", 0, above=True)
