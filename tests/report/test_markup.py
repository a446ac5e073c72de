"""Markdown parts."""

from __future__ import annotations

import pytest

from tailrace.report.markup import code, details, escape, image, paragraph, table


def test_tables_line_up_and_say_how_columns_are_aligned() -> None:
    text = table(["policy", "wait"], [["a", "1.25"], ["longer name", "10"]])
    assert text.splitlines() == [
        "| policy      | wait |",
        "| :---------- | ---: |",
        "| a           | 1.25 |",
        "| longer name |   10 |",
    ]


def test_a_last_column_of_text_keeps_its_own_length() -> None:
    lines = table(["a", "why"], [["1", "short"], ["2", "a very long reason"]], left=2).splitlines()
    assert lines[2] == "| 1   | short |"
    assert lines[1] == "| :-- | :-- |"


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="cell for each heading"):
        table(["a", "b"], [["1"]])


def test_hostile_text_stays_text() -> None:
    assert escape("a|b\n<i>*x*_y_`z`[l]") == r"a\|b &lt;i&gt;\*x\*\_y\_\`z\`\[l\]"
    assert code("a|`b`\n c") == r"`a\|'b' c`"
    assert code("") == ""
    assert image("two [words]", "f/x.svg", "a *b*").splitlines()[0] == "![two (words)](f/x.svg)"


def test_details_leave_blank_lines_and_paragraphs_skip_what_is_empty() -> None:
    assert details("more", "| a |").splitlines() == [
        "<details>",
        "<summary>more</summary>",
        "",
        "| a |",
        "",
        "</details>",
    ]
    assert paragraph("One.", "", "Two.") == "One. Two."
