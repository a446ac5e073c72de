"""A study that is to be run: how much of the paper, on how many processes; and what that comes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .cells import Cell
from .points import Point

__all__ = ["Planned", "Study"]

S = TypeVar("S")


@dataclass(frozen=True)
class Study(Generic[S]):
    """What is run of a paper (its scope), and how."""

    scope: S
    workers: int = 0
    cache: bool = True


class Planned:
    """A study whose cells are known."""

    study: Study[Any]
    cells: list[Cell]

    @property
    def points(self) -> list[Point]:
        """Each once."""
        return list(dict.fromkeys(cell.point for cell in self.cells))

    @property
    def runs(self) -> int:
        """Runs that the study makes or finds kept."""
        return len(self.points) * int(self.study.scope.seeds)
