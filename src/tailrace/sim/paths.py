"""Values that a policy kept over a run (`Policy.paths`): gathered, and thinned for people and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from ..hooks import Policy

__all__ = ["POINTS", "Path", "gather", "summary", "thin"]

POINTS: Final = 200
"""Points of a path in a summary and in a figure, at most."""

Path = tuple[NDArray[np.float64], NDArray[np.float64]]
"""``(times, values)``, (n,) each: times in seconds on the engine's clock, in order."""


def gather(policy: type[Policy], state: Any) -> dict[str, Path]:
    """The policy's paths with at least one point, by name.

    Raises UserError for a name that is no identifier, for times and values that do not go together,
    and for times out of order.
    """
    found: dict[str, Path] = {}
    for name, (times, values) in policy.paths(state).items():
        path = np.array(times, dtype=np.float64), np.array(values, dtype=np.float64)
        if not name.isidentifier():
            raise UserError(f"policy {policy.name}: paths: {name!r} must be letters, digits and underscores")
        if path[0].ndim != 1 or path[0].shape != path[1].shape:
            shapes = f"times of shape {path[0].shape}, values of shape {path[1].shape}"
            raise UserError(f"policy {policy.name}: paths: {name}: {shapes}; give two lists of one length")
        if not (np.diff(path[0]) >= 0).all():
            raise UserError(f"policy {policy.name}: paths: {name}: times must not go back")
        if len(path[0]):
            found[name] = path
    return found


def thin(path: Path, most: int = POINTS) -> Path:
    """At most ``most`` >= 2 points of it, evenly by number; the first and the last are kept."""
    times, values = path
    if len(times) <= most:
        return path
    kept = np.linspace(0, len(times) - 1, most).round().astype(np.int64)
    return times[kept], values[kept]


def summary(paths: Mapping[str, Path]) -> dict[str, Any]:
    """``{"paths": …}`` of a result, thinned; empty without any."""
    shown = {name: thin(path) for name, path in paths.items()}
    told = {name: {"time_s": times.tolist(), "value": values.tolist()} for name, (times, values) in shown.items()}
    return {"paths": told} if told else {}
