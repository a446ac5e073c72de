"""``name:key=value,key=value``: the one grammar of policies, workloads, engines and models."""

from __future__ import annotations

from typing import Any

from .errors import UserError

__all__ = ["parse", "split_list", "write"]


def parse(text: str) -> tuple[str, dict[str, str]]:
    """``(name, {key: value})`` of ``text``; values stay text.

    Raises UserError for a part that is not ``key=value`` or a key given twice.
    """
    name, _, rest = text.strip().partition(":")
    given: dict[str, str] = {}
    for part in filter(None, (item.strip() for item in rest.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key or not value:
            raise UserError(f"{text!r}: {part!r} is not key=value; write {name}:key=value,key=value")
        if key in given:
            raise UserError(f"{text!r}: {key!r} is given twice; keep one")
        given[key] = value
    return name.strip(), given


def split_list(text: str) -> list[str]:
    """The items of ``a:k=1,j=2,b,m.n:C:k=1``: one with ``=`` and no ``:`` belongs to the one before.

    Raises UserError when the first item is such a one, or there is none.
    """
    items: list[str] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        head = part.partition("=")[0]
        if "=" in part and ":" not in head:
            if not items:
                raise UserError(f"{text!r}: {part!r} comes before any name; write NAME:{part}")
            items[-1] += ("," if "=" in items[-1] else ":") + part
        else:
            items.append(part)
    if not items:
        raise UserError("the list is empty; name at least one")
    return items


def write(name: str, values: dict[str, Any]) -> str:
    """The inverse of `parse`: one spelling for each setting, numbers without needless zeros."""
    parts = [f"{key}={value:.15g}" if isinstance(value, float) else f"{key}={value}" for key, value in values.items()]
    return f"{name}:{','.join(parts)}" if parts else name
