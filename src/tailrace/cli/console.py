"""The console people read: as wide as theirs, or wide enough for tables in a pipe."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console

from ..exports.clean import finite

__all__ = ["PIPE_WIDTH", "console", "print_json"]

PIPE_WIDTH = 150


class _Console(Console):
    """Leaves a broken pipe to `main`."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Standard output. Not a terminal: plain text, `PIPE_WIDTH` columns."""
    return _Console() if sys.stdout.isatty() else _Console(width=PIPE_WIDTH)


def print_json(document: Any) -> None:
    """``document`` as JSON on standard output. JSON has no NaN or infinity: null; NumPy's numbers are numbers."""
    print(json.dumps(finite(document), indent=2, allow_nan=False, default=lambda value: finite(value.item())))
