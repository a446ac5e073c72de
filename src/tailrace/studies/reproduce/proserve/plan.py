"""What is run for each figure: cells, each a row's place and the point behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..cells import Cell
from .settings import MIXES, MODELS, PAPERS, POLICIES, SLIDES, Setting, budget, of, point
from .variants import ABLATIONS, DEFAULTS, MEMORY, STARVATION, VARIED

__all__ = [
    "EXPERIMENTS",
    "LOADS",
    "MAIN",
    "SERVED_LOAD",
    "TIGHT_LOAD",
    "TIGHT_MIX",
    "Scope",
    "cells",
    "loads",
    "mixes",
    "models",
]
__all__ += ["named"]

EXPERIMENTS: Final = (
    *("fig3", "fig45", "fig8", "fig12", "regimes", "ablation", "sensitivity", "weights", "starvation", "vtc"),
    *("noise", "slo", "memory", "estimator", "overhead"),
)
LOADS: Final = (0.5, 0.7, 0.85, 1.0, 1.2)
QUICK_LOADS: Final = (0.7, 1.0)
QUICK: Final = ("tailrace", "paper", "xllm", "prefill_first", "sarathi", "sarathi_priority", "edf", "srpt")
"""Policies of a quick study."""
LOOSE_TTFT_S: Final = 4.0
"""Of the token budget's figure: with a tight one there is no rise to be seen."""
BUDGETS: Final = (128, 192, 256, 384, 512, 768, 1024, 2048, 4096)
FIXED: Final = {"max_seqs": 256}
"""Of the figures at fixed batch capacity: vLLM's sequences; the tokens are profiled."""
RULES: Final = ("edf", "srpt", "sarathi")
"""EDF, SJF (by remaining work) and FCFS of the paper's motivation."""
WEIGHTS: Final = (1.0, 1.5, 2.0, 4.0, 8.0)
SCALES: Final = (0.6, 0.8, 1.0, 1.5, 2.0, 4.0)
NOISE: Final = (0.0, 0.05, 0.15)
SERVED_LOAD: Final = 3.0
"""At which both classes want more than their share of weights up to 4 gives them."""
SERVED_WEIGHTS: Final = (1.0, 2.0, 4.0)
TIGHT_LOAD: Final = 0.85
TIGHT_MIX: Final = "reasoning"
"""Its outputs are long, so KV grows long after a request was admitted."""
KV_SHARES: Final = (0.75, 1.0, 1.5)
"""Of tight memory."""

BY_CLASS: Final = (
    *("attainment", "tdg_ratio", "high_attainment", "low_attainment", "high_tdg_ratio", "low_tdg_ratio"),
)
MAIN: Final = (
    *BY_CLASS,
    *("ttft_attainment", "tpot_attainment", "ttft_mean_s", "ttft_p99_s", "tpot_mean_s", "tpot_p99_s", "e2e_p99_s"),
    *("wait_longest_s", "requests_per_s", "preemptions_per_request", "recompute_tax"),
)
FEW: Final = ("attainment", "tdg_ratio")
REGIMES: Final = (
    *(f"{name}_steps_share" for name in ("all_fit", "deadline", "deadline_and_density", "density", "unbounded")),
    *("urgent_share", "hopeless_share", "attainment", "requests_a_step"),
)
WAITED: Final = (*FEW, "wait_longest_s", "wait_p99_s", "low_wait_longest_s", "starving_share", "low_attainment")
KEPT: Final = (
    *(*FEW, "preemptions_per_request", "recompute_tax", "swap_tax", "swapped_gb", "host_full", "kv_peak_share"),
    "completed_share",
)


@dataclass(frozen=True)
class Scope:
    """How much of the paper is run."""

    only: tuple[str, ...]
    seeds: int
    quick: bool
    trace: str = ""
    """Azure's conversation trace; without it requests have its lengths and Poisson arrivals."""

    @property
    def shorter(self) -> float:
        """Share of the workload's duration that is run."""
        return 0.4 if self.quick else 1.0


def models(scope: Scope) -> Sequence[str]:
    return ("qwen2-7b",) if scope.quick else tuple(MODELS)


