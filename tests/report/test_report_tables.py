from __future__ import annotations

import io
import subprocess
import sys
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from tailrace.report import comparison, markdown, note, single
from tailrace.report.values import (
    COMPARISON,
    Cell,
    difference_cell,
    duration,
    grid,
    mark_best,
    number,
    plain,
    time_unit,
)

from .report_documents import document, metrics, result


def printed(table: Table, width: int = 140) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(table)
    return out.getvalue()


def best_of(title: str, *results: dict[str, object]) -> list[bool]:
    column = next(c for c in COMPARISON if c.title == title)
    return [row[0].best for row in grid(results, [column]).rows]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (0.0, "0"),
        (0.0022719, "0.0023"),
        (1.18449, "1.18"),
        (12.0, "12.0"),
        (203.57, "204"),
        (20984.3, "20,984"),
        (1e-9, "<0.0001"),
        (-0.7531, "-0.753"),
    ],
)
def test_number(value: float | None, text: str) -> None:
    assert number(value) == text


def test_plain() -> None:
    assert plain({"k": 5.0, "on": True, "of": None, "list": [1, 2]}) == "k=5, on=true, of=–, list=1, 2"
    assert plain(1047527) == "1,047,527"
    assert plain({}) == "–"


def test_unit_is_milliseconds_when_all_are_short_or_most_very_short() -> None:
    assert time_unit([0.2, 0.9, None])[0] == "ms"
    assert time_unit([0.2, 1.1])[0] == "s"
    assert time_unit([0.0005, 0.0006, 0.004, 92.0])[0] == "ms"
    assert time_unit([0.0005, 0.0006, 0.004, 1512.0])[0] == "s"
    assert time_unit([None, 0.0])[0] == "s"
    assert duration(0.0123) == "12.3 ms"
    assert duration(None) == "–"


def test_lowest_time_and_highest_rate_are_best() -> None:
    a = result("a", 1.0, throughput={"output_tokens_per_s": 10.0})
    b = result("b", 2.0, throughput={"output_tokens_per_s": 20.0})
    assert best_of("wait P99", a, b) == [True, False]
    assert best_of("output tokens", a, b) == [False, True]
    assert best_of("load state", a, b) == [False, False]


def test_overlapping_intervals_tie_and_separate_ones_do_not() -> None:
    overlapping = [result("a", 1.0, half=0.3), result("b", 1.4, half=0.3), result("c", 3.0, half=0.1)]
    assert best_of("wait P99", *overlapping) == [True, True, False]
    assert best_of("wait P99", result("a", 1.0, half=0.1), result("b", 1.4, half=0.1)) == [True, False]


def test_pairs_by_seed_decide_where_they_are_known() -> None:
    def seeds(label: str, *values: float) -> dict[str, Any]:
        wait = {"p99": sum(values) / len(values), "ci": {"p99": [0.0, 99.0]}, "by_seed": {"p99": list(values)}}
        return result(label, 1.0, metrics={**metrics(1.0), "wait_s": wait})

    assert best_of("wait P99", seeds("a", 1.0, 9.0), seeds("b", 1.2, 9.21), seeds("c", 9.0, 1.3)) == [True, False, True]


def test_equal_as_shown_ties_and_nothing_is_marked_when_all_are_equal() -> None:
    a, b, c = result("a", 1.0), result("b", 1.00001), result("c", 2.0)
    assert best_of("wait P99", a, b, c) == [True, True, False]
    assert best_of("wait P99", a, b) == [False, False]
    assert best_of("wait P99", a) == [False]


def test_gaps_within_a_histogram_bin_tie() -> None:
    assert best_of("TBT P99", result("a", 1.0), result("b", 1.007), result("c", 2.0)) == [True, True, False]
    assert best_of("E2E P99", result("a", 1.0), result("b", 1.007), result("c", 2.0)) == [True, False, False]


def test_none_is_never_best() -> None:
    assert best_of("wait P99", result("a", None), result("b", 1.0), result("c", 2.0)) == [False, True, False]
    assert [c.best for c in mark_best([Cell("–", None), Cell("–", None)], -1)] == [False, False]


def test_fewer_completed_is_not_best() -> None:
    some = result("a", 1.0, counts={"submitted": 10, "completed": 9, "preemptions": 0})
    every = result("b", 1.0, counts={"submitted": 10, "completed": 10, "preemptions": 0})
    assert best_of("completed / submitted", some, every) == [False, True]


