"""The bar that people see while runs are made."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from rich.console import Console

__all__ = ["advancing", "progress"]


@contextlib.contextmanager
def progress(total: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, for people only; to be called with the index of each run that ends."""
    with advancing(total, quiet) as by:
        yield lambda index: by(1)


@contextlib.contextmanager
def advancing(total: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """The same bar; to be called with the number of runs that have come to be known."""
    if quiet or total < 2 or not sys.stderr.isatty():
        yield lambda runs: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("simulating"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("runs", total=total)
        yield lambda runs: bar.advance(task, runs)
