"""Starvation, weights and shares; memory, noise, what a decision costs and how good the estimator is."""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np

from ..claims import Verdict
from ..verdicts import all_hold, between, difference, ratio
from .claims import TOLERANCE, View, claim, points
from .plan import SERVED_WEIGHTS
from .settings import POLICIES
from .variants import ALL_OFF, ALL_ON, HEAD, LEAST_S, MEMORY, PROTECTED

__all__ = ["DECISION_US"]

DECISION_US: Final = 100.0
MAPE: Final = 6.0
"""Per cent."""
MEASURED_JITTER: Final = 0.05
"""What a real engine's steps may well have; at 0.15 no estimator is that near."""

# ── Starvation, weights, shares ──────────────────────────────────────────────────────


@claim("starvation", f"{PROTECTED} to the starving: at most 2 points of attainment, at loads up to 1.0")
def _costs(view: View) -> Verdict:
    found = {
        load: difference(*(view.of("starvation", n, "attainment", load=load) for n in (PROTECTED, "off")))
        for load in view.values("starvation", "load")
        if load <= 1.0
    }
    return (
        all_hold(between(gap, low=-0.02) for gap in found.values()),
        ", ".join(f"load {load:g} {points(gap)}" for load, gap in found.items()),
    )


@claim(
    "starvation",
    f"{PROTECTED} to the starving: the longest wait at most twice τ = {LEAST_S:g} s, at loads up to 1.0",
)
def _bounds(view: View) -> Verdict:
    kept, parts = {}, []
    for load in (ld for ld in view.values("starvation", "load") if ld <= 1.0):
        waits = [view.of("starvation", n, "wait_longest_s", load=load) for n in (PROTECTED, "off")]
        kept[load] = [float(w.mean()) for w in waits]
        parts.append(between(ratio(waits[0], np.full_like(waits[0], LEAST_S)), high=2.0))
    return all_hold(parts), ", ".join(f"load {ld:g}: {a:.1f} s, without {b:.1f} s" for ld, (a, b) in kept.items())


@claim("starvation", "The starving always at the head: overload takes at least 10 points of attainment (load 1.2)")
def _head(view: View) -> Verdict:
    gap = difference(*(view.of("starvation", n, "attainment", load=1.2) for n in ("off", HEAD)))
    return between(gap, low=0.1), f"without it {points(gap)}"


@claim("weights", "The heavier the high class, the higher its attainment (within 1 point)")
def _heavier(view: View) -> Verdict:
    weights = view.values("weights", "weight")
    rates = [view.of("weights", "tailrace", "high_attainment", weight=w) for w in weights]
    parts = [between(difference(b, a), low=-TOLERANCE) for a, b in itertools.pairwise(rates)]
    parts.append(between(difference(rates[-1], rates[0]), low=0.0))
    return all_hold(parts), ", ".join(f"{w:g}: {r.mean():.3f}" for w, r in zip(weights, rates, strict=True))


@claim("vtc", "While both classes are backlogged weighted VTC serves them by their weights (within 5 %)")
def _served(view: View) -> Verdict:
    found = {
        w: ratio(r, np.full_like(r, w))
        for w in SERVED_WEIGHTS
        for r in [view.of("vtc", "vtc", "service_ratio", weight=w)]
    }
    why = ", ".join(f"weight {w:g}: {w * found[w].value:.2f}" for w in found)
    return all_hold(between(r, 0.95, 1.05) for r in found.values()), f"service of high over low, {why}"


# ── Memory, noise, overhead, estimator ───────────────────────────────────────────────


def _parts(metric: str, name: str) -> None:
    @claim("memory", f"Tight memory, load 0.85: all parts of block management 3 points of {name} above none")
    def _decide(view: View) -> Verdict:
        gaps = {
            share: difference(
                *(view.of("memory", part, metric, load=0.85, kv_share=share) for part in (ALL_ON, ALL_OFF))
            )
            for share in view.values("memory", "kv_share")
        }
        why = ", ".join(f"{share:g} times that KV {points(gap)}" for share, gap in gaps.items())
        return between(gaps[1.0], low=0.03), why


_parts("attainment", "attainment")
_parts("tdg_ratio", "TDG_Ratio")


@claim("memory", "Tight memory, load 1.0: every request of every part finishes")
def _finish(view: View) -> Verdict:
    shares = {n: view.of("memory", n, "completed_share", load=1.0, kv_share=1.0) for n in MEMORY}
    return all(bool((s == 1).all()) for s in shares.values()), ", ".join(
        f"{n} {s.min():.3f}" for n, s in shares.items()
    )


def _noisy(cv: float) -> None:
    @claim("noise", f"Steps with noise of {100 * cv:g} %: the ranking by attainment stays (pairs over 2 points apart)")
    def _decide(view: View) -> Verdict:
        kept, turned = 0, []
        for load in view.values("noise", "load"):
            names = [n for n in POLICIES if _ran(view, n, load)]
            for a, b in ((a, b) for a in names for b in names if a != b):
                sure = difference(*(view.of("noise", n, "attainment", cv=0.0, load=load) for n in (a, b)))
                if sure.low > 2 * TOLERANCE:
                    found = difference(*(view.of("noise", n, "attainment", cv=cv, load=load) for n in (a, b)))
                    kept += found.value > 0
                    turned += [f"{b} above {a} at load {load:g} by {-100 * found.value:.1f}"] * (found.value <= 0)
        if not kept and not turned:
            raise KeyError("no pair is far enough apart")
        why = f"{kept} of {kept + len(turned)} pairs stay in order"
        return not turned, "; ".join([why, *turned])


def _ran(view: View, policy: str, load: float) -> bool:
    try:
        view.of("noise", policy, "attainment", cv=0.0, load=load)
    except KeyError:
        return False
    return True


for _cv in (0.05, 0.15):
    _noisy(_cv)


@claim("overhead", "One decision over 1,000 requests takes less than 100 µs")
def _fast(view: View) -> Verdict:
    if not view.overhead_us:
        raise KeyError("overhead")
    told = ", ".join(f"{name} at most {us:g} µs" for name, us in view.overhead_us.items())
    return all(us <= DECISION_US for us in view.overhead_us.values()), f"a whole step, the decision in it: {told}"


@claim("estimator", "The latency estimator's MAPE on held-out steps is below 6 %, with steps that jitter by 5 % too")
def _estimates(view: View) -> Verdict:
    found = {at: error for at, error in view.estimator.items() if at[1] <= MEASURED_JITTER}
    if not found:
        raise KeyError("estimator")
    told = ", ".join(f"{model}, jitter {100 * cv:g} %: {error:.1f} %" for (model, cv), error in found.items())
    return all(error < MAPE for error in found.values()), told
