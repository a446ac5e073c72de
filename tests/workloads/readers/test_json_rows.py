from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tailrace.errors import UserError
from tailrace.workloads import canonical, load
from tailrace.workloads.readers import json_rows

Write = Callable[[str], Path]
GOOD = {"arrival_s": 1, "prompt_tokens": 10, "output_tokens": 2}


def lines(*objects: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in objects)


def test_lines_an_array_and_an_object_over_lines_are_one(file: Write) -> None:
    given = [GOOD, {**GOOD, "arrival_s": 2.5, "class": "gold"} | {"class": "gold"}]
    given[0] = {**GOOD, "class": "free"}
    digest = load(str(file(lines(*given)))).digest()
    for text in (
        json.dumps(given),
        json.dumps(given, indent=2),
        "\ufeff" + lines(*given),
        "\ufeff" + json.dumps(given),
        "\n \n" + lines(given[0]) + "\n\n" + lines(given[1]).strip(),
        lines(*given).replace("\n", "\r\n"),
    ):
        assert load(str(file(text))).digest() == digest
    assert len(load(str(file(json.dumps(GOOD, indent=2))))) == 1


def test_whole_numbers_written_as_floats_and_numbers_in_quotes_all_along(file: Write) -> None:
    workload = load(str(file(lines(GOOD, {**GOOD, "prompt_tokens": 1.0, "output_tokens": 2e1}))))
    assert workload.prompt_tokens.tolist() == [10, 1]
    assert workload.output_tokens.tolist() == [2, 20]
    quoted = {field: str(value) for field, value in GOOD.items()}
    assert load(str(file(lines(quoted, quoted)))).prompt_tokens.tolist() == [10, 10]


def test_names_may_be_numbers(file: Write) -> None:
    workload = load(str(file(lines({**GOOD, "tenant": 17, "session": 3}, {**GOOD, "tenant": 5, "session": None}))))
    assert workload.tenant_names == ("17", "5")
    assert workload.session.tolist() == [0, -1]


def test_fields_of_later_objects_count_and_others_are_named(file: Write) -> None:
    workload = load(str(file(lines({**GOOD, "note": {"deep": [1]}}, {**GOOD, "ttft_slo_s": 3}))))
    assert workload.description["ignored_columns"] == ["note"]
    assert workload.ttft_slo_s.tolist() == [float("inf"), 3]
    with pytest.raises(UserError, match="row 1: field priority: it is empty"):
        load(str(file(lines(GOOD, {**GOOD, "priority": 3}))))


def test_a_line_longer_than_a_block(file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_rows, "BLOCK_BYTES", 1 << 10)
    ids = {"prefix_blocks": list(range(500)), "block_tokens": 1}
    long = {**GOOD, "prompt_tokens": 500, **ids}
    workload = load(str(file(lines(*[long] * 5))))
    assert workload.prefix is not None
    assert workload.prefix.offsets.tolist() == [0, 500, 1000, 1500, 2000, 2500]


WHOLE = r"is outside \[1, 2147483648\]"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("prompt_tokens", "many", "'many' is not a number"),
        ("prompt_tokens", "7", "'7' is not a number: in quotes"),
        ("prompt_tokens", 1.5, "1.5 is not a whole number"),
        ("prompt_tokens", -3, f"-3 {WHOLE}"),
        ("prompt_tokens", 0, f"0 {WHOLE}"),
        ("prompt_tokens", 10**18, rf"1e\+18 {WHOLE}"),
        ("prompt_tokens", 10**40, r"1e\+40 is not a whole number"),
        ("prompt_tokens", None, "it is empty"),
        ("prompt_tokens", float("nan"), "nan is not a whole number"),
        ("prompt_tokens", True, "True is not a number"),
        ("prompt_tokens", {"n": 3}, "{'n': 3} is not a number"),
        ("prompt_tokens", [3], r"\[3\] is not a number"),
        ("arrival_s", -1, "-1 must be finite and 0 or more"),
        ("arrival_s", float("inf"), "inf must be finite"),
        ("arrival_s", "soon", "'soon' is not a number"),
        ("class", 5, "5 is not a name: not in quotes"),
        ("class", None, "it is empty"),
    ],
)
def test_mistakes_of_fields(file: Write, field: str, value: Any, message: str) -> None:
    good = {**GOOD, "class": "gold"}
    rows = [good, {**good, field: value}]
    for text, place in ((lines(good) + "\n" + lines(rows[1]), "row 3"), (json.dumps(rows), "item 2")):
        with pytest.raises(UserError, match=f"{place}: field {field}: {message}") as caught:
            canonical.read(file(text))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (lines(GOOD, GOOD)[:-20], "row 2: the JSON is cut off; download it again"),
        (lines(GOOD, GOOD)[:-2], "row 2: the JSON is cut off; download it again"),
        (json.dumps([GOOD, GOOD])[:-30], "row 1: the JSON is cut off"),
        (json.dumps([GOOD, GOOD])[:-1], "row 1: the JSON is cut off"),
        (lines(GOOD) + "oops\n", "row 2: is not JSON: Expecting value at 'oops'; correct it"),
        (lines(GOOD).strip() + lines(GOOD), "row 1: is not JSON: Extra data at"),
        (lines(GOOD).strip() + ",\n" + lines(GOOD), "row 1: is not JSON: Extra data at"),
        (lines(GOOD) + '{"arrival_s": 1, "arrival_s": 2}\n', "row 2: field arrival_s: an object names it twice"),
        ('[{"arrival_s": 1, "arrival_s": 2}]', "field arrival_s: an object names it twice"),
        (lines(GOOD, 5), "row 2: 5 is not an object of field: value"),
        (json.dumps([GOOD, "x"]), 'item 2: "x" is not an object'),
        ("[]", "has no rows"),
        ("[" * 100_000, "row 1: is nested too deep"),
        ('[{"arrival_s": ' + "9" * 5000 + "}]", "row 1: holds a number of thousands of digits"),
        (lines({"arrival": 1, "prompt_tokens": 1, "output_tokens": 1}), "row 1: field arrival_s: .*rename 'arrival'"),
        (lines({"arrival_s": 1, "prompt_tokens": 1}), "row 1: field output_tokens: no such column; the columns are"),
    ],
)
def test_mistakes_of_files(file: Write, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        canonical.read(file(text))
    assert "\n" not in str(caught.value)


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(
        lines({**GOOD, "class": "a"}).encode() + lines({**GOOD, "class": "b"}).encode().replace(b"b", b"\xff")
    )
    with pytest.raises(UserError, match="row 2: holds bytes that are not UTF-8; save the file as UTF-8"):
        load(str(path))


@pytest.mark.slow
def test_a_million_rows_take_seconds(file: Write) -> None:
    path = file(
        "".join(f'{{"arrival_s": {row}, "prompt_tokens": 9, "output_tokens": 2}}\n' for row in range(1_000_000))
    )
    start = time.process_time()  # of all threads: whoever else uses the machine does not count
    assert len(load(str(path))) == 1_000_000
    assert time.process_time() - start < 8
