"""A synthetic workload in a TOML, YAML or JSON file: read into the text ``name:key=value,…`` that says the same.

``generator`` names it; every other key is a parameter. ``lengths``, ``classes`` and
``tenants`` may be lists of tables instead of texts: ``name``, ``share`` and the part's settings.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from .. import spec
from ..errors import UserError
from ..files import is_config, read_config

__all__ = ["expanded"]

MIXES: Final = ("lengths", "classes", "tenants")
MOST_BYTES: Final = 1 << 20
"""Larger JSON files are traces."""
RESERVED: Final = "+,@="
"""What a name in a list of tables cannot hold: the text form gives it a meaning."""


def expanded(text: str) -> str:
    """``text``, or what the file of settings that it names says.

    A JSON file without ``generator`` may be a trace and is left alone. Raises UserError
    naming file and key for what cannot be a workload.
    """
    if not is_config(text) or not os.path.isfile(text):
        return text
    if text.lower().endswith(".json") and not _names_a_generator(text):
        return text
    found = read_config(text)
    name = found.pop("generator", None)
    if not isinstance(name, str):
        raise UserError(f'{text}: field generator: give the generator\'s name, as in generator = "gamma"')
    values = {key: _value(text, key, value) for key, value in found.items()}
    return spec.write(name, values)


def _names_a_generator(path: str) -> bool:
    if os.path.getsize(path) > MOST_BYTES:
        return False
    start = Path(path).read_bytes()
    return start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" and b'"generator"' in start


def _value(path: str, key: str, value: Any) -> str:
    if key in MIXES and isinstance(value, list):
        return " + ".join(_part(f"{path}: {key}[{index}]", part) for index, part in enumerate(value))
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise UserError(f"{path}: field {key}: {value!r} is neither a number nor a text; write {key} = value")
    text = _plain(value)
    if "," in text or not text.strip():
        raise UserError(f"{path}: field {key}: {text!r} must not be empty or hold a comma")
    return text


def _part(where: str, part: Any) -> str:
    if not isinstance(part, Mapping) or "name" not in part:
        raise UserError(f'{where}: must be a table with a name, as in {{name = "azure-conv", share = 0.8}}')
    for key, value in part.items():
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise UserError(f"{where}: field {key}: {value!r} is neither a number nor a text")
        wrong = [mark for mark in RESERVED if mark in str(value)] if isinstance(value, str) else []
        if wrong or str(value) != "".join(str(value).split()) or str(value) == "":
            what = f"must not hold {wrong[0]!r}" if wrong else "must be one word"
            raise UserError(f"{where}: field {key}: {value!r} {what}")
    share = f"@{_plain(part['share'])}" if "share" in part else ""
    rest = [f"{key}={_plain(value)}" for key, value in part.items() if key not in ("name", "share")]
    return " ".join([f"{part['name']}{share}", *rest])


def _plain(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)
