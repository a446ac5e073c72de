"""``tailrace reproduce``: what it prints, and how it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tailrace.studies.reproduce import points
from tailrace.studies.reproduce.qba.plan import Scope


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Two settings of each sweep, numbers kept apart."""
    folder = tmp_path_factory.mktemp("kept")
    monkeypatch.setattr(points, "folder", lambda: folder)
    monkeypatch.setattr(Scope, "errors", property(lambda self: (0.0, 0.4)))


def test_numbers_beside_the_papers_and_claims(tailrace: Any) -> None:
    call = ("reproduce", "qba", "--only", "fig5", "--seeds", "2", "--quick", "--jobs", "1")
    shown = tailrace(*call)
    assert shown.code == 0
    out = " ".join(shown.out.split())
    assert "the 15 numbers printed for 32 requests/s: mean absolute log ratio" in out
    assert "not run: fig2, left out by --only" in out
    assert "17.3" in out  # PSF's true-long P99 at 40 % errors, as printed
    document = json.loads(tailrace(*call, "--json").out)
    assert document["study"] == "qba"
    assert document["command"].startswith("tailrace reproduce qba --only fig5")
    assert {claim["holds"] for claim in document["claims"] if claim["experiment"] == "fig4"} == {None}
    wanted = {"profile", "experiment", "policy", "metric", "at", "paper", "measured", "ci", "seeds"}
    assert all(wanted <= row.keys() <= wanted | {"by_seed"} for row in document["rows"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--profile", "papr"], "unknown profile 'papr' (did you mean 'paper'?)"),
        (["--only", "fig9"], "unknown experiment 'fig9'"),
        (["--profile", ","], "no profile in ','"),
        (["--only", ","], "no experiment in ','"),
        (["--azure", "nowhere.csv"], "nowhere.csv"),
        (["--seeds", "1"], "--seeds"),
        (["--page", "qba"], "end the page's name with .md"),
    ],
)
def test_mistakes_cost_one_line(refused: Any, arguments: list[str], says: str) -> None:
    refused(["reproduce", "qba", "--quick", *arguments], says)


def test_uniboosts_study_prints_claims_and_writes_a_page(tailrace: Any, tmp_path: Path) -> None:
    page = tmp_path / "uniboost.md"
    call = ("reproduce", "uniboost", "--only", "staircase,lengths", "--quick", "--jobs", "1")
    shown = tailrace(*call, "--page", str(page))
    assert shown.code == 0
    assert "not run: main, left out by --only" in " ".join(shown.out.split())
    assert (tmp_path / "uniboost" / "staircase.svg").exists()
    assert "## Lengths" in page.read_text()
    document = json.loads(tailrace(*call, "--json").out)
    assert (document["study"], document["settings"]["only"]) == ("uniboost", ["lengths", "staircase"])
    assert {claim["holds"] for claim in document["claims"]} == {None}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--only", "mian"], "unknown experiment 'mian' (did you mean 'main'?)"),
        (["--only", ","], "no experiment in ','"),
        (["--seeds", "1"], "--seeds"),
        (["--page", "uniboost"], "end the page's name with .md"),
    ],
)
def test_mistakes_in_uniboosts_study_cost_one_line(refused: Any, arguments: list[str], says: str) -> None:
    refused(["reproduce", "uniboost", "--quick", *arguments], says)


def test_proserves_study_prints_claims_and_writes_a_page(tailrace: Any, tmp_path: Path) -> None:
    page = tmp_path / "proserve.md"
    call = ("reproduce", "proserve", "--only", "vtc", "--quick", "--jobs", "1")
    shown = tailrace(*call, "--page", str(page))
    assert shown.code == 0
    assert "not run: fig12, left out by --only" in " ".join(shown.out.split())
    assert "## Setup" in page.read_text()
    document = json.loads(tailrace(*call, "--json").out)
    assert (document["study"], document["settings"]["only"]) == ("proserve", ["vtc"])
    assert {row["metric"] for row in document["rows"]} == {"capacity_rps", "ttft_slo_s", "token_budget"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--only", "fg12"], "unknown experiment 'fg12' (did you mean 'fig12'?)"),
        (["--azure", "nowhere.csv"], "nowhere.csv"),
        (["--page", "proserve"], "end the page's name with .md"),
    ],
)
def test_mistakes_in_proserves_study_cost_one_line(refused: Any, arguments: list[str], says: str) -> None:
    refused(["reproduce", "proserve", "--quick", *arguments], says)
