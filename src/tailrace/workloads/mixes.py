"""Who sends what: lengths, classes, tenants and SLOs of the requests of a synthetic workload.

``lengths`` is a mix of distributions whose parts may each have a class, a tenant and SLOs;
``classes`` and ``tenants`` are mixes of their own, drawn independently of the lengths.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from ..errors import UserError
from ..table import F8, I8
from . import _streams as streams
from . import lengths as sources
from .shares import Term, choose, number, terms

__all__ = ["CLASS_KEYS", "PART_KEYS", "Mix", "mix"]

KINDS: Final = ("prompts", "outputs")
CLASS_KEYS: Final = ("weight", "priority", "ttft_slo_s", "tpot_slo_s")
PART_KEYS: Final = ("class", "class_weight", "tenant", "priority", "ttft_slo_s", "tpot_slo_s")


@dataclass
class Mix:
    """What was drawn for ``n`` requests."""

    prompt_tokens: I8
    output_tokens: I8
    columns: dict[str, Any] = field(default_factory=dict)
    """Further arguments of `Workload.of`."""
    notes: list[str] = field(default_factory=list)
    """What each distribution is and where it comes from."""


@dataclass(frozen=True)
class _Labels:
    """One mix's settings, with the part each request is of."""

    where: str
    settings: list[dict[str, str]]
    which: I8


def mix(owner: str, seed: int, arrival_s: F8, lengths: str, classes: str = "", tenants: str = "") -> Mix:
    """Lengths and labels of the requests that arrive at ``arrival_s``; texts as `shares.terms` reads them.

    Raises UserError in the name of ``owner`` for what cannot be read, or a field that two mixes set.
    """
    where = f"{owner}: lengths"
    parts = terms(lengths, where, PART_KEYS)
    which = _which(parts, seed, streams.SHARES, arrival_s, where)
    found = Mix(np.ones(len(arrival_s), dtype=np.int64), np.ones(len(arrival_s), dtype=np.int64))
    for index, part in enumerate(parts):
        *drawn, caps = sources.draw(part, sources.Draws(seed, len(arrival_s), index), where)
        among, cut = which == index, []
        for kind, column, values, cap in zip(
            KINDS, (found.prompt_tokens, found.output_tokens), drawn, caps, strict=True
        ):
            np.copyto(column, values, where=among)
            if count := int(np.count_nonzero(values[among] == cap)):
                cut.append(f"{count} of {np.count_nonzero(among)} {kind} are cut to {cap:.0f} tokens")
        found.notes.append("; ".join([f"lengths {part.name}: {sources.SOURCES[part.name].about}", *cut]))
    found.notes = list(dict.fromkeys(found.notes))
    found.columns = labels(owner, seed, arrival_s, classes, tenants, _Labels(where, [p.settings for p in parts], which))
    return found


def labels(
    owner: str, seed: int, arrival_s: F8, classes: str, tenants: str, parts: _Labels | None = None
) -> dict[str, Any]:
    """Classes, tenants, priorities and SLOs as arguments of `Workload.of`; those of ``parts`` too."""
    mixes = [parts] if parts else []
    if classes:
        where = f"{owner}: classes"
        found = terms(classes, where, CLASS_KEYS)
        settings = [{"class": _bare(t, where), **_renamed(t.settings)} for t in found]
        mixes.append(_Labels(where, settings, _which(found, seed, streams.CLASSES, arrival_s, where)))
    if tenants:
        where = f"{owner}: tenants"
        found = terms(tenants, where, ())
        settings = [{"tenant": _bare(t, where)} for t in found]
        mixes.append(_Labels(where, settings, _which(found, seed, streams.TENANTS, arrival_s, where)))
    columns: dict[str, Any] = {}
    for key in PART_KEYS:
        setters = [one for one in mixes if any(key in given for given in one.settings)]
        if len(setters) > 1:
            raise UserError(f"{setters[1].where}: {key} is set by {setters[0].where.rpartition(' ')[2]} too; keep one")
        if setters:
            columns |= _columns(key, setters[0])
    return columns


def _which(parts: Sequence[Term], seed: int, stream: int, arrival_s: F8, where: str) -> I8:
    if len(parts) == 1:
        return np.zeros(len(arrival_s), dtype=np.int64)
    return choose(parts, arrival_s, streams.stream(seed, stream).random(len(arrival_s)), where)


def _bare(term: Term, where: str) -> str:
    if term.args:
        raise UserError(f"{where}: {term.name}: a name takes no arguments; write {term.name}@SHARE")
    return term.name


def _renamed(settings: dict[str, str]) -> dict[str, str]:
    return {"class_weight" if key == "weight" else key: value for key, value in settings.items()}


def _columns(key: str, one: _Labels) -> dict[str, Any]:
    given = [settings.get(key) for settings in one.settings]
    if key in ("class", "tenant"):
        names = tuple(dict.fromkeys(name or "default" for name in given))
        index = np.array([names.index(name or "default") for name in given])[one.which]
        return {"class_id" if key == "class" else "tenant": index, f"{key}_names": names}
    if key == "class_weight":
        return {"class_weights": _weights(one)}
    low = {"priority": -(2.0**31)}.get(key, 0.0)
    missing = {"priority": 0.0}.get(key, math.inf)
    values = [missing if v is None else number(v, f"{one.where}: {key}", low, above=low == 0) for v in given]
    return {key: np.array(values)[one.which]}


def _weights(one: _Labels) -> list[float]:
    weights: dict[str, float] = {}
    for settings in one.settings:
        name, given = settings.get("class", "default"), settings.get("class_weight")
        if given is not None and "class" not in settings:
            raise UserError(f"{one.where}: class_weight={given} without a class; add class=NAME")
        value = 1.0 if given is None else number(given, f"{one.where}: {name}: weight", 0, above=True)
        if weights.setdefault(name, value) != value:
            raise UserError(
                f"{one.where}: class {name!r} has two weights, {weights[name]:g} and {value:g}; give it one"
            )
    return list(weights.values())
