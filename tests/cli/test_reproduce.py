"""``tailrace reproduce``: what it prints, and how it refuses."""

from __future__ import annotations

import json
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
