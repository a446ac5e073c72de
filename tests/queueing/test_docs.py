"""The examples of docs/queueing.md give what they say, and the page names all there is."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from tailrace import queueing

TEXT = (Path(__file__).parents[2] / "docs" / "queueing.md").read_text(encoding="utf-8")


def test_the_examples_give_what_they_say() -> None:
    code = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    assert len(code) == 2
    test = doctest.DocTestParser().get_doctest("\n".join(code), {}, "docs/queueing.md", None, None)
    said: list[str] = []
    failed, tried = doctest.DocTestRunner().run(test, out=said.append)
    assert tried > 10
    assert failed == 0, "".join(said)


def test_everything_public_is_named() -> None:
    inner = {"Moments", "TwoClass", "LeastSquares", "erlang_b"}  # what the named ones take and give
    assert [name for name in queueing.__all__ if name not in inner and f"`{name}" not in TEXT] == []