def mixes(scope: Scope) -> Sequence[str]:
    return ("azure",) if scope.quick else tuple(MIXES)


def loads(scope: Scope) -> Sequence[float]:
    return QUICK_LOADS if scope.quick else LOADS


def named(scope: Scope, names: Sequence[str] = tuple(POLICIES)) -> dict[str, str]:
    """Of ``names`` the policies that are run."""
    return {name: POLICIES[name] for name in names if not scope.quick or name in QUICK}


Maker = Callable[[Scope], list[Cell]]


def cells(scope: Scope, tight_kv_tokens: int = 0) -> list[Cell]:
    """Everything that ``scope`` asks for; ``tight_kv_tokens``: the memory of the study of memory (`tight`)."""
    out = [cell for name, make in MAKERS.items() if name in scope.only for cell in make(scope)]
    return out + (memory(scope, tight_kv_tokens) if tight_kv_tokens else [])


def _cell(
    experiment: str,
    name: str,
    at: Mapping[str, Any],
    where: tuple[Scope, Setting, float],
    policy: str,
    metrics: tuple[str, ...],
    **more: Any,
) -> Cell:
    """One cell: ``where`` is the scope, the setting and the load."""
    scope, setting, load = where
    return Cell(
        experiment, name, at, point(setting, policy, of(setting, load, scope.seeds, scope.shorter), **more), metrics
    )


def _azure(scope: Scope, **changed: Any) -> Setting:
    return Setting(trace=scope.trace, **changed)


def _main(scope: Scope) -> list[Cell]:
    """Fig. 12: models, workloads, loads, policies."""
    return [
        _cell("fig12", name, {"model": model, "mix": mix, "load": load}, (scope, setting, load), policy, MAIN)
        for model in models(scope)
        for mix in mixes(scope)
        for setting in [Setting(model, mix, trace=scope.trace)]
        for load in loads(scope)
        for name, policy in named(scope).items()
    ]


def _classes(scope: Scope) -> list[Cell]:
    """Fig. 3: strict priority and first come first served, by class."""
    names = ("sarathi", "sarathi_priority", "tailrace", "paper", "xllm")
    wanted = {"priority": POLICIES["priority"], **named(scope, names)}
    return [
        _cell("fig3", name, {"load": load}, (scope, _azure(scope), load), policy, BY_CLASS)
        for load in loads(scope)
        for name, policy in wanted.items()
    ]


def _fixed(scope: Scope) -> list[Cell]:
    """Figs. 4 and 5: EDF, SJF and FCFS at fixed batch capacity."""
    wanted = (0.5, 1.2) if scope.quick else (0.3, *LOADS)
    return [
        _cell(
            "fig45", name, {"mix": mix, "load": load}, (scope, Setting(mix=mix, trace=scope.trace), load),
            POLICIES[name], FEW, **FIXED,
        )
        for mix in (("azure",) if scope.quick else ("sharegpt", "azure"))
        for load in wanted
        for name in RULES
    ]  # fmt: skip


def _capacity(scope: Scope) -> list[Cell]:
    """Fig. 8: the token budget, at medium and high load."""
    setting = _azure(scope, ttft_s=LOOSE_TTFT_S)
    budgets = (128, 384, 1024, 4096) if scope.quick else BUDGETS
    wanted = [(load, tokens, name) for load in (0.85, 1.2) for tokens in budgets for name in (*RULES, "tailrace")]
    return [
        _cell(
            "fig8", name, {"load": load, "token_budget": tokens}, (scope, setting, load), POLICIES[name], FEW,
            token_budget=tokens, max_seqs=FIXED["max_seqs"],
        )
        for load, tokens, name in wanted
    ]  # fmt: skip


def _regimes(scope: Scope) -> list[Cell]:
    """Which order decides, against load."""
    wanted = (0.5, 0.85, 1.2) if scope.quick else (0.1, 0.3, 0.5, 0.7, 0.85, 0.95, 1.0, 1.1, 1.2, 1.5)
    return [
        _cell("regimes", name, {"load": load}, (scope, _azure(scope), load), SLIDES[name], REGIMES)
        for load in wanted
        for name in SLIDES
    ]


