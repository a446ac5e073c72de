"""What arXiv 2606.18431 says in words and margins, each held against the runs.

Where the article gives a number that it may well have from one run, the claim says how near
counts as holding; margins in brackets are ours. Gains are per cent better than SRPT with perfect
predictions (TRAIL+) under the engine rule that the claim names.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from .. import cells
from ..claims import Claims, Verdict
from ..measure import F8
from ..verdicts import Ratio, all_hold, below, between, ratio
from .plan import BURST_CV
from .settings import GAMMA_HIGH, GAMMA_LOW, RULES, SYSTEMS

__all__ = ["CLAIMS", "NAMES", "RULE_NAMES", "View", "against", "claim", "gain", "knee", "pairs", "times"]

RULE_NAMES: Final = {
    "srpt_decode_first": "decodes keep their places",
    "srpt_swap": "preemptive by swap",
    "srpt_recompute": "preemptive by recompute",
}
NAMES: Final = {"uniboost_low": f"γ_max {GAMMA_LOW:g}/s", "uniboost_high": f"γ_max {GAMMA_HIGH:g}/s"}
DECODE_FIRST: Final = "srpt_decode_first"


class View(cells.View):
    """The study's samples, and what was computed without many runs."""

    toys: Mapping[tuple[str, str, str], float]


CLAIMS: Final[Claims[View]] = Claims()
claim = CLAIMS.claim


def gain(ours: F8, base: F8, metric: str) -> Ratio:
    """Per cent better than ``base``: 1 − ours/base for times, ours/base − 1 for rates."""
    found = ratio(ours, base)
    if metric.endswith("_per_s"):
        return Ratio(*(100 * (end - 1) for end in found))
    return Ratio(100 * (1 - found.value), 100 * (1 - found.high), 100 * (1 - found.low))


def shown(found: Ratio) -> str:
    """``+12.0 % [10.1, 14.2]``; of what takes more than twice as long, ``3.1 times [2.5, 4.0]``."""
    if math.isnan(found.value):
        return "–"
    if found.value < -100:
        low, high = (1 - end / 100 for end in (found.high, found.low))
        return f"{1 - found.value / 100:,.1f} times [{low:,.1f}, {high:,.1f}]".replace("-", "−")
    return f"{found.value:+.1f} % [{found.low:.1f}, {found.high:.1f}]".replace("-", "−")


def against(view: View, experiment: str, policy: str, base: str, metric: str, **at: Any) -> Ratio:
    return gain(view.of(experiment, policy, metric, **at), view.of(experiment, base, metric, **at), metric)


def pairs(found: Mapping[str, Ratio], word: str = "against ") -> str:
    """``against sjf +1 % […], γ_max … +2 % […]``: what a policy is compared with, or, without a word, gains."""
    return ", ".join(f"{NAMES.get(p, word + p)} {shown(r)}" for p, r in found.items())


# ── §3 ───────────────────────────────────────────────────────────────────────────────


@claim(
    "toys", "Convoy: mean 9.0 under first come first served and Boost with γ = 100, 8.6 under SRPT, LAS and γ = 0.01"
)
def _convoy(view: View) -> Verdict:
    means = {p: view.toys["convoy", p, "mean_steps"] for p in ("fcfs", "boost_100", "srpt", "las", "boost_0.01")}
    return list(means.values()) == [9.0, 9.0, 8.6, 8.6, 8.6], ", ".join(f"{p} {m:g}" for p, m in means.items())


@claim("toys", "Burst: maximum 11 under SRPT and LAS, 9 under first come first served and Boost with γ = 100")
def _burst(view: View) -> Verdict:
    most = {p: view.toys["burst", p, "max_steps"] for p in ("srpt", "las", "fcfs", "boost_100")}
    same = view.toys["burst", "boost_0.01", "mean_steps"] == view.toys["burst", "las", "mean_steps"]
    return list(most.values()) == [11.0, 11.0, 9.0, 9.0] and same, ", ".join(f"{p} {m:g}" for p, m in most.items())


