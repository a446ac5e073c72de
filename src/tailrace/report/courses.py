"""A value that policies kept over a run, such as UniBoost's γ: a step line a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ..sim.paths import thin
from .marks import label_ends, log_axis
from .style import Style
from .timeline import since_first, time_unit

if TYPE_CHECKING:
    from ..sim.run import Result

__all__ = ["draw", "names", "reading", "titled"]

UNITS: Final = {"_per_s": "1/s", "_s": "s", "_tokens": "tokens"}
"""By the end of a name; the first that fits."""
DECADES: Final = 30.0
"""From this ratio of the highest to the lowest on, the axis is logarithmic."""


def names(results: Sequence[Result]) -> list[str]:
    """Every value that one of them kept over time and that is finite somewhere, each once."""
    found = dict.fromkeys(name for result in results for name in result.paths)
    return [name for name in found if any(len(_known(name, result)[1]) for result in results)]


def titled(name: str) -> str:
    """``gamma_per_s`` as ``gamma (1/s)``."""
    for end, unit in UNITS.items():
        if name.endswith(end):
            return f"{name.removesuffix(end).replace('_', ' ')} ({unit})"
    return name.replace("_", " ")


def draw(axes: Any, name: str, rows: Sequence[tuple[str, Style, Result]]) -> None:
    """Fill ``axes`` with a line for each ``(label, style, result)`` that kept it."""
    lines = [(label, style, *_known(name, result)) for label, style, result in rows]
    lines = [line for line in lines if len(line[2])]
    unit, divisor = time_unit(max(float(times[-1]) for _, _, times, _ in lines))
    values = np.concatenate([line[3] for line in lines])
    for _, style, times, line in lines:
        look = {**style.drawn(), "markevery": [len(line) - 1]}
        axes.plot(times / divisor, line, drawstyle="steps-post", **look)
    if values.min() > 0 and values.max() >= DECADES * values.min():
        log_axis(axes.yaxis, values.tolist(), float(values.min()) / 10)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"time since the first arrival ({unit})")
    axes.set_ylabel(titled(name))
    label_ends(axes, [(label, style, times[-1] / divisor, line[-1]) for label, style, times, line in lines])


def reading(name: str, results: Mapping[str, Result]) -> str:
    """``gamma (1/s) ends at 0.0041 under uniboost (from 0.0012 to 0.006)``, each policy."""
    parts = []
    for label, result in results.items():
        _, values = _known(name, result)
        if len(values):
            parts.append(f"at {values[-1]:.3g} under {label} (from {values.min():.3g} to {values.max():.3g})")
    return f"{titled(name)} ends {', '.join(parts)}"


def _known(name: str, result: Result) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times since the first arrival and finite values, thinned; empty if it kept none."""
    times, values = thin(result.paths.get(name, (np.zeros(0), np.zeros(0))))
    held = np.isfinite(values)
    return since_first(times, result)[held], values[held]
