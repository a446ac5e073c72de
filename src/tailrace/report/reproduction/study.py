"""Rows of a reproduction's document, found by what they are about."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...metrics.seeds import interval

__all__ = ["Curve", "Study", "Value"]


@dataclass(frozen=True)
class Value:
    """One number of the study and what the paper prints for it."""

    measured: float | None
    ci: tuple[float, float] | None = None
    """95 % over seeds."""
    paper: float | None = None
    seeds: int = 1
    by_seed: tuple[float | None, ...] = ()
    """Where the document has them; of two values they are paired."""

    @property
    def ratio(self) -> float | None:
        """Measured over printed, None where there is no such thing."""
        return self.measured / self.paper if self.measured is not None and self.paper else None

    def tied(self, other: Value) -> bool:
        """Whether the two are not told apart.

        Paired by seed: the 95 % interval of the difference holds zero. Without values by seed:
        the two intervals have a point in common; no if either has none.
        """
        if len(self.by_seed) == len(other.by_seed) > 1:
            pairs = zip(self.by_seed, other.by_seed, strict=True)
            gap = interval([a - b for a, b in pairs if a is not None and b is not None])
            return gap is None or gap[0] <= 0 <= gap[1]
        a, b = self.ci, other.ci
        return a is not None and b is not None and a[0] <= b[1] and b[0] <= a[1]


Curve = Mapping[float, Value]
"""Values by what was varied, in ascending order."""


class Study:
    """The document of a study, indexed."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.profiles: list[str] = [str(name) for name in document["settings"]["profiles"]]
        self.values: dict[tuple[str, str, str, str, Any], Value] = {}
        self.ats: dict[Any, dict[str, Any]] = {}
        for row in document["rows"]:
            at = _key(row["at"])
            self.ats[at] = dict(row["at"])
            self.values[(row["profile"], row["experiment"], row["policy"], row["metric"], at)] = _value(row)

    @property
    def main(self) -> str:
        """The profile that figures and sections are about: the first."""
        return self.profiles[0]

    def has(self, experiment: str, profile: str | None = None) -> bool:
        """Whether there is any row of ``experiment`` under the profile."""
        return any(key[:2] == (profile or self.main, experiment) for key in self.values)

    def value(
        self, experiment: str, policy: str, metric: str, at: Mapping[str, Any], profile: str | None = None
    ) -> Value | None:
        """The value there, None if there is no such row."""
        return self.values.get((profile or self.main, experiment, policy, metric, _key(at)))

    def curve(self, experiment: str, policy: str, metric: str, axis: str, profile: str | None = None) -> Curve:
        """Values over ``axis``, of the rows where nothing else was varied; empty if there are none."""
        wanted = (profile or self.main, experiment, policy, metric)
        found = {
            float(self.ats[key[4]][axis]): value
            for key, value in self.values.items()
            if key[:4] == wanted and list(self.ats[key[4]]) == [axis]
        }
        return dict(sorted(found.items()))

    def places(self, experiment: str, profile: str | None = None) -> list[dict[str, Any]]:
        """What ``experiment`` varied, each once, in the document's order."""
        keys = dict.fromkeys(key[4] for key in self.values if key[:2] == (profile or self.main, experiment))
        return [self.ats[key] for key in keys]


def _value(row: Mapping[str, Any]) -> Value:
    ends = row.get("ci")
    by_seed = tuple(row.get("by_seed") or ())
    span = None if ends is None or None in map(_finite, ends) else (float(ends[0]), float(ends[1]))
    return Value(_finite(row.get("measured")), span, _finite(row.get("paper")), int(row.get("seeds") or 0), by_seed)


def _finite(number: Any) -> float | None:
    return float(number) if number is not None and math.isfinite(number) else None


def _key(at: Mapping[str, Any]) -> Any:
    # Steps of 0.05 that were added up are still the same place.
    def plain(value: Any) -> Any:
        return round(float(value), 9) if isinstance(value, (int, float)) and not isinstance(value, bool) else value

    return tuple(sorted((name, plain(value)) for name, value in at.items()))
