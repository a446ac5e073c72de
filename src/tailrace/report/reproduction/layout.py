"""How a page is put together: sections, and what was left out."""

from __future__ import annotations

from collections.abc import Iterable

from ..markup import escape
from .study import Study

__all__ = ["joined", "not_run", "section"]


def joined(sections: Iterable[str]) -> str:
    """A page of the sections that are not empty."""
    return "\n\n".join(part for part in sections if part) + "\n"


def section(title: str, *parts: str) -> str:
    """``title`` over the parts; empty without the first of them."""
    return "\n\n".join([f"## {title}", *(part for part in parts if part)]) if parts[0] else ""


def not_run(study: Study) -> str:
    """What was left out, and why."""
    missing = study.document.get("not_run") or {}
    lines = [f"- {escape(name)}: {escape(why.rstrip('.'))}." for name, why in missing.items()]
    return section("Not run", "\n".join(lines))
