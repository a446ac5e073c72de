"""Workloads: trace files and synthetic generators in one canonical form; service levels and predictions on top.

Importing this reads no data and does not import pyarrow; readers do, when called.
"""

from __future__ import annotations

from .canonical import write
from .lengths import SOURCES, Source
from .load import formats, load
from .predictions import apply, settings
from .prefix import Prefix
from .readers.about import remarks
from .service import PRESETS, UNCHANGED, Service, promised
from .synthetic import generate, generators
from .workload import Workload, long_class

__all__ = [
    "PRESETS",
    "UNCHANGED",
    "Prefix",
    "Service",
    "Workload",
    "apply",
    "formats",
    "generate",
    "generators",
    "length_sources",
    "load",
    "long_class",
    "promised",
    "remarks",
    "settings",
    "write",
]


def length_sources() -> dict[str, Source]:
    """Every distribution of lengths that a generator's ``lengths`` can name."""
    return dict(SOURCES)
