"""The shapes of the paper's figures: where EDF and SJF cross, token budgets, regimes, ablations, coefficients."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from ..claims import Verdict
from ..measure import F8
from ..verdicts import all_hold, between, difference, ratio
from .claims import TOLERANCE, View, claim, points
from .settings import POLICIES
from .variants import VARIED

__all__ = ["FALL"]

FALL: Final = 0.02
"""A rise or fall of attainment that counts."""


def _crossing(mix: str) -> None:
    @claim("fig45", f"{mix}: EDF not below SJF at the lowest load, and at most half of it at load 1.2")
    def _decide(view: View) -> Verdict:
        loads = [ld for ld in view.values("fig45", "load") if ld <= 0.7]
        low, high = (
            [view.of("fig45", name, "attainment", mix=mix, load=load) for name in ("edf", "srpt")]
            for load in (loads[0], 1.2)
        )
        gap, share = difference(*low), ratio(*high)
        why = f"EDF − SJF at load {loads[0]:g} {points(gap)}; EDF/SJF at 1.2 {share}"
        return all_hold([between(gap, low=-TOLERANCE), between(share, high=0.5)]), why

    @claim("fig45", f"{mix}: EDF is ahead of SJF at some load of 0.7 or less")
    def _ahead(view: View) -> Verdict:
        loads = [ld for ld in view.values("fig45", "load") if ld <= 0.7]
        gaps = {
            load: difference(*(view.of("fig45", n, "attainment", mix=mix, load=load) for n in ("edf", "srpt")))
            for load in loads
        }
        why = ", ".join(f"load {load:g} {points(gap)}" for load, gap in gaps.items())
        parts = [between(gap, low=1e-12) for gap in gaps.values()]
        return True if True in parts else False if all(part is False for part in parts) else None, why


for _mix in ("sharegpt", "azure"):
    _crossing(_mix)


# ── Fig. 8 ───────────────────────────────────────────────────────────────────────────


def _budgets(view: View, policy: str, load: float) -> list[F8]:
    return [
        view.of("fig8", policy, "attainment", load=load, token_budget=tokens)
        for tokens in view.values("fig8", "token_budget")
    ]


def _course(values: Sequence[F8]) -> str:
    return " → ".join(f"{v.mean():.2f}" for v in values)


def _rises_and_falls(values: Sequence[F8]) -> bool | None:
    top = max(range(len(values)), key=lambda i: float(values[i].mean()))
    return all_hold(between(difference(values[top], values[end]), low=FALL) for end in (0, -1))


def _steady(values: Sequence[F8]) -> bool | None:
    """A rise, never a fall, and no rise at the end."""
    steps = [between(difference(b, a), low=-FALL) for a, b in itertools.pairwise(values)]
    steps.append(between(difference(values[-1], values[0]), low=FALL))
    return all_hold([*steps, between(difference(values[-1], values[-2]), -FALL, FALL)])


def _sweep(policy: str, name: str, load: float, rises: bool) -> None:
    text = "rises, then falls" if rises else "rises, then stays"

    @claim("fig8", f"Token budget at load {load:g}: {name} {text} (by 2 points)")
    def _decide(view: View) -> Verdict:
        values = _budgets(view, policy, load)
        return (_rises_and_falls if rises else _steady)(values), _course(values)


_sweep("edf", "EDF", 0.85, False)
_sweep("srpt", "SJF", 0.85, True)
_sweep("sarathi", "FCFS", 0.85, True)
_sweep("edf", "EDF", 1.2, False)
_sweep("srpt", "SJF", 1.2, True)
_sweep("sarathi", "FCFS", 1.2, False)


@claim(
    "fig8", "SlideBatching needs no token budget: with the largest it is the best of all, whatever theirs (within 0.01)"
)
def _no_budget(view: View) -> Verdict:
    found = {}
    for load in view.values("fig8", "load"):
        ours = _budgets(view, "tailrace", load)[-1]
        for policy in ("edf", "srpt", "sarathi"):
            best = max(_budgets(view, policy, load), key=lambda v: float(v.mean()))
            found[policy, load] = difference(ours, best)
    why = ", ".join(f"{p} at load {load:g} {points(gap)}" for (p, load), gap in found.items())
    return all_hold(between(gap, low=-TOLERANCE) for gap in found.values()), why


# ── Regimes, ablations, coefficient, SLOs ────────────────────────────────────────────


@claim(
    "regimes",
    "Whose order decides slides with load: all fit at the lowest, density at the highest, more of it step by step",
)
def _slides(view: View) -> Verdict:
    loads = view.values("regimes", "load")
    fit, dense = (
        [view.of("regimes", "tailrace", f"{name}_steps_share", load=load) for load in loads]
        for name in ("all_fit", "density")
    )
    parts = [between(difference(fit[0], dense[0]), low=0.0), between(difference(dense[-1], fit[-1]), low=0.0)]
    parts += [between(difference(b, a), low=-TOLERANCE) for a, b in itertools.pairwise(dense)]
    return all_hold(parts), f"steps in which all fit {_course(fit)}, that density decides {_course(dense)}"


def _ablated(name: str, least: float, load: float, text: str, whole: str = "whole") -> None:
    @claim("ablation", f"{text} (load {load:g}{f', {100 * least:g} points' if least else ''})")
    def _decide(view: View) -> Verdict:
        gap = difference(*(view.of("ablation", n, "attainment", load=load) for n in (whole, name)))
        return between(gap, low=least), f"{whole} − {name} {points(gap)}"


_ablated("paper, only deadline", 0.2, 1.0, "The paper's form: only by deadline is far below the whole", "paper")
_ablated("paper, only density", 0.0, 1.0, "The paper's form: only by density is below the whole", "paper")
_ablated("only deadline", 0.0, 1.2, "Only by deadline is below the whole")
_ablated("only density", 0.0, 1.2, "Only by density is below the whole")
_ablated("no latency budget", 0.0, 1.0, "Without a latency budget: below the whole")
_ablated("hopeless ranked", 0.0, 1.0, "Hopeless prefills ranked as any other: below the whole")
_ablated("deadlines of the token gain", 0.2, 1.0, "Deadlines of the token gain: attainment is far below the whole's")


@claim("ablation", "Deadlines of the token gain: the gain itself is not below the whole's at load 1.0 (within 0.01)")
def _own_gain(view: View) -> Verdict:
    names = ("deadlines of the token gain", "whole")
    gap = difference(*(view.of("ablation", n, "tdg_ratio", load=1.0) for n in names))
    return between(gap, low=-TOLERANCE), points(gap)


def _coefficient(what: str, form: str) -> None:
    @claim("sensitivity", f"coeff, {form}: 0.8 to 1 is best (within 0.01), 0.01 is bad (5 points), highest load")
    def _decide(view: View) -> Verdict:
        load = view.values("sensitivity", "load")[-1]
        rates = {
            value: view.of(
                "sensitivity", "tailrace", "attainment", varied=what, value=value, default=value == "1", load=load
            )
            for value in VARIED[what]
        }
        best = max((rates["0.8"], rates["1"]), key=lambda v: float(v.mean()))
        parts = [between(difference(best, other), low=-TOLERANCE) for other in rates.values()]
        parts.append(between(difference(best, rates["0.01"]), low=0.05))
        return all_hold(parts), f"load {load:g}: " + ", ".join(f"{v} {r.mean():.3f}" for v, r in rates.items())


_coefficient("coeff, the paper's form", "the paper's form")
_coefficient("coeff", "our form")


@claim("slo", "Whatever the SLOs are scaled by, attainment is best of all policies compared (load 0.85, within 0.01)")
def _scaled(view: View) -> Verdict:
    found = []
    for scale in view.values("slo", "scale"):
        ours = view.of("slo", "tailrace", "attainment", scale=scale)
        for name in [n for n in POLICIES if n != "tailrace"]:
            try:
                found.append((name, scale, difference(ours, view.of("slo", name, "attainment", scale=scale))))
            except KeyError:
                continue
    least = sorted(found, key=lambda item: item[2].value)[:3]
    why = "least ahead of " + "; ".join(f"{n} at {s:g} times {points(gap)}" for n, s, gap in least)
    return all_hold(between(gap, low=-TOLERANCE) for *_, gap in found), why
