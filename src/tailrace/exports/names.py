"""Names of files of which there is one a policy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

__all__ = ["per_policy"]


def per_policy(path: str, labels: Sequence[str]) -> list[str]:
    """``path`` with each label before its suffix: ``b.json`` gives ``b-fcfs.json``, ``b-qba_k=3.json``.

    Characters that file systems or shells dislike become ``_``; labels that are then the
    same, in small letters too, are numbered.
    """
    place, out, seen = Path(path), [], set()
    for label in labels:
        text = re.sub(r"[^\w.,=+-]", "_", label, flags=re.ASCII)[:80]
        name, number = text, 1
        while name.lower() in seen:
            number += 1
            name = f"{text}-{number}"
        seen.add(name.lower())
        out.append(str(place.with_name(f"{place.stem}-{name}{place.suffix}")))
    return out
