"""What is run for each figure and table: cells, each a row's place and the point behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .... import spec
from ..cells import Cell
from ..points import Point
from ..tails import LEVELS, level_name
from ..traffic import Generated
from .settings import (
    GAMMA_FIXED,
    HEAVY,
    MIXES,
    POLICIES,
    REFERENCE_SEEDS,
    RULES,
    SKIPPED,
    SYSTEMS,
    Capacities,
    Setting,
    engine,
    point,
    uniboost,
)
from .varied import DEFAULTS, VARIED

__all__ = ["BURST_CV", "EXPERIMENTS", "RHO", "TIGHT_KV", "Scope", "cells", "settings"]

EXPERIMENTS: Final = (
    *("toys", "lengths", "main", "loads", "bursts", "models", "percentiles", "ablation", "slo", "starvation"),
    *("gamma", "staircase", "memory", "sensitivity", "tails", "noise", "capabilities"),
)
RHO: Final = 0.97
LONGER: Final = 4
"""Runs of short requests have so many times more."""
NEAR_RHO: Final = 0.99
BURST_CV: Final = 3.5
TIGHT_KV: Final = 150_000
"""KV tokens of the study of memory: a third of what the 8B model has."""
STARVED: Final = Setting(lengths="constant:125:100@0.9+constant:2000:6000@0.1")
"""§6.5: nine in ten short, one long."""
TIGHT: Final = Setting(kv_tokens=TIGHT_KV)
SPIKY: Final = Setting(mix="azure")
SPIKY_RHO: Final = 0.85
SPIKE_REQUESTS: Final = 50 * 2.5 / 1.5
"""Of a spike of one second: its rate is Pareto from 50 requests/s with a tail index of 2.5."""
STARTS: Final = (0.001, 0.01, 0.1, 1.0)
"""γ at the start, three decades."""
NOISE: Final = (0.0, 0.25, 0.5, 1.0)

MAIN: Final = (
    *(f"{of}_{what}_s" for of in ("ttft", "e2e", "tbt") for what in ("mean", "p50", "p95", "p99")),
    *("requests_per_s", "preemptions_per_request", "swapped_gb", "swap_tax", "recompute_tax"),
    *("preempted_mean_s", "completed"),
)
FEW: Final = ("ttft_mean_s", "ttft_p95_s", "e2e_mean_s", "e2e_p99_s", "tbt_mean_s", "requests_per_s")
SHOWN: Final = ("p50", "p75", "p90", "p95", "p99", "p999")
WIDE: Final = tuple(f"{of}_{at}_s" for of in ("ttft", "e2e", "tbt") for at in SHOWN)
KNEES: Final = ("e2e_mean_s", "e2e_p90_s", "e2e_p99_s", "swapped_gb")
ATTAINED: Final = tuple(f"{of}_{level_name(q)}_s" for of in ("ttft", "e2e") for q in LEVELS)
STARVATION: Final = (
    *("short_e2e_p99_s", "long_e2e_mean_s", "long_e2e_p99_s", "long_preempted_mean_s", "long_preempted_p99_s"),
    *("long_slope_s",),
)
MEMORY: Final = (*FEW, "preemptions_per_request", "swapped_gb", "revisions_over_bound", "escapes", "kv_peak_share")

AGAINST: Final = ("srpt_decode_first", "srpt_swap", "sarathi", "uniboost_low", "uniboost_high")
"""Whom a sweep compares, where not everybody is."""


@dataclass(frozen=True)
class Scope:
    """How much of the paper is run."""

    only: tuple[str, ...]
    seeds: int
    quick: bool

    @property
    def requests(self) -> int:
        """A run's length."""
        return 600 if self.quick else 3000

    @property
    def reference_seeds(self) -> int:
        """Of the runs that loads are stated by."""
        return 3 if self.quick else REFERENCE_SEEDS

    def has(self, *names: str) -> bool:
        """Whether any of the experiments is wanted."""
        return any(name in self.only for name in names)


def mixes(scope: Scope) -> list[str]:
    """Those of the main table that are wanted, the article's first."""
    if not scope.has("main", "slo", "tails", "capabilities"):
        return []
    if scope.quick:
        return ["mix-2", HEAVY] if scope.has("tails", "capabilities") else ["mix-2"]
    return list(MIXES)


def settings(scope: Scope) -> list[Setting]:
    """Whose reference runs are needed."""
    found = [Setting(mix=mix) for mix in mixes(scope)]
    if scope.has("loads", "bursts", "gamma", "sensitivity", "noise"):
        found.append(Setting())
    if scope.has("models"):
        found += [Setting(system) for system in _systems(scope)]
    if scope.has("percentiles"):
        found.append(_percentiles(scope))
    if scope.has("ablation"):
        found.append(Setting("codellama-34b"))
    if scope.has("starvation"):
        found.append(STARVED)
    if scope.has("gamma"):
        found.append(SPIKY)
    if scope.has("memory"):
        found.append(TIGHT)
    return list(dict.fromkeys(found))


