"""Finished runs on disk, each under a hash of everything it depends on."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from .. import files, metrics
from .._jit import cache_root, source_digest
from ..sim.run import Result

__all__ = ["folder", "key_of", "load", "prune", "save"]

MOST_BYTES: Final = 2 << 30
"""Results kept; the ones unused for longest go first."""


def folder() -> Path:
    """Where results are kept."""
    return cache_root() / "runs"


def key_of(inputs: Mapping[str, Any], sources: tuple[str, ...] = ()) -> str:
    """Hash of a run's inputs and of the code that makes its result."""
    text = json.dumps(inputs, sort_keys=True, default=str) + source_digest(sources) + _code()
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@functools.cache
def _code() -> str:
    """Hash of what turns a finished engine into a result, besides the engine itself."""
    here = Path(__file__).parents[1]
    sources = [*sorted((here / "metrics").glob("*.py")), *sorted((here / "sim").glob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()


def save(key: str, result: Result) -> None:
    """Keep ``result``; a half-written file never appears. A full or closed disk is no error."""
    arrays = {f"r_{f.name}": getattr(result.requests, f.name) for f in dataclasses.fields(metrics.Requests)}
    arrays |= {f"t_{name}": values for name, values in result.timeline.items()}
    arrays |= {f"p_{name}": np.stack(path) for name, path in result.paths.items()}
    arrays["json"] = np.array(json.dumps({k: getattr(result, k) for k in ("meta", "counters", "tallies")}))
    files.keep(folder() / f"{key}.npz", lambda file: np.savez(file, **arrays))


def load(key: str) -> Result | None:
    """The result under ``key``, or None (also when the file is damaged)."""
    path = folder() / f"{key}.npz"
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        os.utime(path)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    text = json.loads(str(arrays.pop("json")))
    requests = metrics.Requests(**{name[2:]: values for name, values in arrays.items() if name.startswith("r_")})
    timeline = {name[2:]: values for name, values in arrays.items() if name.startswith("t_")}
    paths = {name[2:]: (values[0], values[1]) for name, values in arrays.items() if name.startswith("p_")}
    return Result(text["meta"], requests, text["counters"], timeline, text["tallies"], paths)


def prune(most_bytes: int = MOST_BYTES, place: Path | None = None, pattern: str = "*.npz") -> None:
    """Delete the results unused for longest until the rest fit ``most_bytes``."""
    with contextlib.suppress(OSError):
        found = (place or folder()).glob(pattern)
        kept = sorted(((f.stat().st_mtime, f.stat().st_size, f) for f in found), reverse=True)
        total = 0
        for _, size, file in kept:
            total += size
            if total > most_bytes:
                file.unlink(missing_ok=True)
