"""What a paper says in words, each sentence with what decides whether it holds here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from .cells import View

__all__ = ["MISSING", "Claim", "Claims", "Verdict"]

Verdict = tuple[bool | None, str]
"""Whether it holds (None: not known), and why."""
MISSING: Final = "not tested: the runs for it were not made"

V = TypeVar("V", bound=View)
Decide = Callable[[V], Verdict]


@dataclass(frozen=True)
class Claim(Generic[V]):
    """A sentence of the paper, and what decides whether it holds here."""

    experiment: str
    text: str
    decide: Decide[V]


class Claims(list[Claim[V]]):
    """A paper's claims, in the order in which they are reported."""

    def claim(self, experiment: str, text: str) -> Callable[[Decide[V]], Decide[V]]:
        """Decorate what decides the claim; it raises KeyError where the runs it needs were not made."""

        def wrap(decide: Decide[V]) -> Decide[V]:
            self.append(Claim(experiment, text, decide))
            return decide

        return wrap

    def judge(self, view: V, only: Sequence[str]) -> list[dict[str, Any]]:
        """Every claim as a JSON-able mapping: claim, experiment, holds (null: not known), why."""
        out = []
        for claim in self:
            holds: bool | None
            try:
                holds, why = claim.decide(view) if claim.experiment in only else (None, MISSING)
            except KeyError:
                holds, why = None, MISSING
            out.append({"experiment": claim.experiment, "claim": claim.text, "holds": holds, "why": why})
        return out
