"""What the article says of γ, of memory, of light and heavy tails, and of predictions (§2, §3, §5)."""

from __future__ import annotations

import numpy as np

from ..claims import Verdict
from ..verdicts import all_hold, between, ratio
from .claims import NAMES, View, against, claim, gain, pairs, times
from .plan import STARTS, TIGHT_KV

__all__: list[str] = []


# ── §5 ───────────────────────────────────────────────────────────────────────────────


@claim("gamma", "γ ends within 5 % from three decades of starts (means over seeds)")
def _converges(view: View) -> Verdict:
    ends = np.array([view.of("gamma", "uniboost", "gamma_per_s", start=start) for start in STARTS])
    means = ends.mean(axis=1)
    apart, within = means.max() / means.min() - 1, (ends.max(axis=0) / ends.min(axis=0) - 1).max()
    why = (
        f"means end {100 * apart:.1f} % apart, at {means.mean():.4f}/s; of one seed at most {100 * within:.0f} % apart"
    )
    return bool(apart <= 0.05), why


@claim("memory", "KV short: MemGuard moves at least 5 times fewer swapped bytes than Base with δ = 1 s")
def _bytes(view: View) -> Verdict:
    found = ratio(*(view.of("memory", p, "swapped_gb", kv_tokens=TIGHT_KV) for p in ("uniboost_base", "memguard")))
    later = ratio(
        *(view.of("memory", p, "swapped_gb", kv_tokens=TIGHT_KV) for p in ("uniboost_base, δ = 20 s", "memguard"))
    )
    return between(found, low=5.0), f"Base/MemGuard {times(found)}; with δ = 20 s {times(later)}"


@claim("memory", "No request is given more keys than 1 + ⌊log2(S/k)⌋")
def _bound(view: View) -> Verdict:
    over = {p: view.of("memory", p, "revisions_over_bound", kv_tokens=TIGHT_KV) for p in ("memguard", "uniboost_low")}
    return all(not v.any() for v in over.values()), ", ".join(
        f"{p}: {int(v.sum())} requests over it" for p, v in over.items()
    )


# ── §2 and §3: tails and predictions ──────────────────────────────────────────────────


@claim("tails", "Light tail: UniBoost's P99 E2E is below SRPT's (swap) and LAS's (high γ_max)")
def _light(view: View) -> Verdict:
    found = {p: against(view, "main", "uniboost_high", p, "e2e_p99_s", mix="reasoning") for p in ("srpt_swap", "las")}
    return all_hold(between(r, low=0.0) for r in found.values()), pairs(found)


@claim("tails", "Heavy tail: UniBoost gains nothing on SRPT (swap) at P99 E2E")
def _heavy(view: View) -> Verdict:
    found = {p: against(view, "main", p, "srpt_swap", "e2e_p99_s", mix="heavy") for p in NAMES}
    return all_hold(between(r, high=0.0) for r in found.values()), pairs(found)


@claim("noise", "Errors of prediction (CV 1) cost the predicted-short policies at least 10 % of their mean E2E")
def _noisy(view: View) -> Verdict:
    found = {
        p: ratio(*(view.of("noise", p, "e2e_mean_s", cv=cv) for cv in (1.0, 0.0)))
        for p in ("sjf", "srpt_swap", "srpt_decode_first")
    }
    return all_hold(between(r, low=1.1) for r in found.values()), ", ".join(f"{p} {r}" for p, r in found.items())


@claim("noise", "With errors of CV 1 UniBoost's P99 E2E is below that of SJF and of SRPT under swap (high γ_max)")
def _noisy_tail(view: View) -> Verdict:
    ours = view.of("noise", "uniboost_high", "e2e_p99_s", cv=0.0)
    found = {p: gain(ours, view.of("noise", p, "e2e_p99_s", cv=1.0), "e2e_p99_s") for p in ("sjf", "srpt_swap")}
    return all_hold(between(r, low=0.0) for r in found.values()), pairs(found)
