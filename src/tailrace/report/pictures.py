"""The figures of a report as files: SVG, and PNG at twice the size of the page's."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .. import files
from . import saving
from .figures import Figure, figures
from .svg import drawing

if TYPE_CHECKING:
    from ..sim.run import Result

__all__ = ["standalone", "write_figures"]

TEXT: Final = "#1b1f24"


def write_figures(folder: str | Path, document: Mapping[str, Any], runs: Sequence[tuple[str, Result]]) -> list[Path]:
    """Write every figure of the report of ``document`` and ``runs`` to ``folder``, dark on white.

    The same arguments give the same bytes. Raises UserError if the folder cannot be
    written, or if matplotlib is not installed.
    """
    place, written = Path(folder), []
    for figure in figures(document, runs):
        name = figure.name.removeprefix("fig-")
        written.append(files.write_text(place / f"{name}.svg", standalone(figure.svg)))
        written.append(files.write_atomically(place / f"{name}.png", functools.partial(_png, figure)))
    return written


def standalone(svg: str) -> str:
    """The figure ``svg``, as `svg.render` made it, with a ground and a colour of its own."""
    look = f'style="color:{TEXT};background:{saving.GROUND}" '
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + svg.replace("<svg ", f"<svg {look}", 1) + "\n"


def _png(figure: Figure, path: str) -> None:
    with drawing(figure.name):
        saving.save(figure.canvas.figure, path, ".png")