def _systems(scope: Scope) -> list[str]:
    return ["llama-3-8b"] if scope.quick else list(SYSTEMS)


def _percentiles(scope: Scope) -> Setting:
    return Setting("llama-3-8b" if scope.quick else "qwen-72b", "reasoning")


def named(scope: Scope, names: Sequence[str] = tuple(POLICIES)) -> dict[str, str]:
    """Of ``names`` the policies that are run; a quick study leaves some out."""
    left_out = ("srpt_recompute", "ltr", "spf") if scope.quick else ()
    return {name: POLICIES[name] for name in names if name not in left_out}


Maker = Callable[[Scope, Capacities], list[Cell]]


def cells(scope: Scope, capacities: Capacities) -> list[Cell]:
    """Everything that ``scope`` asks for."""
    out = [cell for mix in mixes(scope) for cell in _main(mix, scope, capacities)]
    for name, make in MAKERS.items():
        if name in scope.only:
            out += make(scope, capacities)
    return out


def _main(mix: str, scope: Scope, capacities: Capacities) -> list[Cell]:
    """§6.1 on every mix; what §6.4 needs of two of them."""
    setting = Setting(mix=mix)
    rate = capacities.rate(setting, RHO)
    out = []
    for name, policy in named(scope).items():
        at = point(setting, policy, rate, scope.requests)
        out.append(Cell("main", name, {"mix": mix}, at, MAIN))
        if mix in ("mix-2", "reasoning") and "slo" in scope.only:
            out.append(Cell("slo", name, {"mix": mix}, at, ATTAINED))
    return out


def _sweep(
    experiment: str,
    setting: Setting,
    rhos: Sequence[float],
    names: Sequence[str],
    metrics: tuple[str, ...],
    scope: Scope,
    capacities: Capacities,
) -> list[Cell]:
    return [
        Cell(
            experiment,
            name,
            {"rho": rho},
            point(setting, policy, capacities.rate(setting, rho), scope.requests),
            metrics,
        )
        for rho in rhos
        for name, policy in named(scope, names).items()
    ]


def _loads(scope: Scope, capacities: Capacities) -> list[Cell]:
    rhos = (0.9, RHO, 1.02) if scope.quick else (0.8, 0.9, 0.95, RHO, 0.98, 0.99, 1.0, 1.02, 1.05)
    return _sweep("loads", Setting(), rhos, AGAINST, FEW, scope, capacities)


def _ablation(scope: Scope, capacities: Capacities) -> list[Cell]:
    """§6.3: CodeLlama-34B, whose KV is short."""
    rhos = (0.8, 0.97) if scope.quick else (0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05)
    names = ("mlfq", "dist_boost", "uniboost_base", "memguard", "uniboost_low", "uniboost_high")
    return _sweep("ablation", Setting("codellama-34b"), rhos, names, KNEES, scope, capacities)


def _bursts(scope: Scope, capacities: Capacities) -> list[Cell]:
    setting, arrivals = Setting(), f"gamma:cv={BURST_CV}"
    rate = capacities.rate(setting, RHO)
    return [
        Cell("bursts", name, {"cv": BURST_CV}, point(setting, policy, rate, scope.requests, arrivals=arrivals), MAIN)
        for name, policy in named(scope).items()
    ]


def _models(scope: Scope, capacities: Capacities) -> list[Cell]:
    out = []
    for system in _systems(scope):
        setting = Setting(system)
        rate = capacities.rate(setting, RHO)
        for name, policy in named(scope, (*RULES, *AGAINST[2:])).items():
            out.append(Cell("models", name, {"model": system}, point(setting, policy, rate, scope.requests), MAIN))
    return out


def _percentile_cells(scope: Scope, capacities: Capacities) -> list[Cell]:
    """§6.2: Qwen-72B, reasoning, ρ = 0.99."""
    setting = _percentiles(scope)
    rate = capacities.rate(setting, NEAR_RHO)
    return [
        Cell("percentiles", name, {"model": setting.system}, point(setting, policy, rate, scope.requests), WIDE)
        for name, policy in named(scope).items()
    ]


def _starvation(scope: Scope, capacities: Capacities) -> list[Cell]:
    """§6.5."""
    rate = capacities.rate(STARVED, NEAR_RHO)
    names = ("sarathi", "sjf", "las", *RULES, "uniboost_low", "uniboost_high")
    return [
        Cell("starvation", name, {}, point(STARVED, policy, rate, LONGER * scope.requests), STARVATION)
        for name, policy in named(scope, names).items()
    ]