# ── §6.1, and the margins that a faithful engine should reach ─────────────────────────

HEADLINE: Final = (
    ("uniboost_low", "ttft_p95_s", 85.0, "P95 TTFT at least 85 % better"),
    ("uniboost_low", "ttft_mean_s", 60.0, "mean TTFT at least 60 % better"),
    ("uniboost_low", "e2e_p99_s", 5.0, "P99 E2E at least 5 % better"),
    ("uniboost_high", "e2e_p99_s", 20.0, "P99 E2E at least 20 % better"),
    ("uniboost_low", "e2e_mean_s", -35.0, "mean E2E at most 35 % worse"),
    ("uniboost_high", "e2e_mean_s", -35.0, "mean E2E at most 35 % worse"),
)


def _headline(policy: str, metric: str, least: float, text: str, rule: str) -> None:
    @claim("main", f"mix-2, against SRPT, {RULE_NAMES[rule]}: {text} ({NAMES[policy]})")
    def _decide(view: View) -> Verdict:
        found = against(view, "main", policy, rule, metric, mix="mix-2")
        if metric != "e2e_p99_s":
            return between(found, low=least), shown(found)
        limit = against(view, "main", "sarathi", rule, metric, mix="mix-2")
        return between(found, low=least), f"{shown(found)}; sarathi {shown(limit)}"


def _throughput(policy: str, rule: str) -> None:
    @claim("main", f"mix-2, against SRPT, {RULE_NAMES[rule]}: throughput at most 1 % lower ({NAMES[policy]})")
    def _decide(view: View) -> Verdict:
        found = against(view, "main", policy, rule, "requests_per_s", mix="mix-2")
        return between(found, low=-1.0), shown(found)


for _rule in RULES:
    for _item in HEADLINE:
        _headline(*_item, _rule)
    for _policy in NAMES:
        _throughput(_policy, _rule)


@claim(
    "main",
    "mix-2: DistBoost (γ = 0.003/s) has a worse TTFT and a better P99 E2E than SRPT (decodes keep their places)",
)
def _strawman(view: View) -> Verdict:
    ttft = against(view, "main", "dist_boost", DECODE_FIRST, "ttft_mean_s", mix="mix-2")
    tail = against(view, "main", "dist_boost", DECODE_FIRST, "e2e_p99_s", mix="mix-2")
    return all_hold([between(ttft, high=0.0), between(tail, low=0.0)]), f"TTFT {shown(ttft)}, P99 E2E {shown(tail)}"


def _on_model(model: str) -> None:
    text = "P95 TTFT and P99 E2E are better than those of SRPT whose decodes keep their places (low γ_max)"

    @claim("models", f"{model}: {text}")
    def _decide(view: View) -> Verdict:
        found = {
            m: against(view, "models", "uniboost_low", DECODE_FIRST, m, model=model)
            for m in ("ttft_p95_s", "e2e_p99_s")
        }
        why = ", ".join(f"{what} {shown(r)}" for what, r in zip(("P95 TTFT", "P99 E2E"), found.values(), strict=True))
        return all_hold(between(r, low=0.0) for r in found.values()), why


for _model in SYSTEMS:
    _on_model(_model)


@claim("bursts", f"Bursts (CV {BURST_CV:g}): P99 E2E at least 25 % better than SRPT whose decodes keep their places")
def _bursts(view: View) -> Verdict:
    found = {p: against(view, "bursts", p, DECODE_FIRST, "e2e_p99_s", cv=BURST_CV) for p in (*NAMES, "sarathi")}
    best = found["uniboost_high"]
    return between(best, low=25.0), pairs(found, "")


# ── §6.2 ─────────────────────────────────────────────────────────────────────────────


