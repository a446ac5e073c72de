"""Matplotlib figures as SVG to put inside a page: no colours of text, no fonts, ids of their own.

Text and axes are drawn with ``currentColor`` on a transparent ground, so a page's style
sheet decides how they look, in light and in dark.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

from ..errors import UserError

__all__ = ["INK", "Canvas", "clean", "drawing", "render"]

INK: Final = "#0a0b0c"
"""Stands for ``currentColor`` while matplotlib draws."""
PIXELS: Final = 72.0
"""Units an inch: one point is one CSS pixel when a figure is shown at its own width."""

SETTINGS: Final[dict[str, Any]] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "axes.unicode_minus": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": INK,
    "grid.alpha": 0.14,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 3.5,
    "ytick.major.size": 3.5,
    "font.size": 11.5,
    "axes.labelsize": 11.5,
    "axes.titlesize": 11.5,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
}


class Canvas:
    """A figure of ``width`` × ``height`` pixels whose axes are placed in pixels from the top left."""

    def __init__(self, width: float, height: float) -> None:
        from matplotlib.figure import Figure

        self.width, self.height = width, height
        self.figure = Figure(figsize=(width / PIXELS, height / PIXELS), dpi=PIXELS)

    def axes(self, left: float, top: float, right: float, bottom: float, **options: Any) -> Any:
        """Axes between these edges."""
        w, h = self.width, self.height
        return self.figure.add_axes((left / w, 1 - bottom / h, (right - left) / w, (bottom - top) / h), **options)

    def text(self, x: float, y: float, text: str, **options: Any) -> None:
        """Text at pixels from the top left."""
        self.figure.text(x / self.width, 1 - y / self.height, text, **options)

    def rule(self, left: float, right: float, y: float, **options: Any) -> None:
        """A horizontal line at pixels from the top left."""
        from matplotlib.lines import Line2D

        w, height = self.width, 1 - y / self.height
        self.figure.add_artist(Line2D((left / w, right / w), (height, height), **options))


@contextmanager
def drawing(name: str) -> Iterator[None]:
    """Settings to draw and render in, whatever the user's matplotlibrc says.

    Raises UserError if matplotlib is not installed.
    """
    try:
        import matplotlib.style
    except ImportError:
        raise UserError("the report needs extra packages: pip install 'tailrace[report]'") from None
    settings: list[str | Path | dict[str, Any]] = ["default", {**SETTINGS, "svg.hashsalt": f"tailrace-{name}"}]
    with matplotlib.style.context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        yield


def render(canvas: Canvas, name: str, title: str) -> str:
    """The figure as one ``<svg>`` element; ``name`` begins each of its ids, ``title`` is read aloud.

    The same figure gives the same text, always.
    """
    out = io.StringIO()
    canvas.figure.savefig(out, format="svg", metadata={"Date": None}, facecolor="none", edgecolor="none")
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
        f'viewBox="0 0 {canvas.width:g} {canvas.height:g}" width="{canvas.width:g}" height="{canvas.height:g}" '
        f'font-family="system-ui, sans-serif" aria-label={quoteattr(title)}>\n <title>{escape(title)}</title>'
    )
    text = re.sub(r"<svg[^>]*>", lambda _: head, text, count=1)
    return _own_ids(_short(_inherit(text)), name)


def clean(text: str, longest: int = 26) -> str:
    """``text`` fit for a figure: printable, on one line, not too long."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _inherit(text: str) -> str:
    """Text and axes in the colour of their surroundings, text in its font."""
    text = re.sub(re.escape(INK), "currentColor", text, flags=re.IGNORECASE)
    text = re.sub(r'font: (?:[a-z]+ )*([\d.]+)px [^;"]*', r"font-size: \1px", text)
    return re.sub(r' ?font-family: [^;"]*;', "", text)


def _short(text: str) -> str:
    """Paths with two decimals: a hundredth of a pixel."""
    cut = re.compile(r"(\.\d\d)\d+")
    text = re.sub(r' d="[^"]*"', lambda m: cut.sub(r"\1", m.group()), text)
    return re.sub(r"<use [^>]*>", lambda m: re.sub(r'( [xy]="-?\d+\.\d\d)\d+', r"\1", m.group()), text)


def _own_ids(text: str, name: str) -> str:
    # Only inside tags: a label may hold anything.
    def own(match: re.Match[str]) -> str:
        tag = re.sub(r'\bid="', f'id="{name}-', match.group())
        return re.sub(r'(href="|url\()#', rf"\1#{name}-", tag)

    return re.sub(r"<[a-zA-Z][^>]*>", own, text)