def spiky(policy: str, scope: Scope, capacities: Capacities) -> Point:
    """Arrivals like those of Azure Functions (§5.4) on Azure's lengths: half of the load in spikes."""
    rate = capacities.rate(SPIKY, SPIKY_RHO)
    gap_s = SPIKE_REQUESTS / (rate / 2)  # what a spike of a second brings, at half of the rate
    values = {"base_rps": float(f"{rate / 2:.4g}"), "spike_rps": 50, "spike_s": 1.0, "gap_s": float(f"{gap_s:.4g}")}
    text = spec.write("spikes", {**values, "requests": LONGER * scope.requests, "lengths": SPIKY.drawn})
    return Point(Generated(text), policy, engine(SPIKY), SPIKY.latency, "oracle", SKIPPED, "tails")


def _gamma(scope: Scope, capacities: Capacities) -> list[Cell]:
    """§5.4: where γ ends from several starts."""
    setting = Setting()
    rate = capacities.rate(setting, RHO)
    metrics = ("gamma_per_s", "gamma_fits", "e2e_p99_s", "ttft_p95_s")
    starts = [
        Cell("gamma", "uniboost", {"start": start}, point(setting, text, rate, scope.requests), metrics)
        for start in STARTS
        for text in [f"uniboost:gamma_per_s={start},gamma_max_per_s=1"]
    ]
    names = ("sarathi", "srpt_decode_first", "uniboost_low", "uniboost_high")
    return starts + [
        Cell("spikes", name, {}, spiky(policy, scope, capacities), (*FEW, "gamma_per_s"))
        for name, policy in named(scope, names).items()
    ]


def _memory(scope: Scope, capacities: Capacities) -> list[Cell]:
    """§5.3 where KV is short."""
    rate = capacities.rate(TIGHT, RHO)
    gamma = f"gamma_per_s={GAMMA_FIXED}"
    wanted = {
        "uniboost_base": f"uniboost_base:{gamma},hysteresis_s=1",
        "uniboost_base, δ = 20 s": f"uniboost_base:{gamma},hysteresis_s=20",
        "memguard": f"memguard:{gamma}",
        "memguard, no lock": f"memguard:{gamma},lock=none",
        "uniboost_low": POLICIES["uniboost_low"],
        "srpt_swap": POLICIES["srpt_swap"],
        "srpt_decode_first": POLICIES["srpt_decode_first"],
    }
    return [
        Cell("memory", name, {"kv_tokens": TIGHT_KV}, point(TIGHT, policy, rate, scope.requests), MEMORY)
        for name, policy in wanted.items()
    ]


def _sensitivity(scope: Scope, capacities: Capacities) -> list[Cell]:
    setting = Setting()
    rate = capacities.rate(setting, RHO)
    out = []
    for what, values in VARIED.items():
        if scope.quick and what not in ("γ_max, 1/s", "k, tokens"):
            continue
        for shown, (gamma, policy, more) in values.items():
            at = {"varied": what, "value": shown, "default": shown == DEFAULTS[what]}
            made = point(setting, uniboost(gamma, **policy), rate, scope.requests, **more)
            out.append(Cell("sensitivity", "uniboost", at, made, FEW))
    return out


def _noise(scope: Scope, capacities: Capacities) -> list[Cell]:
    """§2.2: policies that are told lengths with an error."""
    setting = Setting()
    rate = capacities.rate(setting, RHO)
    told = named(scope, ("sjf", "srpt_decode_first", "srpt_swap", "ltr"))
    out = [
        Cell("noise", name, {"cv": cv}, point(setting, policy, rate, scope.requests, _noisy(cv)), FEW)
        for cv in ((0.0, 0.5, 1.0) if scope.quick else NOISE)
        for name, policy in told.items()
    ]
    for name in ("uniboost_low", "uniboost_high"):
        out.append(Cell("noise", name, {"cv": 0.0}, point(setting, POLICIES[name], rate, scope.requests), FEW))
    return out


def _noisy(cv: float) -> str:
    return f"noise:cv={cv:g}" if cv else "oracle"


def _blind(scope: Scope, capacities: Capacities) -> list[Cell]:
    """Who needs predictions: the same run, told nothing."""
    setting = Setting()
    rate = capacities.rate(setting, RHO)
    return [
        Cell("blind", name, {}, point(setting, policy, rate, scope.requests, "none"), ("e2e_mean_s",))
        for name, policy in named(scope).items()
        if name != "srpt_recompute"
    ]


MAKERS: Final[Mapping[str, Maker]] = {
    "loads": _loads,
    "bursts": _bursts,
    "models": _models,
    "percentiles": _percentile_cells,
    "ablation": _ablation,
    "starvation": _starvation,
    "gamma": _gamma,
    "memory": _memory,
    "sensitivity": _sensitivity,
    "noise": _noise,
    "capabilities": _blind,
}
