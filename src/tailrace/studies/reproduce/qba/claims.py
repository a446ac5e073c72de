"""What arXiv 2610.17795 says in words, each held against the runs.

A claim about a whole sweep is held against the points of it that were run. Where the paper
gives a number, the claim says how near counts as holding.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from .. import cells
from ..claims import Claims, Verdict
from ..measure import F8
from ..points import Samples
from ..verdicts import Ratio, all_hold, below, between, ratio, seconds

__all__ = ["CLAIMS", "View", "judge"]

Formula = Mapping[str, Mapping[tuple[str, int], float | None]]


class View(cells.View):
    """The samples of one profile, by where they stand in the paper, and the formula's waits."""

    def __init__(self, found: Sequence[cells.Cell], samples: Samples, formula: Formula) -> None:
        super().__init__(found, samples)
        self.formula = formula
        """Reading of n → (policy, λ) → mean wait by the queueing model, None where it has no value."""


CLAIMS: Final[Claims[View]] = Claims()
_claim = CLAIMS.claim


def judge(view: View, only: Sequence[str]) -> list[dict[str, Any]]:
    """Every claim as a JSON-able mapping: claim, experiment, holds (null: not known), why."""
    return CLAIMS.judge(view, only)


def _chain(view: View, experiment: str, metric: str, order: Sequence[str], **at: Any) -> bool | None:
    """Whether the policies' means ascend in this order."""
    values = [view.of(experiment, policy, metric, **at) for policy in order]
    return all_hold(below(a, b) for a, b in itertools.pairwise(values))


def _at_loads(view: View, metric: str, order: Sequence[str], loads: Sequence[int]) -> Verdict:
    """The chain at every load, and where it is broken."""
    if not loads:
        raise KeyError("rate_rps")
    parts = {load: _chain(view, "fig2", metric, order, rate_rps=load) for load in loads}
    named = {
        "broken": [load for load, part in parts.items() if part is False],
        "not told apart": [load for load, part in parts.items() if part is None],
    }
    told = "; ".join(f"{what} at {', '.join(map(str, at))}" for what, at in named.items() if at)
    return all_hold(parts.values()), f"λ {min(loads)} to {max(loads)}: {told or 'at every load'}"


# ── Fig. 2 ───────────────────────────────────────────────────────────────────────────


@_claim("fig2", "Mean wait: PSF < QBA < FCFS at every load")
def _means(view: View) -> Verdict:
    return _at_loads(view, "wait_mean_s", ("psf", "qba", "fcfs"), view.values("fig2", "rate_rps"))


@_claim("fig2", "QBA's mean wait is below AA's at every load")
def _below_aa(view: View) -> Verdict:
    return _at_loads(view, "wait_mean_s", ("qba", "aa"), view.values("fig2", "rate_rps"))


@_claim("fig2", "AA over-corrects: its mean wait exceeds FCFS's under congestion (λ from 34)")
def _over_corrects(view: View) -> Verdict:
    loads = [load for load in view.values("fig2", "rate_rps") if load >= 34]
    every = view.values("fig2", "rate_rps")
    above = [n for n in every if _chain(view, "fig2", "wait_mean_s", ("fcfs", "aa"), rate_rps=n)]
    holds, why = _at_loads(view, "wait_mean_s", ("fcfs", "aa"), loads)
    return holds, f"{why}; above at λ {', '.join(map(str, above)) or 'none'}"


@_claim("fig2", "PSF has the worst P99 wait at every load")
def _worst_tail(view: View) -> Verdict:
    loads = view.values("fig2", "rate_rps")
    found = [_at_loads(view, "wait_p99_s", (other, "psf"), loads) for other in ("fcfs", "aa", "qba")]
    return all_hold(holds for holds, _ in found), "; ".join(
        f"against {other}, {why}" for other, (_, why) in zip(("FCFS", "AA", "QBA"), found, strict=True)
    )


@_claim("fig2", "Under moderate load P99 wait: FCFS < AA < QBA < PSF (λ = 32 and 34)")
def _tails(view: View) -> Verdict:
    return _at_loads(view, "wait_p99_s", ("fcfs", "aa", "qba", "psf"), [32, 34])


@_claim("fig2", "Under high load P99 wait: FCFS < AA < QBA < PSF (λ from 36)")
def _high_tails(view: View) -> Verdict:
    loads = [load for load in view.values("fig2", "rate_rps") if load >= 36]
    return _at_loads(view, "wait_p99_s", ("fcfs", "aa", "qba", "psf"), loads)


