"""What ProServe's engine must show, each sentence held against runs paired by seed.

Margins are those that the project sets itself, or the paper's ("up to"); where the paper says a
thing in words, the margin in brackets is ours. Gains are per cent of the baseline's token gain
(TDG_Ratio), attainment is compared in points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from .. import cells
from ..claims import Claims, Verdict
from ..measure import F8
from ..verdicts import Ratio, all_hold, between, difference, ratio
from .plan import LOADS
from .settings import FCFS, MIXES, MODELS, PAPERS, POLICIES

__all__ = ["CLAIMS", "TOLERANCE", "View", "best_margins", "claim", "gained", "points", "worst"]

TOLERANCE: Final = 0.01
"""Two policies this near are as good as one another."""
Where = tuple[str, str, float]
"""Model, workload, load."""


class View(cells.View):
    """The study's samples, and what was measured without runs."""

    overhead_us: Mapping[str, float]
    """Policy → microseconds of a step over 1,000 requests."""
    estimator: Mapping[tuple[str, float], float]
    """Model and jitter of its steps → MAPE on held-out steps, per cent."""

    def main(self, policy: str, metric: str, where: Where) -> F8:
        """(seeds,) values of the main figure."""
        model, mix, load = where
        return self.of("fig12", policy, metric, model=model, mix=mix, load=load)

    def places(self) -> list[Where]:
        """Where the main figure was run. Raises KeyError where it was not."""
        wanted = [(m, x, ld) for m in MODELS for x in MIXES for ld in LOADS]
        found = [at for at in wanted if self._has("tailrace", at)]
        if not found:
            raise KeyError("fig12")
        return found

    def rivals(self, names: Sequence[str], where: Where) -> list[str]:
        """Those of ``names`` that were run there."""
        return [name for name in names if self._has(name, where)]

    def _has(self, policy: str, where: Where) -> bool:
        try:
            self.main(policy, "attainment", where)
        except KeyError:
            return False
        return True


CLAIMS: Final[Claims[View]] = Claims()
claim = CLAIMS.claim


def points(found: Ratio) -> str:
    """``+1.2 points [0.8, 1.6]``."""
    value, low, high = (100 * end for end in found)
    return f"{value:+.1f} points [{low:.1f}, {high:.1f}]".replace("-", "−")


def gained(ours: F8, theirs: F8) -> Ratio:
    """Per cent more than theirs."""
    return Ratio(*(100 * (end - 1) for end in ratio(ours, theirs)))


def percent(found: Ratio) -> str:
    return f"{found.value:+.0f} % [{found.low:.0f}, {found.high:.0f}]".replace("-", "−")


def named(where: Where) -> str:
    model, mix, load = where
    return f"{model}, {mix}, load {load:g}"


def best_margins(
    view: View, policy: str, metric: str, names: Sequence[str], least_load: float = 0.0
) -> Iterator[tuple[str, Where, Ratio]]:
    """Other policy, place, and how far ``policy`` is above it there."""
    for where in view.places():
        if where[2] >= least_load:
            for name in view.rivals(names, where):
                if name != policy:
                    yield name, where, difference(view.main(policy, metric, where), view.main(name, metric, where))


def worst(found: Sequence[tuple[str, Where, Ratio]], low: float) -> Verdict:
    """Whether every margin is at least ``low``, and the three least."""
    if not found:
        raise KeyError("nothing to compare with")
    parts = [between(margin, low=low) for *_, margin in found]
    least = sorted(found, key=lambda item: item[2].value)[:3]
    shown = "; ".join(f"{name} at {named(where)} {points(margin)}" for name, where, margin in least)
    return all_hold(parts), f"{parts.count(True)} of {len(parts)} comparisons hold; least ahead of {shown}"


# ── Fig. 12 ──────────────────────────────────────────────────────────────────────────


@claim("fig12", "Attainment best of all policies compared, at every load, workload and model (within 0.01)")
def _attainment(view: View) -> Verdict:
    return worst(list(best_margins(view, "tailrace", "attainment", tuple(POLICIES))), -TOLERANCE)


@claim("fig12", "TDG_Ratio best of all policies but SRPT, at every load, workload and model (within 0.01)")
def _tdg(view: View) -> Verdict:
    others = [name for name in POLICIES if name != "srpt"]
    return worst(list(best_margins(view, "tailrace", "tdg_ratio", others)), -TOLERANCE)


def _published_form(preset: str, metric: str, name: str) -> None:
    @claim(
        "fig12", f"preset {preset}: {name} above every FCFS, EDF, priority and VTC baseline at loads of 0.7 and more"
    )
    def _decide(view: View) -> Verdict:
        return worst(list(best_margins(view, preset, metric, tuple(FCFS), 0.7)), 0.0)


