"""Drawings as files that stand alone: PNG at twice the size on a page, or SVG, dark on white."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from ..errors import UserError
from ..files import write_atomically
from .svg import PIXELS

__all__ = ["GROUND", "SUFFIXES", "check_suffix", "save", "write"]

SUFFIXES: Final = (".png", ".svg")
GROUND: Final = "#ffffff"
SCALE: Final = 2
"""Pixels of a PNG a pixel of the figure: sharp where screens are."""


def check_suffix(path: str | Path) -> str:
    """The suffix of ``path``. Raises UserError for one that is no kind of picture."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise UserError(f"{path}: a plot is written as {' or '.join(SUFFIXES)}; end the name with one of them")
    return suffix


def write(figure: Any, path: str | Path) -> Path:
    """Write matplotlib's ``figure`` to ``path``, of the kind that its suffix says.

    The same figure gives the same bytes. Only while `svg.drawing` is in force. Raises
    UserError for another suffix, or where the file cannot be written.
    """
    suffix = check_suffix(path)
    return write_atomically(path, lambda name: save(figure, name, suffix))


def save(figure: Any, path: str, suffix: str) -> None:
    """As `write`, straight to a file of any name."""
    metadata: dict[str, Any] = {"Date": None} if suffix == ".svg" else {"Software": None}
    figure.savefig(path, format=suffix[1:], dpi=SCALE * PIXELS, facecolor=GROUND, metadata=metadata)
