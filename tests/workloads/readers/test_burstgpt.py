from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.errors import UserError
from tailrace.workloads import load

HEADER = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"
ROWS = ["45,GPT-4,1087,230,1317,API log", "5,ChatGPT,472,18,490,Conversation log"]
Write = Callable[[str], Path]


def text(*rows: str, header: str = HEADER) -> str:
    return "\n".join([header, *rows])


def test_models_are_tenants_and_log_types_classes(file: Write) -> None:
    w = load(str(file(text(*ROWS))))
    assert w.arrival_s.tolist() == [0, 40]
    assert w.prompt_tokens.tolist() == [472, 1087]
    assert w.output_tokens.tolist() == [18, 230]
    assert [w.tenant_names[i] for i in w.tenant] == ["ChatGPT", "GPT-4"]
    assert [w.class_names[i] for i in w.class_id] == ["Conversation log", "API log"]
    assert (w.session == -1).all()
    about = w.description
    assert about["format"] == "burstgpt"
    assert about["units"] == {"Timestamp": "s", "Request tokens": "tokens", "Response tokens": "tokens"}
    assert about["ignored_columns"] == ["Total tokens"]
    assert about["reordered_rows"] == 1
    assert about["notes"][0] == "arrivals count from the earliest request, at 5 s in the file"


def test_failed_requests_are_dropped_with_their_names_and_counted(file: Write) -> None:
    w = load(str(file(text(*ROWS, "3,Bard,7,0,7,Test", "4,Bard,0,0,0,Test", "4,Bard,0,9,10,Test"))))
    assert w.tenant_names == ("GPT-4", "ChatGPT")
    assert w.class_names == ("API log", "Conversation log")
    assert w.arrival_s.tolist() == [0, 40]
    assert w.description["dropped_rows"] == 3
    assert w.description["dropped_by_reason"] == {"failed, no response tokens": 2, "no request tokens": 1}
    assert "rows whose total is not the sum of request and response: 1" in w.description["notes"]


def test_sessions_where_the_file_has_them(file: Write) -> None:
    header = HEADER.replace("Model", "Session ID,Elapsed time,Model")
    rows = ["5,x,1.5,A,1,2,3,c", "6,,2,A,1,2,3,c", "7,y,2,A,1,2,3,c", "8,x,2,A,1,2,3,c"]
    w = load(str(file(text(*rows, header=header))))
    assert w.session.tolist() == [0, -1, 1, 0]
    assert w.description["ignored_columns"] == ["Total tokens", "Elapsed time"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*ROWS, "x,A,1,2,3,c"], "row 4: field Timestamp: 'x' is not a number"),
        ([*ROWS, "-1,A,1,2,3,c"], "row 4: field Timestamp: '-1' must be finite and 0 or more"),
        ([*ROWS, "1700000000,A,1,2,3,c"], "row 4: field Timestamp: it is 53.9 years later than every request before"),
        ([*ROWS, "nan,A,1,2,3,c"], "row 4: field Timestamp: 'nan' must be finite"),
        ([*ROWS, "6,A,1.5,2,3,c"], "row 4: field Request tokens: '1.5' is not a whole number"),
        ([*ROWS, "6,,1,2,3,c"], "row 4: field Model: it is empty; give a name"),
        ([*ROWS, "6,A,1,2"], "row 4: field Total tokens: the row has 4 fields, the header 6"),
        (["6,A,1,0,1,c"], "field Response tokens: 0 in all 1 rows; a trace needs answered requests"),
    ],
)
def test_mistakes(file: Write, rows: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        load(str(file(text(*rows))))


def test_mistakes_of_the_header(file: Write) -> None:
    for header, message in {
        HEADER.replace("Request tokens", "Request token"): "field Request tokens: .*rename 'Request token' to it",
        HEADER.replace("Log Type", "Kind"): "field Log Type: no such column; the columns are",
        HEADER.replace(",", ";"): "separated by semicolons",
    }.items():
        with pytest.raises(UserError, match=message):
            load(str(file(text(*ROWS, header=header))))