@_claim("fig2", "At low load FCFS's and QBA's P99 are very close (within 30 % at λ = 26)")
def _low_load(view: View) -> Verdict:
    close = ratio(*(view.of("fig2", policy, "wait_p99_s", rate_rps=26) for policy in ("qba", "fcfs")))
    return between(close, 1 / 1.3, 1.3), f"QBA/FCFS {close}"


@_claim("fig2", "At low load PSF's P99 is well above FCFS's (by at least 30 % at λ = 26)")
def _low_load_psf(view: View) -> Verdict:
    far = ratio(*(view.of("fig2", policy, "wait_p99_s", rate_rps=26) for policy in ("psf", "fcfs")))
    return between(far, low=1.3), f"PSF/FCFS {far}"


@_claim("fig2", "Under moderate and high load QBA's P99 is far below PSF's (by at least 20 % from λ = 32)")
def _far_below(view: View) -> Verdict:
    loads = [load for load in view.values("fig2", "rate_rps") if load >= 32]
    found = {n: ratio(*(view.of("fig2", p, "wait_p99_s", rate_rps=n) for p in ("qba", "psf"))) for n in loads}
    why = ", ".join(f"λ {n}: {r.value:.2f}" for n, r in found.items())
    return all_hold(between(r, high=0.8) for r in found.values()), f"QBA/PSF {why}"


@_claim("fig2", "QBA keeps about 59 % of PSF's gain in mean wait (within 15 points, λ = 32)")
def _kept(view: View) -> Verdict:
    fcfs, psf, qba = (view.of("fig2", policy, "wait_mean_s", rate_rps=32) for policy in ("fcfs", "psf", "qba"))
    found = ratio(fcfs - qba, fcfs - psf)
    return between(found, 0.44, 0.74), f"share kept {found}"


@_claim("fig2", "By the formula PSF is lowest and FCFS highest, QBA at most AA over most loads (n by our n_safe)")
def _formula(view: View) -> Verdict:
    return _ordered(view.formula["stated"])


@_claim("fig2", "By the formula PSF is lowest and FCFS highest, QBA at most AA over most loads (n = B/q)")
def _formula_of_budget(view: View) -> Verdict:
    return _ordered(view.formula["budget"])


def _ordered(formula: Mapping[tuple[str, int], float | None]) -> Verdict:
    loads = sorted({rate for (_, rate), wait in formula.items() if wait is not None})
    if not loads:
        return None, "the formula has no value at any of these loads: ρ ≥ 1"
    waits = {n: [formula[policy, n] or 0.0 for policy in ("psf", "qba", "aa", "fcfs")] for n in loads}
    broken = [n for n, (psf, qba, aa, fcfs) in waits.items() if not psf < min(qba, aa) <= max(qba, aa) < fcfs]
    below_aa = sum(qba <= aa for _, qba, aa, _ in waits.values())
    where = f"broken at λ {', '.join(map(str, broken))}" if broken else "PSF lowest and FCFS highest"
    tested = f"λ {loads[0]} to {loads[-1]}, where the formula has a value"
    return not broken and 2 * below_aa > len(loads), f"{tested}: {where}, QBA at most AA at {below_aa} of {len(loads)}"


# ── Fig. 3 ───────────────────────────────────────────────────────────────────────────


def _over_quotas(view: View) -> dict[int, F8]:
    return {k: view.of("fig3", "qba", "wait_p99_s", k=k) for k in view.values("fig3", "k")}


@_claim("fig3", "P99 wait grows with k beyond k = 4: from k = 8 it is above that at k = 4")
def _large_quotas(view: View) -> Verdict:
    tails = _over_quotas(view)
    parts = (below(tails[4], tail) for k, tail in tails.items() if k >= 8)
    return all_hold(parts), ", ".join(f"k {k}: {seconds(tail)}" for k, tail in tails.items())


@_claim("fig3", "P99 wait is not monotonic in k: that at k = 2 is above that at k = 4")
def _small_quota(view: View) -> Verdict:
    tails = _over_quotas(view)
    return below(tails[4], tails[2]), f"k 2 / k 4 {ratio(tails[2], tails[4])}"


@_claim("fig3", "Mean wait over k is nearly flat for very small k (k = 4 within 10 % of k = 2)")
def _flat_mean(view: View) -> Verdict:
    found = ratio(*(view.of("fig3", "qba", "wait_mean_s", k=k) for k in (4, 2)))
    return between(found, 0.9, 1.1), f"k 4 / k 2 {found}"