def _slower(view: View, policy: str, metric: str, than: str) -> Ratio:
    """How many times UniBoost's."""
    (model,) = view.values("percentiles", "model")
    return ratio(*(view.of("percentiles", p, metric, model=model) for p in (policy, than)))


@claim(
    "percentiles",
    "Prefills starve under decode-heavy steps: DistBoost's and Sarathi's TTFT is above UniBoost's from P50 on",
)
def _prefill(view: View) -> Verdict:
    wanted = [(p, q) for p in ("dist_boost", "sarathi") for q in ("p50", "p95", "p99")]
    found = {(p, q): _slower(view, p, f"ttft_{q}_s", "uniboost_low") for p, q in wanted}
    return all_hold(between(r, low=1.0) for r in found.values()), _spread(found)


@claim(
    "percentiles",
    "Long decodes are interrupted: LAS's and SRPT's (swap) TTLT trails UniBoost's more at P99.9 than at P50",
)
def _interrupted(view: View) -> Verdict:
    wanted = [(p, q) for p in ("las", "srpt_swap") for q in ("p50", "p99", "p999")]
    found = {(p, q): _slower(view, p, f"e2e_{q}_s", "uniboost_high") for p, q in wanted}
    parts = [between(found[p, "p999"], low=max(found[p, "p50"].value, 1.0)) for p in ("las", "srpt_swap")]
    return all_hold(parts), _spread(found)


@claim("percentiles", "Decodes over-concentrate: DistBoost's TBT is above UniBoost's at P50 and P95")
def _concentrated(view: View) -> Verdict:
    found = {
        ("dist_boost", q): _slower(view, "dist_boost", f"tbt_{q}_s", "uniboost_high") for q in ("p50", "p95", "p99")
    }
    return all_hold(between(found["dist_boost", q], low=1.0) for q in ("p50", "p95")), _spread(found)


LEVELS: Final = {"p999": "P99.9"}


def times(found: Ratio) -> str:
    """A ratio in three digits or, where it is large, without decimals."""
    if found.value < 100:
        return str(found).replace("-", "−")
    return f"{found.value:,.0f} [{found.low:,.0f}, {found.high:,.0f}]".replace("-", "−")


def _spread(found: Mapping[tuple[str, str], Ratio]) -> str:
    return "times UniBoost's: " + "; ".join(f"{p} {LEVELS.get(q, q.upper())} {times(r)}" for (p, q), r in found.items())


# ── §6.3 ─────────────────────────────────────────────────────────────────────────────


def knee(view: View, policy: str) -> F8:
    """(seeds,) load ρ at which P99 E2E first exceeds twice that of UniBoost at the lowest load; NaN if nowhere."""
    rhos = view.values("ablation", "rho")
    tails = np.array([view.of("ablation", policy, "e2e_p99_s", rho=rho) for rho in rhos])
    limit = 2 * view.of("ablation", "uniboost_high", "e2e_p99_s", rho=rhos[0])
    out = np.full(tails.shape[1], np.nan)
    for seed in range(tails.shape[1]):
        over = np.flatnonzero(tails[:, seed] > limit[seed])
        if len(over) and over[0] > 0:
            i = over[0]
            low, high = np.log(tails[i - 1 : i + 1, seed])
            share = (math.log(limit[seed]) - low) / (high - low)
            out[seed] = rhos[i - 1] + share * (rhos[i] - rhos[i - 1])
        elif len(over):
            out[seed] = rhos[0]
    return out


@claim("ablation", "The knee moves right stage by stage: DistBoost, Base, MemGuard, full UniBoost (high γ_max)")
def _knees(view: View) -> Verdict:
    order = ("dist_boost", "uniboost_base", "memguard", "uniboost_high")
    knees = {p: knee(view, p) for p in order}
    parts = [below(knees[a], knees[b]) for a, b in itertools.pairwise(order)]
    return all_hold(parts), ", ".join(
        f"{p} ρ {np.nanmean(k):.2f}" if not np.isnan(k).all() else f"{p} none" for p, k in knees.items()
    )


