"""Names of policies: built in, by entry point, or as ``module:Class``."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from .errors import UserError, nearest

__all__ = ["POLICIES", "Registry"]

C = TypeVar("C", bound=type)


class Registry:
    """Names to classes of one kind.

    ``builtin`` is the module whose import registers our own; ``group`` the entry point
    group of others'. Both are read on the first look-up, so importing this costs nothing.
    """

    def __init__(self, kind: str, builtin: str, group: str, prepare: Callable[[type, str], None] | None = None) -> None:
        self.kind, self.builtin, self.group = kind, builtin, group
        self.prepare = prepare
        self._classes: dict[str, type] = {}
        self._imported: dict[str, type] = {}
        """By ``module:Class``; such a class need not be what it was taken for, so it is no name."""
        self._loaded = False

    def add(self, name: str, cls: type) -> None:
        """Register ``cls``. Raises ValueError when the name is taken by another class."""
        if self._classes.get(name, cls) is not cls:
            raise ValueError(f"{self.kind} {name!r} is registered already, by {self._classes[name].__qualname__}")
        self._classes[name] = cls

    def names(self) -> list[str]:
        """All names, sorted."""
        self._load()
        return sorted(self._classes)

    def get(self, name: str) -> Any:
        """The class called ``name``. Raises UserError with the nearest name."""
        self._load()
        if ":" in name:
            if name not in self._imported:
                self._imported[name] = self._import(name)
            return self._imported[name]
        if name not in self._classes:
            hint = nearest(name, self._classes)
            if Path(f"{name}.py").exists():
                hint = f" (of the file {name}.py name the class: {name}:ClassName)"
            raise UserError(f"unknown {self.kind} {name!r}{hint}")
        return self._classes[name]

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        importlib.import_module(self.builtin)
        for point in importlib.metadata.entry_points(group=self.group):
            if point.name in self._classes:
                raise UserError(f"entry point {point.value!r} wants the name of the {self.kind} {point.name!r}")
            self._classes[point.name] = self._import(point.value)

    def _import(self, path: str) -> type:
        module, _, attribute = path.partition(":")
        folder = ""
        if module.endswith(".py") or "/" in module:
            file = Path(module).expanduser().resolve()
            if not file.exists():
                raise UserError(f"cannot load {self.kind} {path!r}: there is no file {file}")
            folder, module = str(file.parent), file.stem
        if folder not in sys.path:
            sys.path.insert(0, folder)
        try:
            cls = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            hint = "; call from the folder that holds it, or give its path" if "No module named" in str(error) else ""
            raise UserError(f"cannot load {self.kind} {path!r}: {error}{hint}") from None
        except Exception as error:
            raise UserError(f"cannot load {self.kind} {path!r}: {type(error).__name__}: {error}") from None
        if not isinstance(cls, type):
            raise UserError(f"{path!r} is not a class")
        if self.prepare is not None:
            self.prepare(cls, path)
        return cls


POLICIES = Registry("policy", "tailrace.policies", "tailrace.policies")
