"""Markdown that GitHub renders and that reads as text: aligned tables, images, long parts to unfold."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["code", "details", "escape", "image", "paragraph", "table"]


def escape(text: str) -> str:
    """``text`` for a Markdown table: no markup, no HTML, no line or cell ends."""
    text = " ".join(text.split())
    for mark in "\\`*_|[]":
        text = text.replace(mark, "\\" + mark)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def code(text: str) -> str:
    """``text`` as code, in a sentence or a table."""
    text = " ".join(text.split()).replace("`", "'").replace("|", "\\|")
    return f"`{text}`" if text else ""


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A table whose cells (Markdown) line up; the first ``left`` columns to the left, the others to the right.

    A last column of text is not filled up to its longest line.
    """
    if any(len(row) != len(headings) for row in rows):
        raise ValueError("a row of a table needs a cell for each heading")
    widths = [max(3, *(len(row[i]) for row in [headings, *rows])) for i in range(len(headings))]
    if left == len(headings):
        widths[-1] = 3
    rules = [":" + "-" * (w - 1) if i < left else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    lines = []
    for row in [headings, rules, *rows]:
        cells = [row[i].ljust(w) if i < left else row[i].rjust(w) for i, w in enumerate(widths)]
        cells[-1] = cells[-1].rstrip()
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def image(alt: str, link: str, caption: str) -> str:
    """A picture with its caption under it."""
    alt = " ".join(alt.split()).replace("[", "(").replace("]", ")")
    return f"![{alt}]({link})\n\n*{caption.replace('*', '')}*"


def details(summary: str, text: str) -> str:
    """``text`` to unfold; the blank lines make GitHub render it as Markdown."""
    return f"<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


def paragraph(*sentences: str) -> str:
    """The sentences there are, as one paragraph."""
    return " ".join(sentence for sentence in sentences if sentence)