@_claim("fig3", "Mean wait decreases markedly once k is moderate (k = 14 below k = 2 by at least 20 %)")
def _falling_mean(view: View) -> Verdict:
    found = ratio(*(view.of("fig3", "qba", "wait_mean_s", k=k) for k in (14, 2)))
    return between(found, high=0.8), f"k 14 / k 2 {found}"


@_claim("fig3", "FCFS has a lower P99 wait than QBA at every k")
def _fcfs_lowest(view: View) -> Verdict:
    fcfs = view.of("fig3", "fcfs", "wait_p99_s")
    parts = {k: below(fcfs, view.of("fig3", "qba", "wait_p99_s", k=k)) for k in view.values("fig3", "k")}
    not_above = [str(k) for k, part in parts.items() if part is not True]
    return all_hold(parts.values()), f"not above FCFS's {seconds(fcfs)} at k: {', '.join(not_above) or 'none'}"


def _over_quantiles(view: View, policy: str) -> dict[float, F8]:
    return {q: view.of("fig3", policy, "wait_p99_s", aging_quantile=q) for q in view.values("fig3", "aging_quantile")}


@_claim("fig3", "QBA's P99 wait is flat (within 15 % of γ = 0.8) for γ from 0.5 to 0.95")
def _flat(view: View) -> Verdict:
    tails = _over_quantiles(view, "qba")
    ratios = {q: ratio(tails[q], tails[0.8]) for q in tails if q <= 0.95 and q != 0.8}
    why = ", ".join(f"γ {q:g}: {found}" for q, found in ratios.items())
    return all_hold(between(found, 1 / 1.15, 1.15) for found in ratios.values()), f"against γ 0.8: {why}"


@_claim("fig3", "QBA's P99 wait deteriorates sharply at γ = 1: by at least 30 % over γ = 0.95")
def _sharp(view: View) -> Verdict:
    tails = _over_quantiles(view, "qba")
    found = ratio(tails[1.0], tails[0.95])
    return between(found, low=1.3), f"γ 1 / γ 0.95 {found}"


@_claim("fig3", "AA's P99 wait improves steadily as γ grows to 0.95")
def _aa_falls(view: View) -> Verdict:
    tails = {q: tail for q, tail in _over_quantiles(view, "aa").items() if q <= 0.95}
    steps = {b: below(tails[b], tails[a]) for a, b in itertools.pairwise(tails)}
    rises = [f"{q:g}" for q, holds in steps.items() if holds is False]
    why = ", ".join(f"γ {q:g}: {seconds(tail)}" for q, tail in tails.items())
    return all_hold(steps.values()), f"{'rises to γ ' + ', '.join(rises) + '; ' if rises else ''}{why}"


@_claim("fig3", "AA's P99 wait collapses at γ = 1: by at least 30 % over γ = 0.95")
def _aa_collapses(view: View) -> Verdict:
    tails = _over_quantiles(view, "aa")
    found = ratio(tails[1.0], tails[0.95])
    return between(found, low=1.3), f"γ 1 / γ 0.95 {found}"


@_claim("fig3", "AA is more sensitive to γ than QBA: its P99 at γ = 0.5 is further from that at 0.95")
def _more_sensitive(view: View) -> Verdict:
    def moved(policy: str) -> F8:
        tails = _over_quantiles(view, policy)
        return np.abs(tails[0.95] - tails[0.5])

    aa, qba = moved("aa"), moved("qba")
    return below(qba, aa), f"mean |difference| by seed: AA {seconds(aa)}, QBA {seconds(qba)}"


# ── Fig. 4 and 5 ─────────────────────────────────────────────────────────────────────


def _error(view: View, figure: str, policy: str, metric: str, rate: float) -> F8:
    return view.of(figure, policy, metric, **{{"fig4": "eps_sl", "fig5": "eps_ls"}[figure]: rate})


def _grows(view: View, figure: str, policy: str, metric: str, to: float) -> Ratio:
    return ratio(_error(view, figure, policy, metric, to), _error(view, figure, policy, metric, 0.0))


@_claim("fig4", "A small ε_SL sharply raises PSF's true-short P99: at 0.05 at least three times that without errors")
def _small_error(view: View) -> Verdict:
    found = _grows(view, "fig4", "psf", "short_wait_p99_s", 0.05)
    return between(found, low=3), f"ratio {found} (paper 5.67)"


@_claim("fig4", "PSF's mean wait rises with ε_SL")
def _psf_rises(view: View) -> Verdict:
    found = _grows(view, "fig4", "psf", "wait_mean_s", 0.4)
    return between(found, low=1.001), f"ε_SL 0.4 against none {found}"