@claim("ablation", "MemGuard cuts Base's tail by 1.5 to 2 times near saturation (at least 1.5, ρ = 0.95)")
def _cuts(view: View) -> Verdict:
    found = ratio(*(view.of("ablation", p, "e2e_p99_s", rho=0.95) for p in ("uniboost_base", "memguard")))
    return between(found, low=1.5), f"Base/MemGuard {found}"


@claim("ablation", "Near saturation full UniBoost is far below MLFQ+ (P99 E2E at most half, ρ = 1)")
def _below_mlfq(view: View) -> Verdict:
    found = ratio(*(view.of("ablation", p, "e2e_p99_s", rho=1.0) for p in ("uniboost_high", "mlfq")))
    return between(found, high=0.5), f"UniBoost/MLFQ {found}"


# ── §6.4 ─────────────────────────────────────────────────────────────────────────────

BASELINES: Final = ("srpt_decode_first", "sjf", "las", "sarathi")


def _tighter(view: View, what: str, mix: str, low: float, policy: str) -> Verdict:
    found = {p: ratio(*(view.of("slo", q, f"{what}_p99_s", mix=mix) for q in (p, policy))) for p in BASELINES}
    why = ", ".join(f"{p} {r}" for p, r in found.items())
    return all_hold(between(r, low=low) for r in found.values()), f"baseline's P99 over UniBoost's: {why}"


@claim("slo", "mix-2: at 99 % attainment the TTLT SLO can be 1.7 times tighter than any baseline's (high γ_max)")
def _ttlt_slo(view: View) -> Verdict:
    return _tighter(view, "e2e", "mix-2", 1.7, "uniboost_high")


@claim("slo", "mix-2: at 99 % attainment the TTFT SLO can be 2.9 times tighter than any baseline's (low γ_max)")
def _ttft_slo(view: View) -> Verdict:
    return _tighter(view, "ttft", "mix-2", 2.9, "uniboost_low")


# ── §6.5 ─────────────────────────────────────────────────────────────────────────────


@claim(
    "starvation",
    "P99 time long requests lose to preemption: Sarathi < UniBoost < SJF < SRPT (swap; low γ_max)",
)
def _lost(view: View) -> Verdict:
    order = ("sarathi", "uniboost_low", "sjf", "srpt_swap")
    lost = {p: view.of("starvation", p, "long_preempted_p99_s") for p in order}
    parts = [below(lost[a], lost[b]) for a, b in itertools.pairwise(order)]
    return all_hold(parts), ", ".join(f"{p} {np.nanmean(v):.3g} s" for p, v in lost.items())


@claim("starvation", "Short requests' P99 E2E is lowest under UniBoost (low γ_max)")
def _shorts(view: View) -> Verdict:
    others = ("sarathi", "srpt_decode_first", "srpt_swap")
    tails = {p: view.of("starvation", p, "short_e2e_p99_s") for p in ("uniboost_low", *others)}
    parts = [below(tails["uniboost_low"], tails[p]) for p in others]
    return all_hold(parts), ", ".join(f"{p} {np.nanmean(v):.3g} s" for p, v in tails.items())


@claim(
    "starvation",
    "No starvation: the slope of long requests' E2E over their number is at most Sarathi's + 0.003 s a request",
)
def _slope(view: View) -> Verdict:
    slopes = {p: view.of("starvation", p, "long_slope_s") for p in ("sarathi", *NAMES)}
    more = {p: ratio(slopes[p] - slopes["sarathi"], np.ones_like(slopes[p])) for p in NAMES}
    told = ", ".join(f"{NAMES.get(p, p)} {np.nanmean(v):.4f}" for p, v in slopes.items())
    return all_hold(between(r, high=0.003) for r in more.values()), f"seconds a request: {told}"
