"""Configuration files (TOML, YAML, JSON) and atomic writing."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final

from .errors import UserError

__all__ = ["check_place", "is_config", "keep", "read_config", "write_atomically", "write_text"]

CONFIG_SUFFIXES: Final = (".toml", ".yaml", ".yml", ".json")


def is_config(text: str) -> bool:
    """Whether ``text`` names a configuration file rather than a preset."""
    return Path(text).suffix.lower() in CONFIG_SUFFIXES


def read_config(path: str) -> dict[str, Any]:
    """The mapping in a TOML, YAML or JSON file.

    Raises UserError naming the file, and the line where the format tells it.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; give a readable file") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8 text; save it as UTF-8") from None
    try:
        found = _parser(path)(text)
    except UserError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{path}: {reason}") from None
    if not isinstance(found, dict):
        raise UserError(f"{path}: must hold settings as key: value, not {type(found).__name__}")
    return found


def _parser(path: str) -> Callable[[str], Any]:
    suffix = Path(path).suffix.lower()
    if suffix == ".toml":
        return tomllib.loads
    if suffix == ".json":
        return json.loads
    try:
        import yaml
    except ImportError:
        raise UserError(f"{path}: reading YAML needs an extra package: pip install 'tailrace[yaml]'") from None
    return yaml.safe_load


def check_place(path: str | Path, folder: bool = False) -> None:
    """Raise UserError if nothing could be written to ``path`` (a folder of files if ``folder``).

    For use before long work. Creates nothing, so what it lets through may still fail.
    """
    target = Path(path)
    if not folder and target.is_dir():
        raise UserError(f"{target}: is a folder; give a file name")
    place = target if folder else target.parent
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise UserError(f"{target}: cannot be written ({place} is not a folder); give another place")
    if not os.access(place, os.W_OK | os.X_OK):
        raise UserError(f"{target}: cannot be written (no permission in {place}); give another place")


def write_atomically(path: str | Path, write: Callable[[str], None]) -> Path:
    """Let ``write`` fill a temporary file beside ``path``, then put it in place.

    Raises UserError when the place cannot be written; nothing half-written is left.
    """
    target = Path(path)
    temporary = ""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir():
            raise UserError(f"{target}: is a folder; give a file name")
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        os.close(handle)
        write(temporary)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except OSError as error:
        raise UserError(f"{target}: cannot be written ({error.strerror or error}); give another place") from None
    finally:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
    return target


def keep(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file of a cache. A half-written one never appears; a full or closed disk is no error."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                write(file)
            os.replace(temporary, path)
        finally:
            Path(temporary).unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> Path:
    """Write ``text`` atomically."""
    return write_atomically(path, lambda name: _fill(name, text))


def _fill(name: str, text: str) -> None:
    Path(name).write_text(text, encoding="utf-8")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
