"""Which of a paper's experiments are run."""

from __future__ import annotations

from collections.abc import Sequence

from ... import spec
from ...errors import UserError, nearest

__all__ = ["choose"]


def choose(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """Those of ``known`` that ``text`` names, in their order; all where it is empty.

    Raises UserError with the nearest name for one that is not known.
    """
    if text.strip() and not text.strip(" ,"):
        raise UserError(f"no experiment in {text!r}: name some of {', '.join(known)}")
    names = spec.split_list(text) if text.strip() else list(known)
    for name in names:
        if name not in known:
            raise UserError(f"unknown experiment {name!r}{nearest(name, known)}")
    return tuple(name for name in known if name in names)
