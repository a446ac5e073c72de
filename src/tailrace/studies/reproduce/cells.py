"""What stands where in a paper: cells, each a row's place and the point behind it, and their samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .measure import F8
from .points import Point, Samples, column

__all__ = ["Cell", "View"]


@dataclass(frozen=True)
class Cell:
    """A point, what of it is reported, and where it stands in the paper."""

    experiment: str
    policy: str
    at: Mapping[str, Any]
    point: Point
    metrics: tuple[str, ...]


class View:
    """The samples of a study by where they stand in the paper."""

    def __init__(self, cells: Sequence[Cell], samples: Samples) -> None:
        self._points = {(c.experiment, c.policy, frozenset(c.at.items())): c.point for c in cells}
        self._samples = samples

    def of(self, experiment: str, policy: str, metric: str, **at: Any) -> F8:
        """(seeds,) values. Raises KeyError for what was not run."""
        return column(self._samples, self._points[experiment, policy, frozenset(at.items())], metric)

    def values(self, experiment: str, name: str) -> list[Any]:
        """The values of ``name`` that were run, ascending. Raises KeyError if none was."""
        found = {v for figure, _, at in self._points for key, v in at if (figure, key) == (experiment, name)}
        if not found:
            raise KeyError(name)
        return sorted(found)
