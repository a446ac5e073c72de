"""The first screen: what SlideBatching is, what was run, the paper's numbers beside ours, and the main table."""

from __future__ import annotations

from typing import Any, Final

from ...facts import join
from ...markup import escape, paragraph, table
from ...values import MISSING, plain
from ..claims import counted, tested
from ..study import Study
from . import tables
from .names import MIXES, percent

__all__ = ["head", "headline"]

WHAT: Final = (
    "ProServe schedules requests of several classes, each with a deadline for its first token (TTFT) and a pace for "
    "the later ones (TPOT). Its engine part, SlideBatching, fills each step up to the tightest deadline in one "
    "queue of prefills and decodes; urgent requests go first, by gain per second of work, the others by deadline. "
    "Urgent is whoever may miss its deadline under the present load, so the order slides from earliest deadline first "
    "to densest first as load grows. It is compared here in three forms (the paper's; that of xLLM, its authors' "
    "engine; ours, in which prefills that can no longer make their deadline go last and do not bound the step) with "
    "the paper's baselines."
)
METRICS: Final = (
    "SLO attainment is the share of requests whose TTFT and TPOT are both under their SLOs. TDG_Ratio is the share "
    "of what all output tokens are worth that came before they were due: token i is due TTFT_SLO + (i − 1) TPOT_SLO "
    "after the arrival, and worth its class's weight (high {weight:g}, low 1, at random half and half), a first token "
    "times the workload's mean input : mean output."
)


def head(study: Study) -> str:
    document, settings = study.document, study.document["settings"]
    source = document["paper"]["source"]
    first = (
        f"These are the experiments of [{source}](https://arxiv.org/abs/{source.split()[-1]}) that are about one "
        f"engine, run again with tailrace {escape(document['version'])} in simulation. We know the paper by excerpts: "
        "its workloads' lengths, SLOs and thresholds are not stated in them, so ours are our own, and only its "
        "overall numbers stand beside ours."
    )
    counts = (
        f"Numbers are means over {plain(settings['seeds'])} seeds; in brackets, 95 % intervals over the seeds, of "
        "differences paired by seed: all policies see the same requests. Where nothing else is said: Qwen2-7B, Azure's "
        f"workload, TTFT SLO {settings['ttft_slo_s']:g} s, TPOT SLO {1000 * settings['tpot_slo_s']:g} ms."
    )
    quick = "This is a quick run: fewer seeds, shorter runs, and not everything." if settings.get("quick") else ""
    command = f"```sh\n{document['command']}\n```"
    made = "To run it all again and rebuild this page (every measured number in it is computed from the results):"
    title = f"# {escape(document['paper']['title'])}, reproduced"
    metrics = METRICS.format(weight=settings["high_weight"])
    return "\n\n".join([title, WHAT, metrics, paragraph(first, counts, quick), made, command])


def headline(study: Study) -> str:
    """The paper's numbers beside ours, the main table, and what became of the main figure's claims."""
    parts = [paragraph(counted(study)), _beside(study)]
    for model in dict.fromkeys(at["model"] for at in study.places("fig12")):
        at = {"model": model, "mix": "azure", "load": 1.0}
        text = tables.main(study, at)
        if text:
            parts += [f"{model}, Azure, load 1.0 (the engine can just do all the work that arrives):", text]
    parts += [_told_lengths(study), _verdicts(study)]
    return "\n\n".join(["## What holds", *(part for part in parts if part)])


def _beside(study: Study) -> str:
    rows = []
    for metric, name in (("tdg_ratio", "token gain (TDG_Ratio)"), ("attainment", "SLO attainment")):
        value = study.value("headline", "tailrace", f"{metric}_gain", {})
        if value is not None:
            theirs = MISSING if value.paper is None else f"up to +{value.paper:g} %"
            rows.append([f"{name}, above the best of the paper's baselines", theirs, f"up to {percent(value, True)}"])
    us = study.value("overhead", "tailrace", "at_most_us", {})
    if us is not None and us.measured is not None:
        rows.append(["one decision over 1,000 requests", MISSING, f"at most {us.measured:g} µs"])
    for at in study.places("estimator"):
        value = study.value("estimator", "", "mape_percent", at)
        theirs = MISSING if value is None or value.paper is None else f"{value.paper:g} %"
        name = f"latency estimator's MAPE, {at['model']}, steps with {100 * at['jitter']:g} % of jitter"
        rows.append([name, theirs, percent(value)])
    note = "Ours: over all workloads, models and loads up to 1.0, each against the best baseline at that place."
    return f"{table(['', 'the paper', 'ours'], rows)}\n\n{note}" if rows else ""


def _told_lengths(study: Study) -> str:
    """Where SJF by remaining work, told all output lengths, has the larger token gain."""
    above, of = [], 0
    for at in study.places("fig12"):
        ours, theirs = (study.value("fig12", name, "tdg_ratio", at) for name in ("tailrace", "srpt"))
        if ours is None or theirs is None or ours.measured is None or theirs.measured is None:
            continue
        of += 1
        if theirs.measured > ours.measured and not theirs.tied(ours):
            gap = 100 * (theirs.measured - ours.measured)
            above.append(f"{at['model']}, {MIXES[at['mix']]}, load {at['load']:g} ({gap:.1f} points)")
    if not of:
        return ""
    where = join(above) if above else "none"
    return (
        "SJF by remaining work is told every output length, which no engine knows. Its TDG_Ratio is above ours (95 % "
        f"interval of the paired difference) at {len(above)} of {of} places: {where}."
    )


def _verdicts(study: Study) -> str:
    claims = [c for c in study.document["claims"] if c["experiment"] in ("fig12", "fig3") and tested(c)]
    rows = [[escape(c["claim"]), _result(c), escape(c["why"])] for c in claims]
    return table(["claim", "result", "why"], rows, 3) if rows else ""


def _result(claim: Any) -> str:
    return {True: "holds", False: "**does not hold**"}.get(claim["holds"], "undecided")
