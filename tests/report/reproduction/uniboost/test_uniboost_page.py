"""UniBoost's page as its reader sees it, from made-up worlds."""

from __future__ import annotations

import re

import pytest

from tailrace.report import reproduction
from tailrace.studies.reproduce.uniboost.plan import EXPERIMENTS, Scope

from ....studies.reproduce.uniboost.worlds import as_in_the_article, document, flat

pytestmark = pytest.mark.plain

SCOPE = Scope(EXPERIMENTS, 12, False)
SECTIONS = ["Under which rule the headline holds", "Setup", "Two schedules", "Main results", "Against load", "Bursts"]
SECTIONS += ["Models", "Failure modes", "Ablation", "SLO attainment", "Starvation", "Memory", "γ under bursts"]
SECTIONS += ["What each setting does", "Predictions with errors", "What policies can do", "Claims"]


def test_the_page_has_every_section_and_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    made = document(as_in_the_article, SCOPE, monkeypatch)
    text = reproduction.page(made)
    headings = re.findall(r"^## (.*)$", text, re.M)
    assert [any(h.startswith(wanted) for h in headings) for wanted in SECTIONS] == [True] * len(SECTIONS)
    names = [figure.name for figure in reproduction.figures(made)]
    assert sorted(names) == sorted(re.findall(r"\]\(uniboost/(\w+)\.svg\)", text))
    assert len(names) == 9
    assert reproduction.page(made) == text


def test_it_says_first_under_which_rule_the_headline_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    text = reproduction.page(document(as_in_the_article, SCOPE, monkeypatch))
    first = text.partition("## Setup")[0]
    assert "headline hold against SRPT, decodes stay, SRPT, swap and SRPT, recompute." in first
    assert first.count("| holds") == 24
    text = reproduction.page(document(flat, SCOPE, monkeypatch))
    assert "Not all parts of the article's headline hold against any of the three" in text.partition("## Setup")[0]


def test_gains_stand_beside_the_articles(monkeypatch: pytest.MonkeyPatch) -> None:
    text = reproduction.page(document(as_in_the_article, SCOPE, monkeypatch))
    table = text.partition("Against SRPT, decodes stay:")[2].partition("Against SRPT, swap")[0]
    (ours,) = (line for line in table.splitlines() if line.startswith("| UniBoost, low γ"))
    assert "−19.0" in ours
    assert "+95.0" in ours
    (theirs,) = (line for line in table.splitlines() if line.startswith("| *the article's UniBoost*"))
    assert all(number in theirs for number in ("+35.1", "+97.4", "−19.1", "−25.3"))


def test_a_part_of_the_study_makes_a_part_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    only = Scope(("toys", "staircase"), 12, False)
    text = reproduction.page(document(as_in_the_article, only, monkeypatch))
    assert "## Two schedules" in text
    assert "## Main results" not in text
    assert "- main: left out by --only." in text
