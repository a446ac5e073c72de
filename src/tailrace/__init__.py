"""tailrace: request scheduling for LLM serving.

Importing this is light; the parts are imported from their modules, or lazily from here:
``tailrace.simulate``, ``tailrace.load_workload``, ``tailrace.Policy``, ``tailrace.policy``.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_LAZY = {
    "Policy": ("tailrace.hooks", "Policy"),
    "policy": ("tailrace.hooks", "policy"),
    "kernel": ("tailrace._jit", "kernel"),
    "UserError": ("tailrace.errors", "UserError"),
    "load_workload": ("tailrace.workloads", "load"),
    "simulate": ("tailrace.studies.runs", "simulate"),
}

__all__ = ["__version__", *_LAZY]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        module, attribute = _LAZY[name]
        return getattr(importlib.import_module(module), attribute)
    raise AttributeError(f"module 'tailrace' has no attribute {name!r}")
