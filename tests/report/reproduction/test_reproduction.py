"""The page and its figures as files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tailrace.errors import UserError
from tailrace.report.reproduction import figures, page, write

from .documents import document

VARIANTS: dict[str, dict[str, Any]] = {
    "full": {},
    "two profiles": {"profiles": ("paper", "all_history")},
    "three profiles": {"profiles": ("paper", "enforced", "all_history")},
    "a single seed": {"seeds": 1, "intervals": False},
    "quick": {"quick": True, "seeds": 3, "not_run": {"table2": "no trace was given; add --trace FILE"}},
    "no calibration": {"calibration": {}, "fit": {}, "claims": []},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_link_leads_to_a_written_picture(name: str, tmp_path: Path) -> None:
    place = tmp_path / "new" / "study.md"
    written = write(place, document(**VARIANTS[name]))
    text = place.read_text()
    links = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert written == [place, *(place.parent / "study" / f"{path.stem}.svg" for path in written[1:])]
    assert sorted(links) == sorted(f"study/{path.name}" for path in written[1:])
    for path in written[1:]:
        root = ElementTree.fromstring(path.read_text())
        assert root.tag.endswith("svg")
        assert "background:#ffffff" in root.attrib["style"]
    assert not re.search(r"\b(nan|None|inf|Value\(|True\b(?!-)|False)", text)
    assert "  \n" not in text
    assert text.count("<details>") == text.count("</details>") > 0


def test_every_figure_there_are_rows_for_is_drawn() -> None:
    names = [figure.name for figure in figures(document(("paper", "other")))]
    assert names == ["fig2", "phi", "fig3", "fig4", "fig5", "choices", "profiles"]
    assert [f.name for f in figures(document(quick=True, calibration={}))] == ["fig2", "fig3", "fig4", "fig5"]
    assert figures(document(rows=[], calibration={})) == []


def test_the_same_document_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (write(tmp_path / f / "qba.md", document()) for f in "ab")
    assert len(first) == 7
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_the_page_alone_links_to_a_folder_named_as_the_study(tmp_path: Path) -> None:
    write(tmp_path / "qba.md", document())
    assert page(document()) == (tmp_path / "qba.md").read_text()


def test_a_document_without_rows_is_still_a_page() -> None:
    text = page(document(rows=[], claims=[], fit={}, calibration={}, not_run={"fig2": "left out by --only"}))
    assert "## Setup" in text
    assert "- fig2: left out by --only." in text
    assert "## Performance comparison" not in text


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        write(tmp_path / "taken" / "qba.md", document())
    (tmp_path / "folder.md").mkdir()
    with pytest.raises(UserError, match=r"folder\.md: is a folder"):
        write(tmp_path / "folder.md", document())
    with pytest.raises(UserError, match=r"end the page's name with \.md"):
        write(tmp_path / "page", document())
    assert not (tmp_path / "page").exists()


def test_a_file_in_the_place_of_the_figures_leaves_no_page(tmp_path: Path) -> None:
    (tmp_path / "qba").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        write(tmp_path / "qba.md", document())
    assert not (tmp_path / "qba.md").exists()
