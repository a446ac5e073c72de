"""Figures as files."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tailrace.errors import UserError
from tailrace.report import write_figures

from .report_documents import document, result, run


def test_every_figure_twice_and_always_the_same_bytes(tmp_path: Path) -> None:
    given = document(result("fcfs", 1.0), result("qba", 2.0)), [("fcfs", run()), ("qba", run(scale=2.0))]
    paths = write_figures(tmp_path / "new" / "a", *given)
    assert {path.stem for path in paths} > {"e2e", "ttft-cdf", "tpot", "wait-cdf", "classes", "timeline"}
    assert len({path.name for path in paths}) == len(paths) == 20
    for path in paths:
        if path.suffix == ".svg":
            root = ElementTree.fromstring(path.read_text())
            assert "background:#ffffff" in root.attrib["style"]
        else:
            assert path.read_bytes().startswith(b"\x89PNG\r\n")
    again = write_figures(tmp_path / "b", *given)
    assert [p.read_bytes() for p in paths] == [p.read_bytes() for p in again]


def test_a_file_in_the_folders_place_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        write_figures(tmp_path / "taken", document(result("fcfs", 1.0)), [("fcfs", run())])
