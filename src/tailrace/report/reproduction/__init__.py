"""A paper's study as a Markdown page with figures, from the document that the study makes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ... import files
from ...errors import UserError
from ..pictures import standalone
from . import proserve, qba, uniboost
from .panels import Figure
from .study import Study

__all__ = ["Figure", "check", "figures", "page", "write"]


_STUDIES: Final[Mapping[str, Any]] = {"proserve": proserve, "qba": qba, "uniboost": uniboost}
"""By the document's ``study``: what makes its figures and its page."""


def figures(document: Mapping[str, Any]) -> list[Figure]:
    """Every figure that ``document`` has rows for. The same document gives the same bytes.

    Raises UserError if matplotlib is not installed.
    """
    return list(_STUDIES[document["study"]].figures(Study(document)))


def page(document: Mapping[str, Any]) -> str:
    """The page as Markdown; its figures are linked in a folder named as the study. Raises as `figures`."""
    return str(_STUDIES[document["study"]].page(Study(document), figures(document), document["study"]))


def check(path: str | Path) -> Path:
    """``path``, if a page can be written there. Raises UserError before anything long is done."""
    target = Path(path)
    if not target.suffix:
        raise UserError(f"{target}: the figures go to a folder of that name; end the page's name with .md")
    files.check_place(target)
    return target


def write(path: str | Path, document: Mapping[str, Any]) -> list[Path]:
    """Write the page to ``path`` and its figures (SVG, dark on white) to a folder beside it, named as its stem.

    Figures come first, so a page never links to what is not there. Returns the page and
    the figures. Raises UserError if a file cannot be written, or if matplotlib is not installed.
    """
    target = check(path)
    drawn = figures(document)
    folder = target.with_suffix("")
    written = [files.write_text(folder / f"{figure.name}.svg", standalone(figure.svg)) for figure in drawn]
    text = _STUDIES[document["study"]].page(Study(document), drawn, folder.name)
    return [files.write_text(target, text), *written]
