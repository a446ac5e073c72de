"""Mixes as texts: terms ``NAME:ARG…@SHARE key=value …`` joined by ``+``, shares that may vary over time.

A share is a weight: what a term gets is its weight over the sum of all. It is a number, or
``drift:FROM:TO:SECONDS`` (a line, then constant), ``sine:MEAN:AMPLITUDE:PERIOD_S[:PHASE]``
(the phase in periods) or ``steps:SECONDS:A:B:…`` (each so long, in turn, for ever).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..errors import UserError, nearest
from ..table import F8, I8

__all__ = ["FORM", "Share", "Term", "choose", "number", "terms"]

FORM: Final = "NAME@SHARE key=value … + …"
"""Share and settings may be left out. No brackets: consoles take them for markup."""
SHAPES: Final = {
    "drift": "drift:FROM:TO:SECONDS",
    "sine": "sine:MEAN:AMPLITUDE:PERIOD_S[:PHASE]",
    "steps": "steps:SECONDS:A:B:…",
}
NAME: Final = re.compile(r"[^\s@+:,=]+")
JOIN: Final = re.compile(r"(?<!\d[eE])\+")
"""Between terms; not the plus of 1e+3."""


@dataclass(frozen=True)
class Share:
    """A weight over time."""

    shape: str
    values: tuple[float, ...]

    def at(self, time_s: F8) -> F8:
        """The weight at each time."""
        v = self.values
        if self.shape == "drift":
            return v[0] + (v[1] - v[0]) * np.clip(time_s / v[2], 0.0, 1.0)
        if self.shape == "sine":
            phase = v[3] if len(v) == 4 else 0.0
            # The rounding of a sine must not make a weight negative.
            return np.maximum(v[0] + v[1] * np.sin(2 * math.pi * (time_s / v[2] + phase)), 0.0)
        if self.shape == "steps":
            turn = np.floor(time_s / v[0]) % (len(v) - 1)
            return np.asarray(v[1:])[turn.astype(np.int64)]
        return np.full(len(time_s), v[0])


@dataclass(frozen=True)
class Term:
    """One part of a mix."""

    name: str
    args: tuple[str, ...]
    share: Share
    settings: dict[str, str]


def terms(text: str, where: str, keys: Sequence[str]) -> list[Term]:
    """The terms of ``text``; ``where`` begins each mistake, ``keys`` are the settings a term may have.

    Raises UserError for a term, share or setting that cannot be read, with the form it should have.
    """
    found = [_term(part.split(), where, keys) for part in JOIN.split(text)]
    labels = [(term.name, term.args, tuple(term.settings.items())) for term in found]
    for term, label in zip(found, labels, strict=True):
        if labels.count(label) > 1:
            raise UserError(f"{where}: {term.name!r} is named twice; add up its shares")
    return found


def choose(parts: Sequence[Term], time_s: F8, draws: F8, where: str) -> I8:
    """Which term each request is of: (n,) indices, by ``draws`` uniform in [0, 1).

    Raises UserError where all shares are 0 at once.
    """
    weights = [part.share.at(time_s) for part in parts]
    total = np.sum(weights, axis=0)
    if not (total > 0).all():
        when = time_s[int(np.argmin(total > 0))]
        raise UserError(f"{where}: all shares are 0 at {when:.6g} s; one must be above 0 at any time")
    which, reached = np.zeros(len(time_s), dtype=np.int64), np.zeros(len(time_s))
    for weight in weights[:-1]:
        reached += weight
        which += draws * total >= reached
    return which


def number(text: str, where: str, low: float, high: float = math.inf, above: bool = False) -> float:
    """``text`` as a finite number in [low, high], or above ``low``. Raises UserError."""
    try:
        value = float(text)
    except ValueError:
        raise UserError(f"{where}: {text!r} is not a number") from None
    if not math.isfinite(value) or not low <= value <= high or (above and value == low):
        bound = f"above {low:g}" if above else f"{low:g} or more" if high == math.inf else f"in [{low:g}, {high:g}]"
        raise UserError(f"{where}: {text} must be finite and {bound}")
    return value


def _term(tokens: list[str], where: str, keys: Sequence[str]) -> Term:
    if not tokens:
        raise UserError(f"{where}: a part is empty; write {FORM}")
    head, at, share = tokens[0].partition("@")
    name, *args = head.split(":")
    if not NAME.fullmatch(name) or (at and not share):
        raise UserError(f"{where}: {tokens[0]!r} is not NAME@SHARE, without spaces; write {FORM}")
    settings: dict[str, str] = {}
    for token in tokens[1:]:
        key, equals, value = token.partition("=")
        if not equals or not key or not value:
            raise UserError(f"{where}: {token!r} is not key=value; write {FORM}")
        if key not in keys:
            raise UserError(
                f"{where}: {name}: unknown setting {key!r}{nearest(key, keys) if keys else ' (it has none)'}"
            )
        if key in settings:
            raise UserError(f"{where}: {name}: {key!r} is given twice; keep one")
        settings[key] = value
    return Term(name, tuple(args), _share(share or "1", f"{where}: {name}"), settings)


def _share(text: str, where: str) -> Share:
    shape, *rest = text.split(":")
    where = f"{where}: share {text}"
    if not rest and shape not in SHAPES:
        return Share("constant", (number(shape, where, 0),))
    if shape not in SHAPES:
        raise UserError(f"{where}: unknown shape {shape!r}{nearest(shape, SHAPES)}")
    seconds = {"drift": 2, "sine": 2, "steps": 0}[shape]
    wanted = {"drift": (3, 3), "sine": (3, 4), "steps": (2, 10_000)}[shape]
    if not wanted[0] <= len(rest) <= wanted[1]:
        raise UserError(f"{where}: write {SHAPES[shape]}")
    values = tuple(number(item, where, 0, above=index == seconds) for index, item in enumerate(rest))
    if shape == "sine" and values[1] > values[0]:
        raise UserError(f"{where}: the amplitude is above the mean, so the share would fall below 0")
    return Share(shape, values)