def _ablation(scope: Scope) -> list[Cell]:
    wanted = (1.0, 1.2) if scope.quick else LOADS
    setting = _azure(scope)
    tokens = {"no latency budget": {"token_budget": budget(setting.model, setting.mix)}}
    return [
        _cell("ablation", name, {"load": load}, (scope, setting, load), policy, BY_CLASS, **tokens.get(name, {}))
        for load in wanted
        for name, policy in ABLATIONS.items()
    ]


def _sensitivity(scope: Scope) -> list[Cell]:
    wanted = (1.0,) if scope.quick else (0.85, 1.0, 1.2)
    return [
        _cell(
            "sensitivity", "tailrace",
            {"varied": what, "value": shown, "default": shown == DEFAULTS[what], "load": load},
            (scope, _azure(scope), load), policy, BY_CLASS,
        )
        for load in wanted
        for what, values in VARIED.items()
        if not scope.quick or what in ("coeff, the paper's form", "η, of the TPOT SLO")
        for shown, policy in values.items()
    ]  # fmt: skip


def _weights(scope: Scope) -> list[Cell]:
    names = named(scope, ("tailrace", "paper", "xllm", "sarathi_priority", "vtc"))
    return [
        _cell("weights", name, {"weight": weight}, (scope, _azure(scope, weight=weight), 1.0), policy, BY_CLASS)
        for weight in ((1.0, 2.0, 8.0) if scope.quick else WEIGHTS)
        for name, policy in names.items()
    ]


def _starvation(scope: Scope) -> list[Cell]:
    return [
        _cell("starvation", name, {"load": load}, (scope, _azure(scope), load), policy, WAITED)
        for load in ((1.0, 1.2) if scope.quick else LOADS[1:])
        for name, policy in STARVATION.items()
    ]


def _shares(scope: Scope) -> list[Cell]:
    """Weighted VTC with both classes backlogged."""
    if scope.quick:
        return []
    return [
        _cell("vtc", "vtc", {"weight": w}, (scope, _azure(scope, weight=w), SERVED_LOAD), "vtc", ("service_ratio",))
        for w in SERVED_WEIGHTS
    ]


def _noise(scope: Scope) -> list[Cell]:
    """Steps that take longer or shorter than told."""
    return [
        _cell(
            "noise", name, {"cv": cv, "load": load}, (scope, _azure(scope), load), policy, FEW,
            **({"step_jitter": cv} if cv else {}),
        )
        for load in ((1.0,) if scope.quick else (0.85, 1.0))
        for cv in NOISE
        for name, policy in named(scope).items()
    ]  # fmt: skip


def _scales(scope: Scope) -> list[Cell]:
    names = named(scope, (*SLIDES, *PAPERS, "edf", "srpt"))
    return [
        _cell("slo", name, {"scale": scale}, (scope, _azure(scope, scale=scale), 0.85), policy, FEW)
        for scale in ((0.8, 1.0, 2.0) if scope.quick else SCALES)
        for name, policy in names.items()
    ]


def memory(scope: Scope, kv_tokens: int) -> list[Cell]:
    """Block management where memory is tight."""
    out = []
    for load, share in (*((TIGHT_LOAD, share) for share in KV_SHARES), (1.0, 1.0)):
        where, at = (scope, Setting(mix=TIGHT_MIX), load), {"load": load, "kv_share": share}
        kv = int(share * kv_tokens)
        for name, more in MEMORY.items():
            out.append(_cell("memory", name, at, where, SLIDES["tailrace"], KEPT, kv_tokens=kv, **more))
        for name in ("prefill_first", "sarathi", "srpt"):
            out.append(_cell("memory", name, at, where, POLICIES[name], KEPT, kv_tokens=kv))
    return out


MAKERS: Final[Mapping[str, Maker]] = {
    "fig3": _classes,
    "fig45": _fixed,
    "fig8": _capacity,
    "fig12": _main,
    "regimes": _regimes,
    "ablation": _ablation,
    "sensitivity": _sensitivity,
    "weights": _weights,
    "starvation": _starvation,
    "vtc": _shares,
    "noise": _noise,
    "slo": _scales,
}
