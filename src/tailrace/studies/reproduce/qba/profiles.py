"""Three readings of what the paper does not state, and the settings that all share."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from .... import params, spec
from ....errors import UserError, nearest
from ... import runs
from ..points import Point
from ..traffic import Generated

__all__ = ["PROFILES", "REFERENCE_RPS", "Profile", "choose", "label"]

REFERENCE_RPS: Final = 32
"""λ of all but the load sweep."""
AGING: Final = ("aa", "qba")


@dataclass(frozen=True)
class Profile:
    """A set of choices that makes the paper's simulator runnable."""

    name: str
    summary: str
    requests: int = 5000
    """A run's length."""
    engine: Mapping[str, Any] = field(default_factory=dict)
    """What differs from the engine preset ``qba``."""
    latency: Mapping[str, Any] = field(default_factory=dict)
    """What differs from the step times of §IV-A3."""
    aging: Mapping[str, Any] = field(default_factory=dict)
    """What differs from the defaults of AA and QBA."""
    qba: Mapping[str, Any] = field(default_factory=dict)
    """The same, of QBA alone."""
    skipped: float = 0.0
    """Share of the first requests left out of the waits."""

    def policy(self, name: str, **given: Any) -> str:
        """The policy as text, with ``given`` beside the profile's own; defaults are left out."""
        own = {**self.aging, **(self.qba if name == "qba" else {})} if name in AGING else {}
        return runs.parse_policy(spec.write(name, {**own, **given})).label

    def point(self, name: str, rate_rps: float = REFERENCE_RPS, predictions: str = "oracle", **given: Any) -> Point:
        """The policy under the synthetic load of §IV-A1."""
        text = spec.write("qba", {"rate_rps": rate_rps, "requests": self.requests})
        return self.on(Generated(text), name, predictions, **given)

    def on(self, traffic: Any, name: str, predictions: str = "oracle", **given: Any) -> Point:
        """The policy under other traffic."""
        engine, cost = spec.write("qba", dict(self.engine)), spec.write("piecewise", dict(self.latency))
        return Point(traffic, self.policy(name, **given), engine, cost, predictions, self.skipped)

    def show(self) -> dict[str, Any]:
        """As a JSON-able mapping."""
        return {
            "summary": self.summary,
            "requests": self.requests,
            "engine": spec.write("qba", self._rules()),
            "latency": spec.write("piecewise", dict(self.latency)),
            "aging": ",".join(f"{key}={value}" for key, value in self._aging().items()),
        }

    def _rules(self) -> dict[str, Any]:
        """The engine's rules that the paper leaves open, and what else differs from the preset."""
        rules = runs.parse_engine(spec.write("qba", dict(self.engine))).rules
        shown = ["projection", "kv_limit", *(["kv_short"] if rules.kv_limit == "enforced" else []), "blocked_head"]
        return {**{name: getattr(rules, name) for name in shown}, **self.engine}

    def _aging(self) -> dict[str, Any]:
        """All of the aging module's settings."""
        return params.show(runs.parse_policy(self.policy("qba")).params)

    def with_options(self, jitter: float, concurrency_s: float) -> Profile:
        """With the two options that the paper names and leaves off."""
        engine, cost = dict(self.engine), dict(self.latency)
        if jitter:
            engine["step_jitter"] = jitter
        if concurrency_s:
            cost["per_seq_s"] = concurrency_s
        return dataclasses.replace(self, engine=engine, latency=cost)


PROFILES: Final[Mapping[str, Profile]] = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            Profile(
                "paper",
                "KV is projected as what is live, this step's growth and the whole prompt; the hard limit is reported "
                "and not enforced; the aging module remembers the last 200 waits of predicted-long requests",
            ),
            Profile(
                "enforced",
                "KV is projected as what is live and the whole prompt; at the hard limit decodes stall, and where "
                "nobody can go on the newest is preempted; runs are half as long",
                requests=2500,
                engine={"projection": "live_prompt", "kv_limit": "enforced", "kv_short": "stall"},
            ),
            Profile(
                "all_history",
                "as paper, but the aging module remembers the waits of all started requests, without end",
                aging={"reference": "history_all", "window": 0},
            ),
        )
    }
)


def label(error: str, rate: float) -> str:
    """The prediction setting with one error rate; without any it is the one that all figures share."""
    return spec.write("label", {error: rate}) if rate else "oracle"


def choose(text: str) -> list[Profile]:
    """The profiles named in ``text``, or all. Raises UserError with the nearest name."""
    if not text.strip(" ,"):
        raise UserError(f"no profile in {text!r}: name some of {', '.join(PROFILES)}, or all")
    names = list(PROFILES) if text.strip() == "all" else spec.split_list(text)
    for name in names:
        if name not in PROFILES:
            raise UserError(f"unknown profile {name!r}{nearest(name, [*PROFILES, 'all'])}")
    return [PROFILES[name] for name in dict.fromkeys(names)]
