"""Arguments in native form: `tailrace._bound`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from tailrace._jit import ENABLED, Bound, entry, kernel
from tailrace.table import I8, Columns, allocate

pytestmark = pytest.mark.skipif(not ENABLED, reason="plain Python has no native form")


class Pair(NamedTuple):
    factor: int
    shift: float


class Row(Columns):
    tokens: I8


class Whole(NamedTuple):
    rows: Any
    values: Any
    pair: Pair


@kernel
def _scaled(whole: Any, i: int) -> float:
    return float(whole.rows.tokens[i] * whole.pair.factor + whole.pair.shift + whole.values[1, i])


@entry
def _add(whole: Any, i: int, extra: Any) -> float:
    whole.rows.tokens[i] += extra[0]
    return _scaled(whole, i)


def _whole() -> Whole:
    records, view = allocate(Row, 3)
    records["tokens"] = [10, 20, 30]
    return Whole(view, np.arange(6.0).reshape(2, 3), Pair(2, 0.5))


def test_a_bound_argument_is_the_argument() -> None:
    """Same result, and the same memory behind it."""
    whole, extra = _whole(), np.array([7])
    bound = Bound(whole)
    call = _add.bound((), bound, (0, extra))
    assert call(bound.address, 1, extra) == _scaled(whole, 1) == 27 * 2 + 0.5 + 4.0
    assert _add(whole, 1, extra) == 34 * 2 + 0.5 + 4.0
    whole.values[1, 2] = 100.0
    assert call(bound.address, 2, extra) == 37 * 2 + 0.5 + 100.0


def test_code_is_shared_and_values_are_not() -> None:
    """What was compiled for one serves another of the same types."""
    first, second, extra = Bound(_whole()), Bound(_whole()._replace(pair=Pair(3, 0.0))), np.array([0])
    assert first.type == second.type
    call = _add.bound((), first, (0, extra))
    assert [call(bound.address, 0, extra) for bound in (first, second)] == [23.5, 33.0]


def test_another_layout_is_another_type() -> None:
    """Else code compiled for one would read the other as garbage."""
    _, view = allocate(Row, 3)
    assert Bound(_whole()).type != Bound(Whole(view, np.zeros(3), Pair(1, 0.0))).type


def test_other_numbers_are_written_in_place() -> None:
    whole, extra = _whole(), np.array([0])
    bound = Bound(whole)
    call, address = _add.bound((), bound, (0, extra)), bound.address
    bound.rewrite(whole._replace(pair=Pair(3, 0.0)))
    assert bound.address == address
    assert call(address, 0, extra) == 33.0
    with pytest.raises(TypeError, match="keeps its types"):
        bound.rewrite(whole._replace(values=np.zeros(3)))