@pytest.mark.parametrize("width", [80, 140])
def test_comparison_shows_every_number(width: int) -> None:
    text = printed(comparison(document(result("fcfs", 1.0), result("qba k=10", 2.0, load_state="OVERLOADED"))), width)
    assert "OVERLOADED" in text.replace("\n", "") or width == 80
    for shown in ("fcfs", "k=10", "5.00", "10.0", "21,000", "(ms)", "predictions oracle"):
        assert shown in text
    assert max(map(len, text.splitlines())) <= width


def test_comparison_takes_labels_as_they_are() -> None:
    assert "[red]a[/nope]" in printed(comparison(document(result("[red]a[/nope]", 1.0))))


def test_single_has_metrics_and_true_classes() -> None:
    text = printed(single(document(result("fcfs", 1.0))))
    for shown in ("all requests, 3,000 / 3,000", "true short, 1,500", "true long", "TPOT (ms)", "E2E (s)", "P99.9"):
        assert shown in text
    assert "bold" not in text


def test_single_says_how_many_met_their_objectives() -> None:
    text = printed(single(document(result("fcfs", 1.0, slo={"attainment": 0.5, "goodput_rps": 2.5}))))
    assert [line.split() for line in text.splitlines() if "SLOs" in line or "goodput" in line] == [
        ["SLOs", "met", "(%)", "50.0"],
        ["goodput", "(/s)", "2.50"],
    ]


def test_token_gain_is_shown_where_there_is_any() -> None:
    slo, gain = {"attainment": 0.5, "goodput_rps": 2.5}, {"tdg_ratio": 0.875}
    assert "87.5" in printed(single(document(result("fcfs", 1.0, slo=slo, gain=gain))))
    assert "87.5" in markdown(document(result("a", 1.0, gain=gain)))
    columns = comparison(document(result("a", 1.0, slo=slo), result("b", 1.0, slo=slo))).columns
    assert not any("gain" in str(column.header) for column in columns)
    columns = comparison(document(result("a", 1.0, slo=slo, gain=gain), result("b", 1.0, slo=slo))).columns
    assert any("gain" in str(column.header) for column in columns)


def test_tables_of_runs_in_which_nothing_happened() -> None:
    empty = result("a", None, throughput={"output_tokens_per_s": None}, by_true_class={})
    for table in (comparison(document(empty, result("b", 1.0))), single(document(empty))):
        assert "–" in printed(table)
    assert "–" in markdown(document(empty))


def test_markdown_is_a_table_with_the_best_in_bold() -> None:
    lines = markdown(document(result("a|b<i>", 1.0), result("c", 2.0))).splitlines()
    widths = {line.replace("\\|", "").count("|") for line in lines[:4]}
    assert widths == {len(COMPARISON) + 2}
    assert lines[2].startswith("| a\\|b&lt;i&gt; | STABLE |")
    assert "**5.00**" in lines[2]
    assert "**" not in lines[3]
    assert lines[5].startswith("predictions oracle · engine qba, 128 tokens a step, no cap")


def test_note_names_each_prediction_setting_and_the_seeds() -> None:
    mixed = document(result("a", 1.0), result("b", 1.0, predictions="none"), seeds=3)
    assert note(mixed).startswith("predictions oracle; none · ")
    assert "seeds 0 to 2 (means)" in note(mixed)
    assert "\n" not in note(mixed)
    assert "seeds 4, 9 (means)" in note({**mixed, "seeds": [4, 9]})


def test_importing_the_package_reads_no_drawing_library() -> None:
    code = (
        "import sys, tailrace.report\n"
        "print([m for m in ('matplotlib', 'jinja2', 'rich', 'numba') if m in sys.modules])\n"
        "import tailrace.report.tables\n"
        "print([m for m in ('matplotlib', 'jinja2', 'numba') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split("\n")[:2] == ["[]", "[]"]


def test_metrics_helper_matches_the_document() -> None:
    assert metrics(1.0)["wait_s"]["p99"] == 5.0


def test_a_difference_is_marked_only_where_it_is_sure() -> None:
    def marks(ends: list[float] | None, better: int) -> tuple[bool, bool]:
        cell = difference_cell({"difference": 5.0, "ci": ends}, better, 1.0)
        return cell.best, cell.worse

    assert marks([4.0, 6.0], -1) == (False, True)
    assert marks([4.0, 6.0], 1) == (True, False)
    assert marks([-1.0, 6.0], -1) == (False, False)
    assert marks(None, -1) == (False, False)
