"""Which experiments a text names."""

from __future__ import annotations

import pytest

from tailrace.errors import UserError
from tailrace.studies.reproduce.experiments import choose

pytestmark = pytest.mark.plain

KNOWN = ("fig2", "fig3", "table2")


def test_they_come_in_the_papers_order() -> None:
    assert choose("table2, fig2", KNOWN) == ("fig2", "table2")
    assert choose("", KNOWN) == KNOWN


@pytest.mark.parametrize(
    ("text", "says"), [("fig1", "unknown experiment 'fig1' .did you mean"), (" ,", "name some of fig2, fig3, table2")]
)
def test_what_names_none_is_refused(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        choose(text, KNOWN)
