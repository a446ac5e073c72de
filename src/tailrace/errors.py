"""Errors that a user can cause, each one clear line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["UserError", "nearest"]


class UserError(Exception):
    """A user's mistake: one line that names the file, row or field and the way out.

    The command line prints the text and exits with status 2; a library caller may
    catch it. It is never raised for a fault of tailrace itself.
    """


def nearest(word: str, known: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` for the closest of ``known``, or the list of them."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.55)
    if close:
        return f" (did you mean {close[0]!r}?)"
    return f" (known: {', '.join(names)})" if names else ""
