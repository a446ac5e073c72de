"""Made-up documents of a study, with numbers that fit together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

RATES: Final = tuple(float(rate) for rate in range(26, 41))
KS: Final = tuple(float(k) for k in range(2, 15, 2))
GAMMAS: Final = tuple(0.5 + 0.05 * i for i in range(11))
EPSILONS: Final = tuple(0.05 * i for i in range(9))
FACTORS: Final = {"fcfs": 2.0, "psf": 0.8, "aa": 2.1, "qba": 1.4}
TAILS: Final = {"fcfs": (2.6, 2.6), "psf": (1.2, 11.0), "aa": (3.0, 2.7), "qba": (3.5, 7.6)}
"""True-short and true-long P99 without errors, in proportion to the size of a profile."""
PRINTED: Final[Mapping[tuple[str, float, str], tuple[float | None, ...]]] = {
    ("fig4", 0.0, "psf"): (0.83, 1.24, 11.1),
    ("fig4", 0.0, "qba"): (1.42, 3.44, 7.64),
    ("fig4", 0.05, "psf"): (None, 7.03, None),
    ("fig4", 0.1, "qba"): (1.13, 7.59, 9.45),
    ("fig5", 0.0, "psf"): (0.83, 1.24, 11.1),
    ("fig5", 0.0, "qba"): (1.42, 3.44, 7.64),
    ("fig5", 0.4, "psf"): (0.91, None, 17.29),
    ("fig5", 0.4, "qba"): (1.92, 5.23, 5.27),
}
"""Mean, true-short P99 and true-long P99, as the paper prints them."""
METRICS: Final = ("wait_mean_s", "short_wait_p99_s", "long_wait_p99_s")
AZURE: Final = {"fcfs": 0.179, "psf": 0.123, "aa": 0.178, "qba": 0.146}
CAPACITY_RPS: Final = 34.5
"""Where the formula ends."""


def document(
    profiles: Iterable[str] = ("paper",), seeds: int = 100, intervals: bool = True, quick: bool = False, **changes: Any
) -> dict[str, Any]:
    """A document; ``quick`` leaves out most points, ``changes`` replaces top-level fields."""
    names = list(profiles)
    rows: list[dict[str, Any]] = []
    for i, profile in enumerate(names):
        rows += _rows(profile, 1.0 + 0.1 * i, seeds, intervals, quick, flat=i > 0)
    settings = {"seeds": seeds, "quick": quick, "profiles": names, "only": []}
    made = {
        "study": "qba",
        "version": "0.1.0",
        "command": f"tailrace reproduce qba --seeds {seeds}",
        "paper": {"title": "Quota-Based Aging for LLM Serving", "source": "arXiv 2610.17795"},
        "settings": settings,
        "profiles": {name: _profile(name) for name in names},
        "rows": rows,
        "claims": [claim for name in names for claim in _claims(name)],
        "fit": {
            n: {"values": 15, "mean_abs_log_ratio": 0.05 + 0.04 * i, "ci": [0.045, 0.1]} for i, n in enumerate(names)
        },
        "calibration": {name: _calibration() for name in names},
        "not_run": {},
    }
    return {**made, **changes}


def row(
    profile: str,
    experiment: str,
    policy: str,
    metric: str,
    at: Mapping[str, Any],
    measured: float | None,
    seeds: int = 100,
    half: float = 0.05,
    paper: float | None = None,
) -> dict[str, Any]:
    """One row, its interval ± ``half`` of the value (none if 0)."""
    ci = None if measured is None or not half else [measured * (1 - half), measured * (1 + half)]
    names = {"profile": profile, "experiment": experiment, "policy": policy, "metric": metric, "at": dict(at)}
    return {**names, "paper": paper, "measured": measured, "ci": ci, "seeds": seeds}


def _rows(profile: str, size: float, seeds: int, intervals: bool, quick: bool, flat: bool) -> list[dict[str, Any]]:
    half = 0.05 if intervals else 0.0

    def add(experiment: str, policy: str, metric: str, at: Mapping[str, Any], value: float | None) -> None:
        axis = next((float(v) for v in at.values() if isinstance(v, float)), 0.0)
        found = PRINTED.get((experiment, round(axis, 9), policy), (None, None, None))
        paper = found[METRICS.index(metric)] if metric in METRICS else None
        out.append(row(profile, experiment, policy, metric, at, value, seeds, half, paper))

    out: list[dict[str, Any]] = []
    _load(add, size, RATES[::7] if quick else RATES)
    _sweeps(add, size, quick, flat)
    _errors(add, size, EPSILONS[::8] if quick else EPSILONS)
    if not quick:
        out += _table2(profile, half)
        _choices(add)
    return out


def _load(add: Any, size: float, rates: Iterable[float]) -> None:
    for rate in rates:
        at, grown = {"rate_rps": rate}, size * 1.45 ** (rate - 32)
        for policy, factor in FACTORS.items():
            # AA overtakes FCFS as load grows.
            mean = factor * grown * (0.99 ** (32.5 - rate) if policy == "aa" else 1) * (0.95 if policy == "aa" else 1)
            add("fig2", policy, "wait_mean_s", at, mean)
            add("fig2", policy, "wait_p99_s", at, 3 * (10.0 if policy == "psf" else factor) * grown)
            add("fig2", policy, "e2e_mean_s", at, mean + 1.1)
            rho = rate / CAPACITY_RPS
            formula = None if rho >= 1 else 0.2 * factor * rho / (1 - rho)
            add("fig2", policy, "formula_wait_mean_s", at, formula)
            add("fig2", policy, "formula_e2e_mean_s", at, None if formula is None else formula + 0.46)


def _sweeps(add: Any, size: float, quick: bool, flat: bool) -> None:
    for policy, factor in FACTORS.items():
        add("fig3", policy, "wait_mean_s", {}, factor * size)
        add("fig3", policy, "wait_p99_s", {}, size * {"fcfs": 4.2, "psf": 9.8, "aa": 5.0, "qba": 6.1}[policy])
    for k in KS[::3] if quick else KS:
        add("fig3", "qba", "wait_mean_s", {"k": k}, size * (1.5 - 0.04 * k))
        add("fig3", "qba", "wait_p99_s", {"k": k}, size * (6.0 + 0.05 * (k - 4) ** 2))
    for gamma in GAMMAS[::5] if quick else GAMMAS:
        for policy, base in (("qba", 6.1), ("aa", 6.5)):
            slope = 0.0 if flat else 1.5 * (gamma - 0.8)
            tail = 9.8 if gamma > 0.99 else base + slope
            add("fig3", policy, "wait_p99_s", {"aging_quantile": gamma}, size * tail)
            add("fig3", policy, "wait_mean_s", {"aging_quantile": gamma}, size * FACTORS[policy])


def _errors(add: Any, size: float, epsilons: Iterable[float]) -> None:
    for eps in epsilons:
        for policy, (short, long) in TAILS.items():
            for experiment, axis in (("fig4", "eps_sl"), ("fig5", "eps_ls")):
                told = policy != "fcfs"
                up = 1 + (eps if told else 0)
                jump = 5.5 if policy == "psf" and experiment == "fig4" and eps > 0.01 else 0.0
                back = -1 if policy == "qba" and experiment == "fig5" else 1
                add(experiment, policy, "wait_mean_s", {axis: eps}, size * FACTORS[policy] * up)
                add(experiment, policy, "short_wait_p99_s", {axis: eps}, size * (short * up + jump))
                add(experiment, policy, "long_wait_p99_s", {axis: eps}, size * long * (1 + (back * eps if told else 0)))


def _table2(profile: str, half: float) -> list[dict[str, Any]]:
    out = []
    for protocol, size in (("paper", 0.6), ("demand_matched", 1.1)):
        at = {"protocol": protocol}

        def add(policy: str, metric: str, value: float, paper: float | None = None, at: Any = at) -> None:
            out.append(row(profile, "table2", policy, metric, at, value, 100, half, paper))

        for policy, mean in AZURE.items():
            add(policy, "wait_mean_s", size * mean, mean)
            for metric, factor in (("wait_p99_s", 6.0), ("short_wait_p99_s", 3.0), ("long_wait_p99_s", 9.0)):
                add(policy, metric, size * mean * factor, mean * factor * 0.9)
            add(policy, "tokens_per_s", 24500.0, 24700.0)
            add(policy, "utilisation", 0.88, 0.9)
            add(policy, "over_limit_steps", 0.0)
        add("fcfs", "arrival_scv", 1.06, 2.9)
        add("", "length_factor", 0.44 if protocol == "paper" else 0.565)
    return out


def _choices(add: Any) -> None:
    for choice, values in (
        ("KV projection", (("live, growth and prompt", 0.05), ("live and prompt", 0.064), ("prompt alone", 0.3))),
        ("history", (("last 200", 0.05), ("unbounded", 0.089))),
    ):
        for i, (value, score) in enumerate(values):
            at = {"choice": choice, "value": value, "default": i == 0}
            add("choices", "", "mean_abs_log_ratio", at, score)
            for policy in ("psf", "qba"):
                add("choices", policy, "wait_mean_s", at, FACTORS[policy] * (1 + score))
                add("choices", policy, "short_wait_p99_s", at, TAILS[policy][0] * (1 + score))
                add("choices", policy, "long_wait_p99_s", at, TAILS[policy][1] * (1 + score))


def _profile(name: str) -> dict[str, Any]:
    return {
        "summary": f"what {name} stands for",
        "requests": 5000,
        "engine": "qba:kv_hard_limit=false",
        "latency": "qba",
        "aging": f"window={200 if name == 'paper' else 0}",
    }


def _claims(profile: str) -> list[dict[str, Any]]:
    found = [
        ("fig2", "PSF has the lowest mean", True, "0.8 s against 1.4 s"),
        ("fig3", "P99 is flat over γ", profile != "paper", f"a factor of {1.3 if profile == 'paper' else 1.0}"),
        ("fig5", "AA is stable", False, "it grows by 40 %"),
        ("table2", "QBA keeps 59 % | of the gain", None, "not tested: the trace was not given"),
    ]
    return [{"profile": profile, "experiment": e, "claim": c, "holds": h, "why": w} for e, c, h, w in found]


def _calibration() -> dict[str, Any]:
    points = [{"rate_rps": rate, "rho": rate / CAPACITY_RPS} for rate in (25.0, 27.0, 29.0, 31.0, 33.0)]
    return {
        "rate_rps": 30.0,
        "s0_s": 0.011,
        "alpha_s": 0.00012,
        "beta_s": 0.0006,
        "mean_service_s": 16 / CAPACITY_RPS,
        "service_scv": 1.3,
        "n_safe": 22,
        "budget_servers": 16,
        "servers": 16,
        "discrete": {"s0_s": 0.01, "prefill_chunk_s": 0.004, "decode_block_s": 0.0048},
        "phi": {
            "aa": [{**p, "phi": 0.2 + 0.1 * i} for i, p in enumerate(points)],
            "qba": [{**p, "phi": 0.18 + 0.06 * i} for i, p in enumerate(points)],
        },
    }