for _preset in ("paper", "xllm"):
    for _metric, _name in (("attainment", "attainment"), ("tdg_ratio", "TDG_Ratio")):
        _published_form(_preset, _metric, _name)


def _margins(view: View, model: str, names: Sequence[str], metric: str, low: float) -> Verdict:
    where = (model, "azure", 1.0)
    if metric == "attainment":
        gaps = {n: difference(view.main("tailrace", metric, where), view.main(n, metric, where)) for n in names}
        why = ", ".join(f"{n} {points(r)}" for n, r in gaps.items())
        return all_hold(between(r, low=low) for r in gaps.values()), why
    ours, theirs = view.main("tailrace", metric, where), {n: view.main(n, metric, where) for n in names}
    why = ", ".join(f"{n} {percent(gained(ours, values))}" for n, values in theirs.items())
    return all_hold(times(ours, values, 1 + low / 100) for values in theirs.values()), why


def times(ours: F8, theirs: F8, factor: float) -> bool | None:
    """Whether ours is ``factor`` times theirs or more: of paired differences, as theirs may be near 0."""
    return between(difference(ours, factor * theirs), low=0.0)


def _on_model(model: str) -> None:
    @claim("fig12", f"{model}, azure, load 1.0: TDG_Ratio at least 100 % above Sarathi-FCFS, FairBatching and EDF")
    def _fcfs(view: View) -> Verdict:
        return _margins(view, model, ("sarathi", "fairbatching", "edf"), "tdg_ratio", 100.0)

    @claim("fig12", f"{model}, azure, load 1.0: TDG_Ratio at least 20 % above Sarathi-Priority")
    def _priority(view: View) -> Verdict:
        return _margins(view, model, ("sarathi_priority",), "tdg_ratio", 20.0)

    @claim("fig12", f"{model}, azure, load 1.0: attainment at least 40 points above vLLM-FCFS and VTC")
    def _shares(view: View) -> Verdict:
        return _margins(view, model, ("prefill_first", "vtc"), "attainment", 0.4)


for _model in MODELS:
    _on_model(_model)


def _up_to(metric: str, name: str, least: float) -> None:
    @claim("fig12", f"{name} up to {least:g} % above the best of the paper's baselines, somewhere at load 1 or less")
    def _decide(view: View) -> Verdict:
        found = {}
        for where in view.places():
            rivals = view.rivals(tuple(PAPERS), where)
            if where[2] <= 1.0 and rivals:
                best = max(rivals, key=lambda n: float(view.main(n, metric, where).mean()))
                found[best, where] = gained(view.main("tailrace", metric, where), view.main(best, metric, where))
        if not found:
            raise KeyError("nothing to compare with")
        (best, where), most = max(found.items(), key=lambda item: item[1].value)
        return between(most, low=least), f"most {percent(most)} above {best} at {named(where)}"


_up_to("tdg_ratio", "TDG_Ratio", 35.0)
_up_to("attainment", "attainment", 52.0)


@claim("fig12", "FairBatching and Sarathi-FCFS fall below vLLM-FCFS and VTC at high load (attainment at 1.2)")
def _fall_below(view: View) -> Verdict:
    found = [
        (f"{upper} − {lower}", where, difference(*(view.main(n, "attainment", where) for n in (upper, lower))))
        for where in view.places()
        if where[2] == max(LOADS)
        for upper in ("prefill_first", "vtc")
        for lower in ("fairbatching", "sarathi")
    ]
    return worst(found, 0.0)


# ── Fig. 3 ───────────────────────────────────────────────────────────────────────────


def _classes(strict: str, name: str) -> None:
    @claim("fig3", f"Load 1.0: the high class within 3 points of {name}'s, the low class at least 3 times its")
    def _decide(view: View) -> Verdict:
        high, low = (
            [view.of("fig3", policy, f"{kind}_attainment", load=1.0) for policy in ("tailrace", strict)]
            for kind in ("high", "low")
        )
        gap = difference(*high)
        why = f"high {points(gap)}, low {low[0].mean():.3f} against {low[1].mean():.3f}"
        return all_hold([between(gap, low=-0.03), times(low[0], low[1], 3.0)]), why


_classes("sarathi_priority", "Sarathi-Priority")
_classes("priority", "strict priority")


@claim("fig3", "Strict priority tells the classes apart, Sarathi-FCFS does not (load 1.0: within 5 points)")
def _apart(view: View) -> Verdict:
    gaps = {
        name: difference(*(view.of("fig3", name, f"{kind}_attainment", load=1.0) for kind in ("high", "low")))
        for name in ("priority", "sarathi")
    }
    parts = [between(gaps["priority"], low=0.05), between(gaps["sarathi"], -0.05, 0.05)]
    return all_hold(parts), ", ".join(f"{name}: high − low {points(gap)}" for name, gap in gaps.items())
