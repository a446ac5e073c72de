"""Prompt and output lengths of a workload: distribution function and density, with mean, P50, P95, P99 marked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from . import saving
from .marks import log_axis
from .svg import INK, Canvas, clean, drawing

if TYPE_CHECKING:
    from ..workloads.workload import Workload

__all__ = ["density", "write_plot"]

WIDTH, HEIGHT = 1000.0, 640.0
KINDS: Final = (("prompt", "#0072B2"), ("output", "#D55E00"))
"""Field and colour: two of Okabe and Ito's, apart for the colour-blind."""
MARKS: Final[dict[str, Any]] = {"mean": "solid", "P50": (0, (6, 2)), "P95": (0, (3, 2)), "P99": (0, (1, 1.5))}
BINS: Final = 64
POINTS: Final = 2000
"""Steps of a distribution function; more cannot be seen."""


def write_plot(workload: Workload, path: str | Path) -> Path:
    """Draw ``workload``'s lengths to ``path``, PNG or SVG by its suffix; the same workload gives the same bytes.

    Raises UserError for another suffix, without matplotlib, or where the file cannot be written.
    """
    saving.check_suffix(path)
    with drawing("lengths"):
        return saving.write(_figure(workload), path)


def density(tokens: Any) -> tuple[Any, Any]:
    """``(edges, percent)`` of a histogram over the logarithm: percent of requests a doubling of the length."""
    low, high = int(tokens.min()), int(tokens.max())
    # Edges between whole numbers, so that no bin is empty for want of a number in it.
    edges = np.unique(np.floor(np.geomspace(low, high + 1, BINS + 1))) - 0.5
    edges = np.append(edges[edges < high], high + 0.5)
    counts, _ = np.histogram(tokens, edges)
    return edges, 100 * counts / len(tokens) / np.diff(np.log2(edges))


def _figure(workload: Workload) -> Any:
    canvas = Canvas(WIDTH, HEIGHT)
    canvas.text(62, 26, clean(workload.name, 60), fontsize=14, fontweight="bold")
    canvas.text(938, 26, f"{len(workload):,} requests", ha="right")
    for row, (kind, color) in enumerate(KINDS):
        tokens = getattr(workload, f"{kind}_tokens")
        at = {"mean": float(tokens.mean())}
        at |= {name: float(np.quantile(tokens, int(name[1:]) / 100)) for name in MARKS if name != "mean"}
        top = 52 + 300 * row
        left = canvas.axes(62, top, 490, top + 230)
        right = canvas.axes(566, top, 938, top + 230)
        _cdf(left, kind, color, tokens)
        _density(right, kind, color, tokens)
        for axes in (left, right):
            _marks(axes, at)
            log_axis(axes.xaxis, [float(tokens.min()), float(tokens.max())], 0.5)
            axes.xaxis.set_major_formatter(lambda value, _: _tick(value))
            axes.set_xlabel(f"{kind} tokens")
        _key(left, at)
    return canvas.figure


def _tick(tokens: float) -> str:
    """Short enough for one decade a label."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if tokens >= max(size, 1e4):
            return f"{tokens / size:,.4g}{unit}"
    return f"{tokens:,.0f}" if tokens >= 100 else f"{tokens:.3g}"


def _cdf(axes: Any, kind: str, color: str, tokens: Any) -> None:
    values, counts = np.unique(tokens, return_counts=True)
    share = 100 * np.cumsum(counts) / len(tokens)
    if len(values) > POINTS:
        kept = np.unique(np.searchsorted(share, np.linspace(share[0], 100, POINTS)).clip(max=len(values) - 1))
        values, share = values[kept], share[kept]
    axes.step(np.append(values, values[-1]), np.append(share, 100), where="post", color=color, linewidth=2)
    axes.set_ylim(0, 103)
    axes.set_ylabel(f"{kind}s at most so long (%)")


def _density(axes: Any, kind: str, color: str, tokens: Any) -> None:
    edges, percent = density(tokens)
    axes.stairs(percent, edges, color=color, fill=True, alpha=0.25)
    axes.stairs(percent, edges, color=color, linewidth=1.4)
    axes.set_ylim(0, 1.08 * float(percent.max()))
    axes.set_ylabel(f"{kind}s (density, % a doubling)")


def _marks(axes: Any, at: dict[str, float]) -> None:
    for name, value in at.items():
        axes.axvline(value, color=INK, linewidth=1.3, linestyle=MARKS[name], zorder=3)


def _key(axes: Any, at: dict[str, float]) -> None:
    """Which line is which, with its value, where a rising curve leaves room."""
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=INK, linewidth=1.3, linestyle=MARKS[name]) for name in at]
    labels = [f"{name} {value:,.0f}" for name, value in at.items()]
    legend = axes.legend(lines, labels, loc="upper left", framealpha=0.92, edgecolor="none", facecolor="white")
    legend.set_zorder(4)
