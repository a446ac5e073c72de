"""The example of docs/queueing.md gives what it says, and the page names all there is."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from tailrace import queueing

TEXT = (Path(__file__).parents[2] / "docs" / "queueing.md").read_text(encoding="utf-8")


def test_the_example_gives_what_it_says() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    test = doctest.DocTestParser().get_doctest(code, {}, "docs/queueing.md", None, None)
    said: list[str] = []
    failed, tried = doctest.DocTestRunner().run(test, out=said.append)
    assert tried > 5
    assert failed == 0, "".join(said)


def test_everything_public_is_named() -> None:
    inner = {"Moments", "TwoClass", "LeastSquares", "erlang_b"}  # what the named ones take and give
    assert [name for name in queueing.__all__ if name not in inner and f"`{name}" not in TEXT] == []
