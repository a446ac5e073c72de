from __future__ import annotations

import pytest

from tailrace import spec
from tailrace.errors import UserError


def test_name_alone_and_with_values() -> None:
    assert spec.parse("qba") == ("qba", {})
    assert spec.parse(" qba: rate_rps = 2 , seed=1, ") == ("qba", {"rate_rps": "2", "seed": "1"})


def test_write_is_the_inverse() -> None:
    assert spec.write("oracle", {}) == "oracle"
    assert spec.write("label", {"eps": 0.0, "q": 0.1, "n": 3}) == "label:eps=0,q=0.1,n=3"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("qba:rate", "'rate' is not key=value"),
        ("qba:=2", "'=2' is not key=value"),
        ("qba:rate=", "'rate=' is not key=value"),
        ("qba:seed=1,seed=2", "'seed' is given twice"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        spec.parse(text)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("fcfs", ["fcfs"]),
        ("fcfs,qba:k=5,window=9,srpt", ["fcfs", "qba:k=5,window=9", "srpt"]),
        ("qba,k=5,fcfs", ["qba:k=5", "fcfs"]),
        ("a.b:C,k=1,a.b:D:k=2", ["a.b:C:k=1", "a.b:D:k=2"]),
        (" fcfs , , psf ", ["fcfs", "psf"]),
    ],
)
def test_a_list_keeps_parameters_with_their_name(text: str, items: list[str]) -> None:
    assert spec.split_list(text) == items


def test_a_list_cannot_begin_with_a_parameter_or_be_empty() -> None:
    with pytest.raises(UserError, match="comes before any name"):
        spec.split_list("k=5,fcfs")
    with pytest.raises(UserError, match="list is empty"):
        spec.split_list(" , ")
