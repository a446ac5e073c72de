"""How a page is put together."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.report.reproduction.layout import joined, not_run, section
from tailrace.report.reproduction.study import Study

pytestmark = pytest.mark.plain


def _study(**document: Any) -> Study:
    return Study({"settings": {"profiles": ["paper"]}, "rows": [], **document})


def test_empty_sections_are_left_out() -> None:
    assert joined(["# Title", "", section("Empty", "", "a note"), section("Full", "a table", "", "a note")]) == (
        "# Title\n\n## Full\n\na table\n\na note\n"
    )


def test_what_was_left_out_is_listed_with_its_reason() -> None:
    assert not_run(_study(not_run={"fig3": "left out by --only"})) == "## Not run\n\n- fig3: left out by --only."
    assert not_run(_study(not_run={})) == ""
