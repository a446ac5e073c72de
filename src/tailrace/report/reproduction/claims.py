"""What the paper claims, what became of it, and under which profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..facts import join
from ..markup import code, escape, paragraph, table
from .study import Study

__all__ = ["claims_section", "counted", "tested"]

WORDS: Final = {True: "holds", False: "**does not hold**"}
UNTESTED: Final = "not tested"
"""How the reason begins where the runs were not made; else the seeds were too few to tell."""
UNDECIDED: Final = "undecided"
BARS: Final = "Where a claim gives a margin in brackets, the margin is ours: the paper says it in words."
Claim = Mapping[str, Mapping[str, Any]]
"""One claim's record by profile."""


def claims_section(study: Study, bars: str = BARS) -> str:
    """A table of the claims, and those that fail under the first profile apart; empty if there are none.

    ``bars``: whose the margins are.
    """
    claims = _by_claim(study)
    if not claims:
        return ""
    several = len(study.profiles) > 1
    headings = ["experiment", "claim", *([code(p) for p in study.profiles] if several else ["result"]), "why"]
    rows = [
        [
            experiment,
            escape(claim),
            *(_word(found.get(p)) for p in study.profiles),
            _why(study, found),
        ]
        for (experiment, claim), found in claims.items()
    ]
    why = f"{bars} The reasons are those under {code(study.main)}." if several else bars
    parts = ["## Claims", paragraph(counted(study), why), table(headings, rows, len(headings)), _failing(study, claims)]
    return "\n\n".join(part for part in parts if part)


def counted(study: Study) -> str:
    """How many claims hold under the first profile, in a sentence; empty if there are none."""
    found = [_word(record[study.main]) for record in _by_claim(study).values() if study.main in record]
    if not found:
        return ""
    parts = [f"bears out {found.count(WORDS[True])}", f"contradicts {found.count(WORDS[False])}"]
    parts += [f"leaves {found.count(word)} {word}" for word in (UNDECIDED, UNTESTED) if word in found]
    who = (
        f"the profile {code(study.main)} {join(parts)}"
        if len(study.document.get("profiles") or {})
        else (f"the study {join(parts)}")
    )
    return f"Of the paper's claims ({len(found)} in all) {who}."


def tested(record: Mapping[str, Any]) -> bool:
    """Whether the runs for a claim were made."""
    return not str(record["why"]).startswith(UNTESTED)


def _word(record: Mapping[str, Any] | None) -> str:
    """What became of a claim, in a word or two."""
    if record is None:
        return UNTESTED
    return WORDS.get(record["holds"], UNDECIDED if tested(record) else UNTESTED)


def _by_claim(study: Study) -> dict[tuple[str, str], dict[str, Mapping[str, Any]]]:
    claims: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for record in study.document.get("claims") or []:
        claims.setdefault((record["experiment"], record["claim"]), {})[record["profile"]] = record
    return claims


def _why(study: Study, found: Claim) -> str:
    """The reason under the first profile, or under the first there is, named."""
    if study.main in found:
        return escape(found[study.main]["why"])
    profile = next(iter(found))
    return f"{code(profile)}: {escape(found[profile]['why'])}"


def _failing(study: Study, claims: Mapping[tuple[str, str], Claim]) -> str:
    lines = []
    for (experiment, claim), found in claims.items():
        if study.main not in found or found[study.main]["holds"] is not False:
            continue
        text = f"- {escape(claim.rstrip('.'))} ({experiment}): {escape(found[study.main]['why'].rstrip('.'))}."
        lines.append(f"{text} {_elsewhere(study, found)}".rstrip())
    under = f" under {code(study.main)}" if study.document.get("profiles") else ""
    return "\n".join([f"These do not hold{under}:", "", *lines]) if lines else ""


def _elsewhere(study: Study, found: Claim) -> str:
    others = {p: found[p] for p in study.profiles[1:] if p in found and found[p]["holds"] is not None}
    if not others:
        return ""
    holding = [f"{code(p)} ({escape(r['why'].rstrip('.'))})" for p, r in others.items() if r["holds"]]
    if holding:
        return f"Holds under {join(holding)}."
    return f"Nor under {join([code(p) for p in others])}."
