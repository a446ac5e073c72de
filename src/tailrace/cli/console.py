"""The console people read: as wide as theirs, or wide enough for tables in a pipe."""

from __future__ import annotations

import sys

from rich.console import Console

__all__ = ["PIPE_WIDTH", "console"]

PIPE_WIDTH = 150


class _Console(Console):
    """Leaves a broken pipe to `main`."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Standard output. Not a terminal: plain text, `PIPE_WIDTH` columns."""
    return _Console() if sys.stdout.isatty() else _Console(width=PIPE_WIDTH)
