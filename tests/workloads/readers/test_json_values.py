from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailrace.errors import UserError
from tailrace.workloads.readers import json_values
from tailrace.workloads.readers.source import Source

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def read(path: Path, text: str) -> list[Any]:
    path.write_text(text, encoding="utf-8")
    return [value for _, value in json_values.values(Source(path))]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(JSON, max_size=6), st.sampled_from([1, 2, 3, 7, 50]), st.sampled_from([None, 1]))
def test_an_array_in_chunks_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elements: list[Any], chunk: int, indent: int | None
) -> None:
    monkeypatch.setattr(json_values, "CHUNK", chunk)
    for ascii_only in (True, False):
        try:
            text = json.dumps(elements, indent=indent, ensure_ascii=ascii_only)
            assert read(tmp_path / "x", f" {text}\n ") == elements
        except UnicodeEncodeError:
            assert not ascii_only  # half of a surrogate pair is no UTF-8


@pytest.mark.parametrize("chunk", [1, 4, 1 << 18])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"a": 1},\n {"a": tru}]', "row 2: is not JSON: Expecting value at 'tru}]'"),
        ('[{"a": 1}\n\n {"a": 2}]', r"row 3: is not JSON: Expecting '\]' at '{"),
        ('[{"a": 1},\n]', r"row 2: is not JSON: .* at '\]'"),
        ('[{"a": 1}]\n\nmore', "row 3: is not JSON: Extra data at 'more'"),
        ('[{"a": 1},\n', "row 2: the JSON is cut off"),
        ('[{"a": 1', "row 1: the JSON is cut off"),
        ('[{"a": "x', "row 1: the JSON is cut off"),
        ("[1, 2", "row 1: the JSON is cut off"),
        ("[", "row 1: the JSON is cut off"),
        ('[{"a": 1},\n{"b": 1, "b": 2}]', "row 2: field b: an object names it twice"),
    ],
)
def test_mistakes_in_an_array(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, text: str, message: str
) -> None:
    monkeypatch.setattr(json_values, "CHUNK", chunk)
    with pytest.raises(UserError, match=message):
        read(tmp_path / "x", text)


def test_bytes_that_are_not_utf8_in_an_array(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b'[{"a": 1},\n\n{"a": "\xff"}]')
    with pytest.raises(UserError, match="row 3: holds bytes that are not UTF-8; save the file as UTF-8"):
        list(json_values.values(Source(tmp_path / "x")))


def test_the_first_element_is_there_before_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_text('[{"a": 1}, ' + " " * (4 * json_values.CHUNK) + "oops")
    found = json_values.values(Source(tmp_path / "x"))
    assert next(found) == ("item 1", {"a": 1})
    with pytest.raises(UserError, match="Expecting value at 'oops'"):
        next(found)