@_claim("fig4", "QBA at ε_SL = 0.1: the mean wait falls, while the P99 of true short and of true long rise")
def _redistribution(view: View) -> Verdict:
    mean, short, long = (
        _grows(view, "fig4", "qba", metric, 0.1) for metric in ("wait_mean_s", "short_wait_p99_s", "long_wait_p99_s")
    )
    parts = (between(mean, high=0.999), between(short, low=1.001), between(long, low=1.001))
    return all_hold(parts), f"mean {mean} (paper 0.80), short P99 {short} (2.21), long P99 {long} (1.24)"


@_claim("fig4", "QBA avoids PSF's long-tail inflation at every ε_SL: its true-long P99 is below PSF's")
def _avoids(view: View) -> Verdict:
    rates = view.values("fig4", "eps_sl")
    parts = {e: below(*(_error(view, "fig4", p, "long_wait_p99_s", e) for p in ("qba", "psf"))) for e in rates}
    not_below = ", ".join(f"{e:g}" for e, part in parts.items() if part is not True)
    return all_hold(parts.values()), f"not below it at ε_SL: {not_below or 'none'}"


@_claim("fig4", "PSF's and QBA's mean waits converge as ε_SL grows")
def _converge(view: View) -> Verdict:
    def gap(rate: float) -> F8:
        psf, qba = (_error(view, "fig4", policy, "wait_mean_s", rate) for policy in ("psf", "qba"))
        return np.abs(qba - psf)

    first, last = gap(0.0), gap(0.4)
    found = ratio(last, first)
    return between(found, high=0.5), f"mean |difference| by seed at 0.4 against none {found}"


@_claim("fig5", "PSF's mean wait changes little with ε_LS: at 0.4 within 20 % of that without errors")
def _psf_mean(view: View) -> Verdict:
    found = _grows(view, "fig5", "psf", "wait_mean_s", 0.4)
    return between(found, 1 / 1.2, 1.2), f"ratio {found} (paper 1.10)"


@_claim("fig5", "PSF's true-short P99 rises only moderately with ε_LS: at 0.4 by less than 60 %")
def _psf_short(view: View) -> Verdict:
    found = _grows(view, "fig5", "psf", "short_wait_p99_s", 0.4)
    return between(found, 1.001, 1.6), f"ratio {found}"


@_claim("fig5", "PSF's true-long P99 rises by about 56 % from ε_LS = 0 to 0.4 (between 40 % and 72 %)")
def _psf_long(view: View) -> Verdict:
    found = _grows(view, "fig5", "psf", "long_wait_p99_s", 0.4)
    return between(found, 1.4, 1.72), f"ratio {found} (paper 1.56)"


@_claim("fig5", "QBA's true-long P99 falls and its true-short P99 rises with ε_LS")
def _transfer(view: View) -> Verdict:
    long, short = (_grows(view, "fig5", "qba", metric, 0.4) for metric in ("long_wait_p99_s", "short_wait_p99_s"))
    parts = (between(long, high=0.999), between(short, low=1.001))
    return all_hold(parts), f"at 0.4 against none: long {long} (paper 0.69), short {short} (1.52)"


@_claim("fig5", "At ε_LS = 0.4 QBA's true-long P99 is about 70 % below PSF's (between 60 % and 80 %)")
def _cut(view: View) -> Verdict:
    pair = (_error(view, "fig5", policy, "long_wait_p99_s", 0.4) for policy in ("qba", "psf"))
    found = ratio(*pair)
    return between(found, 0.2, 0.4), f"QBA/PSF {found} (paper 0.30)"


@_claim("fig5", "QBA's mean wait rises with ε_LS and keeps a marginal advantage over FCFS at 0.4 (less than 15 %)")
def _marginal(view: View) -> Verdict:
    rises = _grows(view, "fig5", "qba", "wait_mean_s", 0.4)
    qba, fcfs = (_error(view, "fig5", policy, "wait_mean_s", 0.4) for policy in ("qba", "fcfs"))
    left = ratio(qba, fcfs)
    parts = (between(rises, low=1.001), between(left, 0.85, 1.0))
    return all_hold(parts), f"ε_LS 0.4 against none {rises} (paper 1.35), QBA/FCFS at 0.4 {left}"


@_claim("fig5", "AA's true-long P99 is stable at high ε_LS: from 0.2 to 0.4 it changes by less than 25 %")
def _stable(view: View) -> Verdict:
    pair = (_error(view, "fig5", "aa", "long_wait_p99_s", rate) for rate in (0.4, 0.2))
    found = ratio(*pair)
    return between(found, 1 / 1.25, 1.25), f"ε_LS 0.4 / 0.2 {found}"
