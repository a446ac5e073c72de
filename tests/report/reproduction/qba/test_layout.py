"""The page as its reader sees it."""

from __future__ import annotations

import functools
import re
from typing import Any

from tailrace.report.reproduction import page
from tailrace.report.values import number, plain

from ..documents import PRINTED, document

SECTIONS = [
    "Setup",
    "Performance comparison",
    "The queueing model",
    "Hyperparameters",
    "Prediction errors",
    "Production trace",
    "What each unstated choice does",
    "The printed numbers",
    "Claims",
]


@functools.cache
def usual(*profiles: str) -> str:
    """The page of a full document."""
    return page(document(profiles or ("paper",)))


def headings(text: str) -> list[str]:
    return re.findall(r"^## (.*)$", text, re.MULTILINE)


def cells(text: str) -> list[list[str]]:
    return [[c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]


def first(text: str) -> str:
    return text.split("## Setup")[0]


def test_sections_are_the_papers_in_their_order() -> None:
    assert headings(usual()) == SECTIONS
    quick = page(document(quick=True, not_run={"table2": "no trace"}))
    gone = {"Production trace", "What each unstated choice does"}
    assert headings(quick) == [*(s for s in SECTIONS if s not in gone), "Not run"]
    assert "This is a quick run" in quick
    assert "- table2: no trace." in quick


def test_the_first_lines_say_what_was_run_and_how_near_it_comes() -> None:
    text = first(usual())
    assert "# Quota-Based Aging for LLM Serving, reproduced" in text
    assert "[arXiv 2610.17795](https://arxiv.org/abs/2610.17795)" in text
    assert "Poisson arrivals at 26 to 40 req/s and at 32 req/s in the other sweeps, 5,000 requests a run" in text
    assert "; windows of a production trace, on the engine" in text
    assert "`qba:kv_hard_limit=false`" in text
    assert "means over 100 seeds" in text
    assert "```sh\ntailrace reproduce qba --seeds 100\n```" in text
    assert "0.050 [0.045, 0.100]: typically a factor of 1.05 apart" in text
    assert "9 of 15 are within 10 %" in text
    assert "farthest: QBA's true-short P99 wait at ε_SL = 0.1 (3.85 s against 7.59 s)" in text
    assert "`paper` bears out 1, contradicts 2 and leaves 1 not tested" in text


def test_what_was_left_out_is_not_said_to_have_been_run() -> None:
    def only(*experiments: str) -> str:
        made = document()
        return first(page({**made, "rows": [r for r in made["rows"] if r["experiment"] in experiments]}))

    assert "Poisson" not in only("table2")
    assert "windows of a production trace" in only("table2")
    assert "Poisson arrivals at 32 req/s, 5,000 requests a run, on the engine" in only("fig4")
    assert "req/s in the other sweeps" not in only("fig2")


def test_a_single_seed_promises_no_intervals() -> None:
    text = page(
        document(seeds=1, intervals=False, fit={"paper": {"values": 15, "mean_abs_log_ratio": 0.2, "ci": None}})
    )
    assert "a single seed, so there are no intervals" in first(text)
    assert "0.200: typically a factor of 1.22 apart" in text
    assert not re.search(r"\d \[\d", text)


def test_every_published_number_stands_beside_its_ratio() -> None:
    made = document(("paper", "all_history"))
    found = cells(usual("paper", "all_history"))
    printed = [r for r in made["rows"] if r["paper"] is not None]
    assert len(printed) == 2 * (sum(v is not None for values in PRINTED.values() for v in values) + 2 * (4 * 6 + 1))
    for record in printed:
        if record["metric"] == "arrival_scv":
            continue
        shown = (plain(record["paper"]), number(record["measured"] / record["paper"]))
        assert any(set(shown) <= set(row) for row in found), record


def test_two_profiles_are_side_by_side_with_their_scores() -> None:
    text = usual("paper", "all_history")
    assert "The other profiles' scores: `all_history` 0.090." in first(text)
    assert "## The profiles side by side" in text
    rows = cells(text.split("## The profiles side by side")[1].split("## Claims")[0])
    assert rows[0] == ["policy", "metric", "at", "paper (s)", "`paper` (s)", "ratio", "`all_history` (s)", "ratio"]
    assert len(rows) == 1 + 1 + 15 + 1
    assert rows[-1][:2] == ["all", "mean abs log ratio"]
    setup = cells(text.split("## Setup")[1].split("## Performance")[0])
    aging = next(row for row in setup if row[0] == "aging")
    assert aging[1:3] == ["`window=200`", "`window=0`"]


def test_tables_have_as_many_cells_as_headings() -> None:
    blocks: list[list[list[str]]] = [[]]
    for line in usual("paper", "all_history").splitlines():
        if line.startswith("| "):
            blocks[-1].append(re.split(r"(?<!\\)\|", line))
        elif blocks[-1]:
            blocks.append([])
    assert sum(map(bool, blocks)) > 15
    for block in blocks:
        assert len({len(row) for row in block}) <= 1


def test_what_people_wrote_cannot_break_the_page() -> None:
    made: dict[str, Any] = document()
    made["claims"][0]["why"] = "a | b\n<script>"
    made["not_run"] = {"x": "<b>why</b>"}
    made["paper"] = {"title": "A *star*", "source": "a book"}
    text = page(made)
    assert "<script>" not in text
    assert "<b>" not in text
    assert r"# A \*star\*, reproduced" in text
    assert "The experiments of a book, run again" in text


def test_the_score_at_the_expected_load_is_beside_the_plain_one() -> None:
    made = document()
    assert "moved to the expected gap" not in page(made)
    made["fit"]["paper"]["adjusted"] = {"mean_abs_log_ratio": 0.0437, "ci": [0.041, 0.052]}
    assert "they are 0.044 [0.041, 0.052] from the paper's." in page(made)
