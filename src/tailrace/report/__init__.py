"""Reports of runs: tables for the terminal, Markdown to paste, one self-contained HTML page.

Importing this is cheap: rich, matplotlib and jinja2 are read when a function is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .html import write_html
    from .lines import note
    from .pictures import write_figures
    from .tables import comparison, markdown, single

__all__ = ["comparison", "markdown", "note", "single", "write_figures", "write_html"]

_HOMES = {"comparison": "tables", "markdown": "tables", "single": "tables", "note": "lines", "write_html": "html"}
_HOMES["write_figures"] = "pictures"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
