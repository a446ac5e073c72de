"""The JSON values of a file, one after the other: of lines, of an array, or one over several lines.

An array is parsed as it is read, so that memory holds one element and not the file.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from ...errors import UserError
from .source import Source

__all__ = ["values"]

CHUNK: Final = 1 << 18
"""Characters read at once, doubled while one value needs more."""

ENDS: Final = frozenset(" \t\r\n,]")
"""What follows a whole element."""


def values(source: Source) -> Iterator[tuple[str, Any]]:
    """Each value with its place: ``item 3`` of an array, else ``row 3`` of lines (both from 1).

    Raises UserError, by row, for what is not JSON or not UTF-8, and for an object that
    holds a key twice.
    """
    source.check_text()
    if source.is_json_array:
        for number, value in enumerate(_elements(source), start=1):
            yield f"item {number}", value
        return
    first = True
    for line, text in source.lines():
        if not text.strip():
            continue
        if first and text.strip()[-1:] in (b"{", b",", b"["):  # an object that its line does not end
            yield f"row {line}", _parse(source, source.everything(), 1)
            return
        first = False
        yield f"row {line}", _parse(source, text, line)


def _parse(source: Source, text: bytes, line: int) -> Any:
    with _named(source, line):
        return json.loads(text, object_pairs_hook=_unique)


def _elements(source: Source) -> Iterator[Any]:
    """The elements of the array that the file is."""
    with _named(source, 1), source.guard(), source.text("strict") as file:
        window = _Window(source, file)
        window.take("[")
        if window.peek() == "]":
            window.take("]")
        else:
            yield window.value()
            while window.peek() == ",":
                window.take(",")
                yield window.value()
            window.take("]")
        if window.peek():
            window.refuse("Extra data")


class _Window:
    """A part of the file's text and where in it the next value starts."""

    def __init__(self, source: Source, file: io.TextIOWrapper) -> None:
        self.source, self.file = source, file
        self.text, self.at, self.line, self.chunk = "", 0, 1, CHUNK
        self.decoder = json.JSONDecoder(object_pairs_hook=_unique)

    def more(self) -> bool:
        """Read on; what was taken is let go. False at the end of the file."""
        found = self.file.read(self.chunk)
        self.chunk *= 2
        self.line += self.text.count("\n", 0, self.at)
        self.text, self.at = self.text[self.at :] + found, 0
        return bool(found)

    def peek(self) -> str:
        """The next character that is not blank, ``""`` at the end."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in " \t\r\n":
                self.at += 1
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return ""

    def take(self, mark: str) -> None:
        """Go past ``mark``, which must be next."""
        if self.peek() != mark:
            self.refuse(f"Expecting {mark!r}")
        self.at += 1

    def refuse(self, wrong: str) -> None:
        """Raises UserError for what is next."""
        with _named(self.source, self.line):
            raise json.JSONDecodeError(wrong, self.text, self.at)

    def value(self) -> Any:
        """The next value, once the text holds all of it."""
        self.peek()
        self.chunk = CHUNK
        while True:
            with _named(self.source, self.line, lambda: self.text.count("\n", 0, self.at)):
                try:
                    found, end = self.decoder.raw_decode(self.text, self.at)
                except json.JSONDecodeError:
                    if self.more():
                        continue
                    raise
            rest = len(self.text) - end
            # A number cut off may be one too: 1.5 is 1 and 1. before.
            if self.text[end : end + 1] in ENDS or not self.more():
                self.at = len(self.text) - rest
                return found


class _TwiceError(Exception):
    """A key that an object holds twice."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise _TwiceError(next(key for key in keys if keys.count(key) > 1))
    return found


@contextlib.contextmanager
def _named(source: Source, line: int, below: Callable[[], int] = int) -> Iterator[None]:
    """Turns what goes wrong with JSON into a UserError by row.

    The text starts on ``line``, the value in it so many lines ``below``.
    """
    try:
        yield
    except UnicodeDecodeError:
        raise source.not_utf8() from None
    except json.JSONDecodeError as error:
        at = f"{source.path}: row {line + error.lineno - 1}"
        if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated"):
            raise UserError(f"{at}: the JSON is cut off; download it again or delete what is cut") from None
        near = " ".join(error.doc[error.pos : error.pos + 30].split())
        raise UserError(f"{at}: is not JSON: {error.msg} at {near!r}; correct it") from None
    except (_TwiceError, RecursionError, ValueError) as error:
        raise UserError(f"{source.path}: row {line + below()}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    if isinstance(error, _TwiceError):
        return f"field {error}: an object names it twice; keep one"
    if isinstance(error, RecursionError):
        return "is nested too deep to be a trace; check the file"
    return "holds a number of thousands of digits; correct it"  # more than Python converts
