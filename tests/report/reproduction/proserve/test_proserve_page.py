"""ProServe's page as its reader sees it, from made-up worlds."""

from __future__ import annotations

import re

import pytest

from tailrace.report import reproduction
from tailrace.studies.reproduce.proserve.plan import EXPERIMENTS, Scope

from ....studies.reproduce.proserve.worlds import SEEDS, as_in_the_notes, document, flat

pytestmark = pytest.mark.plain

SCOPE = Scope(EXPERIMENTS, SEEDS, False)
SECTIONS = [
    "What holds",
    "qwen2-7b",
    "qwen3-32b",
    "Classes",
    "EDF, SJF and FCFS",
    "Token budget",
    "The sliding boundary",
]
SECTIONS += [
    "Ablations",
    "Sensitivity",
    "Priority weights",
    "Starvation",
    "Block management",
    "Tighter and looser SLOs",
]
SECTIONS += ["Noise", "Shares of weighted VTC", "Setup", "Claims"]


def test_the_page_has_every_section_and_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    made = document(as_in_the_notes, SCOPE, monkeypatch)
    text = reproduction.page(made)
    headings = re.findall(r"^## (.*)$", text, re.M)
    assert [any(h.startswith(wanted) for h in headings) for wanted in SECTIONS] == [True] * len(SECTIONS)
    names = [figure.name for figure in reproduction.figures(made)]
    assert sorted(names) == sorted(re.findall(r"\]\(proserve/([\w-]+)\.svg\)", text))
    assert len(names) == 11


def test_it_begins_with_what_is_compared_and_the_papers_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    text = reproduction.page(document(as_in_the_notes, SCOPE, monkeypatch))
    first = text.partition("## qwen2-7b")[0]
    assert first.index("SlideBatching, fills each step") < first.index("## What holds")
    (gain,) = (line for line in first.splitlines() if line.startswith("| token gain (TDG_Ratio)"))
    assert "up to +35 %" in gain
    assert "up to +80 %" in gain
    assert "at most 50 µs" in first
    rows = [line for line in first.splitlines() if line.startswith("| SlideBatching, ours")]
    assert len(rows) == 2
    assert all("90.0 [" in row for row in rows)


def test_what_does_not_hold_is_said_first(monkeypatch: pytest.MonkeyPatch) -> None:
    first = reproduction.page(document(flat, SCOPE, monkeypatch)).partition("## qwen2-7b")[0]
    assert first.count("**does not hold**") > 5


def test_a_part_of_the_study_makes_a_part_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    text = reproduction.page(document(as_in_the_notes, Scope(("fig8", "vtc"), SEEDS, False), monkeypatch))
    assert "## Token budget" in text
    assert "## Ablations" not in text
    assert "- fig12: left out by --only." in text
