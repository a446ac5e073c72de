"""What is run for each figure and table: cells, each a row's place and the point behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..cells import Cell
from ..traffic import Windows
from .choices import choices
from .profiles import REFERENCE_RPS, Profile, label

__all__ = ["EXPERIMENTS", "PHI_RPS", "POLICIES", "Scope", "cells"]

EXPERIMENTS: Final = ("fig2", "fig3", "fig4", "fig5", "table2", "choices")
POLICIES: Final = ("fcfs", "psf", "aa", "qba")
WAITS: Final = ("wait_mean_s", "wait_p99_s")
BY_CLASS: Final = ("wait_mean_s", "short_wait_p99_s", "long_wait_p99_s")
OF_WINDOWS: Final = (
    *("wait_mean_s", "wait_p99_s", "short_wait_p99_s", "long_wait_p99_s", "ttft_p99_s"),
    *("tokens_per_s", "utilisation", "over_limit_steps"),
)
CALIBRATION_RPS: Final = 30
PHI_RPS: Final = (25, 27, 29, 31, 33)
"""§IV-A5: loads at which promoted fractions are measured."""
WINDOWS: Final = 100
PAPER_FACTOR: Final = 0.44
"""§IV-E: all lengths of the production trace are multiplied by it."""
WINDOW_REQUESTS: Final = 1000


@dataclass(frozen=True)
class Scope:
    """How much of the paper is run."""

    only: tuple[str, ...]
    seeds: int
    quick: bool
    azure: str = ""
    """The production trace; without it table2 is not run."""
    demand_factor: float = 0.0
    """What brings the trace's token demand to the paper's (`windows.demand_factor`)."""

    @property
    def windows(self) -> int:
        """How many of the windows are run."""
        return WINDOWS // self.stride

    @property
    def stride(self) -> int:
        """Of so many windows one is run."""
        return 4 if self.quick else 1

    @property
    def loads(self) -> Sequence[int]:
        return (26, 29, 32, 34, 36, 40) if self.quick else range(26, 41)

    @property
    def quotas(self) -> Sequence[int]:
        return (2, 4, 8, 14) if self.quick else range(2, 15, 2)

    @property
    def quantiles(self) -> Sequence[float]:
        return (0.5, 0.8, 0.95, 1.0) if self.quick else [round(0.5 + 0.05 * i, 2) for i in range(11)]

    @property
    def errors(self) -> Sequence[float]:
        return (0.0, 0.05, 0.1, 0.2, 0.4) if self.quick else [round(0.05 * i, 2) for i in range(9)]


def cells(profile: Profile, scope: Scope) -> list[Cell]:
    """Everything that ``scope`` asks for under ``profile``."""
    make = {"fig2": _loads, "fig3": _parameters, "fig4": _errors, "fig5": _errors, "table2": _windows}
    out = [cell for name in scope.only if name in make for cell in make[name](name, profile, scope)]
    if "choices" in scope.only and profile.name == "paper" and not scope.quick:
        out += [
            Cell("choices", policy, {"choice": c.choice, "value": c.value, "default": c.default}, point, BY_CLASS)
            for c in choices(profile)
            for policy, (_, _, error), point in c.points
            if error == 0
        ]
    return out


def _loads(name: str, profile: Profile, scope: Scope) -> list[Cell]:
    """Fig. 2: λ from 26 to 40."""
    return [
        Cell(name, policy, {"rate_rps": rate}, profile.point(policy, rate), (*WAITS, "e2e_mean_s"))
        for rate in scope.loads
        for policy in POLICIES
    ]


def _parameters(name: str, profile: Profile, scope: Scope) -> list[Cell]:
    """Fig. 3: the quota with γ = 0.8, and γ with k = 5; the others are baselines."""
    quotas = [Cell(name, "qba", {"k": k}, profile.point("qba", k=k), WAITS) for k in scope.quotas]
    quantiles = [
        Cell(name, policy, {"aging_quantile": q}, profile.point(policy, aging_quantile=q), WAITS)
        for q in scope.quantiles
        for policy in ("qba", "aa")
    ]
    return [*quotas, *quantiles, *(Cell(name, policy, {}, profile.point(policy), WAITS) for policy in POLICIES)]


def _errors(name: str, profile: Profile, scope: Scope) -> list[Cell]:
    """Fig. 4, short taken for long, and Fig. 5, long taken for short."""
    error = {"fig4": "eps_sl", "fig5": "eps_ls"}[name]
    return [
        Cell(name, policy, {error: rate}, profile.point(policy, REFERENCE_RPS, label(error, rate)), BY_CLASS)
        for rate in scope.errors
        for policy in POLICIES
    ]


def _windows(name: str, profile: Profile, scope: Scope) -> list[Cell]:
    """Table II, as the paper cuts the trace, and with its token demand matched."""
    if not scope.azure:
        return []
    file, rate, every = scope.azure, float(REFERENCE_RPS), scope.stride
    protocols = {
        "paper": Windows(file, WINDOWS, rate, PAPER_FACTOR, stride=every),
        "demand_matched": Windows(file, WINDOWS, rate, scope.demand_factor, WINDOW_REQUESTS, every),
    }
    return [
        Cell(name, policy, {"protocol": protocol}, profile.on(windows, policy), OF_WINDOWS)
        for protocol, windows in protocols.items()
        for policy in POLICIES
    ]
