"""Parameters of policies and models: one declaration holds default, unit, range, meaning.

A parameter class is a NamedTuple whose fields are annotated ``Annotated[int, P("what",
unit="tokens", low=1)]``. Users' values are checked and coerced here, once; kernels read
bare numbers. A field with ``choices`` is given by name and stored as its position.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar, get_args, get_type_hints

from .errors import UserError, nearest

__all__ = ["Described", "P", "build", "describe", "show"]

T = TypeVar("T", bound=tuple[Any, ...])


@dataclass(frozen=True)
class P:
    """What a parameter means and may be. Bounds are closed unless ``open_low``/``open_high``."""

    doc: str
    unit: str = ""
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    choices: tuple[str, ...] = ()
    form: str = ""
    """How a text is written; not empty for parameters that are texts, which whoever reads them checks."""

    @property
    def range(self) -> str:
        if self.form:
            return self.form
        if self.choices:
            return " | ".join(self.choices)
        left = "(" if self.open_low or self.low == -math.inf else "["
        right = ")" if self.open_high or self.high == math.inf else "]"
        return f"{left}{self.low:g}, {self.high:g}{right}"


@dataclass(frozen=True)
class Described:
    """One parameter as shown to people."""

    name: str
    kind: type
    default: Any
    spec: P


def describe(cls: type[Any]) -> list[Described]:
    """The parameters of ``cls`` in order; defaults shown as a user would write them."""
    out = []
    for name, hint in get_type_hints(cls, include_extras=True).items():
        if name.startswith("_"):
            continue
        kind, spec = get_args(hint)[:2] if get_args(hint) else (hint, P(""))
        default = cls._field_defaults.get(name)
        if spec.choices and default is not None:
            default = spec.choices[default]
        out.append(Described(name, kind, default, spec))
    return out


MOST: Final = 2**53
"""Largest whole number a parameter takes: kernels hold it exactly, as an integer and as a float."""


def build(cls: type[T], given: Mapping[str, Any], owner: str) -> T:
    """``cls`` from a user's values.

    Raises UserError naming ``owner``, the field and its range, or the nearest name.
    """
    known = {item.name: item for item in describe(cls)}
    for name in given:
        if name not in known:
            hint = nearest(name, known) if known else " (it has none)"
            raise UserError(f"{owner}: unknown parameter {name!r}{hint}")
    values: dict[str, Any] = {}
    for name, item in known.items():
        if name in given:
            values[name] = _coerce(given[name], item, owner)
        elif item.default is None:
            raise UserError(f"{owner}: parameter {name!r} must be given")
        else:
            values[name] = _coerce(item.default, item, owner)
    return cls(**values)


def show(params: Any) -> dict[str, Any]:
    """Parameters as a user would write them (choices by name)."""
    return {
        item.name: item.spec.choices[getattr(params, item.name)] if item.spec.choices else getattr(params, item.name)
        for item in describe(type(params))
    }


def _coerce(value: Any, item: Described, owner: str) -> Any:
    spec = item.spec
    if spec.form:
        return " ".join(str(value).split())
    if spec.choices:
        if value not in spec.choices:
            raise UserError(
                f"{owner}: {item.name}={value} is not one of {spec.range}{nearest(str(value), spec.choices)}"
            )
        return spec.choices.index(value)
    if item.kind is str:
        return str(value)
    number = _number(value, item.kind)
    if number is None:
        wanted = {bool: "true or false", int: "a whole number"}.get(item.kind, "a number")
        unit = f" ({spec.unit})" if spec.unit else ""
        raise UserError(f"{owner}: {item.name}={value} must be {wanted}{unit}")
    below = number < spec.low or (spec.open_low and number == spec.low)
    above = number > spec.high or (spec.open_high and number == spec.high)
    if below or above or number != number or (item.kind is int and abs(number) > MOST):
        raise UserError(f"{owner}: {item.name}={value} is outside {spec.range} {spec.unit}".rstrip())
    return number


def _number(value: Any, kind: type) -> Any:
    if kind is bool:
        words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
        return value if isinstance(value, bool) else words.get(str(value).lower())
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
        if kind is float:
            return number
        return int(number) if number == int(number) else None
    except (TypeError, ValueError, OverflowError):
        return None
