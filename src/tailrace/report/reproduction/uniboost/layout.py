"""The page: under which rule the headline holds, what was run, then the article's sections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...facts import join
from ...markup import code, image, table
from ...values import number, plain
from ..claims import claims_section
from ..facts import span
from ..layout import joined, not_run, section
from ..panels import Figure
from ..study import Study
from . import tables
from .headline import head, headline
from .names import MIXES, gamma_names, label, values

__all__ = ["page"]


def page(study: Study, figures: Sequence[Figure], folder: str) -> str:
    """The page as Markdown, with links to ``figures`` in ``folder`` beside it."""
    images = {f.name: image(f.title, f"{folder}/{f.name}.svg", f.caption) for f in figures}
    sections = [
        head(study),
        headline(study),
        _setup(study),
        section("Two schedules (§3)", tables.toys(study), _found(study)),
        section("Lengths: light and heavy tails (§2.1)", images.get("lengths", ""), _tails(study)),
        _main(study),
        section("Against load", images.get("loads", ""), _over_load(study)),
        _bursts(study),
        _models(study),
        section("Failure modes by percentile (§6.2)", images.get("percentiles", ""), PERCENTILE_NOTE),
        section("Ablation (§6.3)", images.get("ablation", ""), _knees(study)),
        section("SLO attainment (§6.4)", images.get("slo", ""), ""),
        section("Starvation (§6.5)", tables.starvation(study), STARVATION_NOTE),
        section("Memory (§5.3)", tables.memory(study), images.get("staircase", "")),
        section("γ under bursts (§5.4)", images.get("gamma", ""), _gamma(study)),
        section("What each setting does", images.get("sensitivity", ""), tables.sensitivity(study)),
        section("Predictions with errors (§2.2)", images.get("noise", ""), ""),
        section("What policies can do (§3)", tables.capabilities(study), _capability_note(study)),
        claims_section(study, BARS),
        not_run(study),
    ]
    return joined(sections)


BARS: Final = (
    "The headline's parts are told under each of SRPT's rules. The article gives numbers of single settings, or says "
    "things "
    "in words: the margins are ours, and so are the statements on bursts, heavy tails, bytes moved and noise, which it "
    "does not put like this."
)
PERCENTILE_NOTE: Final = (
    "The article draws how much slower each baseline is than UniBoost; here are the times themselves. Times between "
    "tokens are of all requests, the first tenth included."
)
STARVATION_NOTE: Final = (
    "Nine in ten requests have 125 prompt and 100 output tokens, one has 2,000 and 6,000; ρ = 0.99. The time lost to "
    "preemption runs from the start of the step that a request was put out of to that of the step it resumed in. The "
    "slope is that of long requests' E2E over the number of their arrival, by least squares; Sarathi, which preempts "
    "nobody "
    "here, shows how much of it is the queue growing at this load. Runs are of 12,000 requests. The article has one "
    "SRPT and "
    "one UniBoost, which stand beside each of ours. LAS has no hysteresis: equals take turns at every token, and "
    "where KV is "
    "short every turn is a copy."
)


def _setup(study: Study) -> str:
    s, names = study.document["settings"], gamma_names(study)
    rows = [[label(name), code(policy)] for name, policy in s["policies"].items()]
    capacity = [
        [plain(at["model"]), code(at["lengths"]), plain(at["kv_tokens"] or "the device's"), number(v.measured)]
        for at in study.places("capacity")
        if (v := study.value("capacity", "sarathi", "backlog_rps", at)) is not None
    ]
    text = [
        f"- Engine: {code(s['engine'])}. At most {s['sequences']} sequences a step; KV that is displaced stays on the "
        "device until its room is needed, and is then swapped to host memory at 25 GB/s each way; under Sarathi, SRPT "
        "with decodes that stay and SRPT by recompute it is thrown away and computed again.",
        f"- Load: ρ = 1 is the rate of completions of {code(s['reference']['policy'])} on "
        f"{code(s['reference']['engine'])} "
        "with all requests there from the start, between a fifth and four fifths of them.",
        f"- The first {100 * s['skipped']:g} % of requests are left out of times; those that finish after the last "
        "arrival count.",
        "- DistBoost, UniBoost-Base and MemGuard have a fixed γ, of our choice.",
        f"- Low γ: {names['uniboost_low']}, which favours time to first token. High γ: {names['uniboost_high']}, which "
        "leaves γ to the article's update. Both are the same in every experiment.",
        "- s1K and ShareGPT are not at hand: reasoning is made to look like s1K (short prompts, outputs lognormal with "
        "median 4,500 and σ 0.6), chat is drawn from the quantiles of Azure's conversation trace.",
    ]
    parts = ["## Setup", "\n".join(text), table(["policy", "as"], rows, 2)]
    if capacity:
        parts.append(table(["model", "lengths", "KV tokens", "ρ = 1 (requests/s)"], capacity, 3))
    return "\n\n".join(parts)


def _found(study: Study) -> str:
    return (
        "The article draws the two schedules without numbers; these were found by search: (arrival, steps) of A to E "
        "are "
        "(0, 10), (4, 4), (9, 5), (14, 5), (24, 5) in the convoy and (1, 4), (1, 1), (2, 2), (2, 1), (3, 3) in the "
        "burst, "
        "one request at a time."
    )


def _tails(study: Study) -> str:
    rows = []
    for mix in ("reasoning", "heavy", "mix-2"):
        for kind in ("prompt", "output"):
            found = [
                study.value("lengths", kind, "tokens", {"mix": mix, "quantile": q})
                for q in ("mean", "0.5", "0.95", "0.99")
            ]
            if all(v is not None for v in found):
                rows.append([MIXES[mix], kind, *(number(v.measured) if v else "" for v in found)])
    text = table(["lengths", "", "mean", "median", "P95", "P99"], rows, 2) if rows else ""
    both = []
    for mix in ("reasoning", "heavy"):
        values_ = values(study, "main", "e2e_p99_s", {"mix": mix})
        if values_:
            order = sorted(values_, key=lambda p: values_[p].measured or 0.0)
            both.append(f"{MIXES[mix]}: " + ", ".join(f"{label(p)} {number(values_[p].measured)} s" for p in order))
    side = "P99 E2E, lowest first. " + ". ".join(both) + "." if both else ""
    return "\n\n".join(part for part in (text, side) if part)


def _main(study: Study) -> str:
    found = tables.mixes(study)
    if not found:
        return ""
    parts = ["## Main results (§6.1)"]
    for mix in found:
        parts += [f"### {MIXES[mix][0].upper()}{MIXES[mix][1:]}", tables.gains(study, mix)]
        parts.append(tables.absolute(study, "main", {"mix": mix}, "What was measured"))
    return "\n\n".join(part for part in parts if part)


def _over_load(study: Study) -> str:
    """Where UniBoost is ahead of SRPT in the tail, and by how much first come first served is."""
    out = []
    for policy in ("uniboost_low", "uniboost_high", "sarathi"):
        parts = []
        for at in study.places("loads"):
            ours, base = (study.value("loads", p, "e2e_p99_s", at) for p in (policy, "srpt_decode_first"))
            if ours is not None and base is not None and ours.measured and base.measured:
                gain = 100 * (1 - ours.measured / base.measured)
                parts.append(
                    f"{gain:+.0f} % at ρ = {at['rho']:g}{' (not told apart)' if ours.tied(base) else ''}".replace(
                        "-", "−"
                    )
                )
        if parts:
            out.append(f"{label(policy)}: {', '.join(parts)}")
    return f"Gain in P99 E2E on SRPT whose decodes keep their places: {'; '.join(out)}." if out else ""


def _bursts(study: Study) -> str:
    places = study.places("bursts")
    if not places:
        return ""
    text = tables.by_policy(study, "bursts", places[0])
    note = f"Gaps between arrivals are gamma-distributed with a coefficient of variation of {places[0]['cv']:g}; mix-2."
    return section("Bursts", text, note)


def _models(study: Study) -> str:
    parts = []
    for at in study.places("models"):
        parts += [f"### {at['model']}", tables.by_policy(study, "models", at)]
    return section("Models", *parts) if parts else ""


def _knees(study: Study) -> str:
    found = values(study, "ablation", "knee_rho", {})
    if not found:
        return ""
    rates = [
        v.measured
        for at in study.places("capacity")
        if at["model"] == "codellama-34b"
        and (v := study.value("capacity", "sarathi", "backlog_rps", at)) is not None
        and v.measured
    ]
    text = ", ".join(f"{label(p)} {number(v.measured)}" for p, v in found.items())
    ours = f" ρ = 1 is {number(rates[0])} requests/s here, so lengths or engine differ." if rates else ""
    return (
        "The knee is the load ρ at which P99 E2E first exceeds twice that of UniBoost (high γ) at the lowest load, "
        "linear "
        f"in its logarithm between loads: {text}. The article's are 0.24, 0.248 and 0.255 requests/s for DistBoost, "
        "Base "
        f"and the full policy.{ours}"
    )


def _gamma(study: Study) -> str:
    ends = {
        at["start"]: v.measured
        for at in study.places("gamma")
        if (v := study.value("gamma", "uniboost", "gamma_per_s", at)) is not None and v.measured is not None
    }
    if not ends:
        return ""
    return (
        f"On mix-2 at ρ = 0.97 γ, free of a low γ_max, ends at {span(ends.values())}/s from starts of "
        f"{join([plain(start) for start in ends])}/s. The article's 0.00006 to 0.00022 makes sense per millisecond: "
        "0.06 to "
        "0.22 per second."
    )


def _capability_note(study: Study) -> str:
    records = study.document.get("capabilities") or []
    if not records:
        return ""
    near, light = 100 * (records[0]["near"] - 1), records[0]["light_mix"]
    return (
        f"Measured, not asserted: a tail is served well where P99 E2E is within {near:.0f} % of the best of these "
        "policies "
        f"(in brackets, times the best); the light one is {light}, the heavy one that of a DeepSeek-R1 service. A "
        "policy works "
        "without predictions if its run is the same when it is told nothing. The last three columns are of mix-2. "
        "– was not run."
    )
