"""The first screen: what UniBoost is, what was run, and against which SRPT the article's headline holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...facts import join
from ...markup import escape, paragraph, table
from ...values import number, plain
from ..claims import counted, tested
from ..study import Study
from . import tables
from .names import BASES, label

__all__ = ["head", "headline"]

RULE_WORDS: Final = {
    "srpt_decode_first": "decodes keep their places",
    "srpt_swap": "preemptive by swap",
    "srpt_recompute": "preemptive by recompute",
}


def head(study: Study) -> str:
    document, settings = study.document, study.document["settings"]
    source = document["paper"]["source"]
    what = (
        "UniBoost runs requests in the order of their arrival less a boost that shrinks with the work done on them, "
        "and "
        "predicts nothing. γ sets how fast it shrinks: γ → ∞ is first come first served, γ → 0 least attained "
        "service. It "
        "is compared with SRPT (shortest remaining processing time) that is told every length, as TRAIL+ is in the "
        "paper. "
        "TTFT is the time to the first token, E2E that to the last (the paper's TTLT), TBT that between two tokens."
    )
    first = (
        f"These are the experiments of [{source}](https://arxiv.org/abs/{source.split()[-1]}), run again with tailrace "
        f"{escape(document['version'])}. Where nothing else is said: Llama-3-8B on one A100, mix-2 (70 % reasoning, "
        "30 % "
        f"chat), {plain(settings['requests'])} requests a run, Poisson arrivals, at ρ = {settings['rho']:g} of a "
        "reference run. Step times are derived from published figures, not measured. We have read the paper through an "
        "article on it: section numbers are the article's, and we know its figures only as it describes them."
    )
    counts = (
        f"Numbers are means over {plain(settings['seeds'])} seeds; in brackets, 95 % intervals over the seeds, of "
        "gains "
        "paired by seed. Gains are per cent better: 1 − ours/theirs for times, ours/theirs − 1 for rates; what takes "
        "more "
        "than twice as long is given as a factor."
    )
    quick = "This is a quick run: fewer seeds, shorter runs, and not everything." if settings.get("quick") else ""
    command = f"```sh\n{document['command']}\n```"
    made = "To run it all again and rebuild this page (every measured number in it is computed from the results):"
    title = f"# {escape(document['paper']['title'])}, reproduced"
    return "\n\n".join([title, what, paragraph(first, counts, quick), made, command])


RULES_TOLD: Final = {
    "srpt_decode_first": "running decodes keep their places, and only the waiting and prefills are ordered",
    "srpt_swap": "a running request may be displaced, and its KV goes to host memory",
    "srpt_recompute": "a running request may be displaced, and is computed again",
}


def headline(study: Study) -> str:
    """Under which rule of SRPT what the article says of its main table holds."""
    claims = [
        c
        for c in study.document["claims"]
        if c["experiment"] == "main" and c["claim"].startswith("mix-2, against SRPT")
    ]
    if not any(c["holds"] is not None for c in claims):
        return counted(study)
    by_rule = {rule: [c for c in claims if f"SRPT, {RULE_WORDS[rule]}:" in c["claim"] and tested(c)] for rule in BASES}
    by_rule = {rule: of for rule, of in by_rule.items() if of}
    rows = [
        [label(rule), escape(c["claim"].partition(": ")[2]), _result(c), escape(c["why"])]
        for rule, of in by_rule.items()
        for c in of
    ]
    sure = [label(rule) for rule, of in by_rule.items() if all(c["holds"] is True for c in of)]
    first = (
        f"All parts of the article's headline hold against {join(sure)}."
        if sure
        else "Not all parts of the article's headline hold against any of the three."
    )
    lines = [f"- {label(rule)}: {RULES_TOLD[rule]}. {_told(study, rule, of)}" for rule, of in by_rule.items()]
    limit = (
        "Where KV does not run short, a larger γ moves the tail towards that of first come first served, here "
        "Sarathi's: "
        "its gain stands beside each gain in P99 E2E. Margins are ours; the article has one row for UniBoost, which we "
        "compare with a low and a high γ_max."
    )
    rule = "The article does not say under which engine rule SRPT ran; it can be one of three."
    told_apart = table(["against", "claim", "result", "why"], rows, 4)
    parts = [
        paragraph(rule, first, counted(study)),
        "\n".join(lines),
        paragraph(limit, _other_models(study)),
        told_apart,
    ]
    return "\n\n".join(["## Under which rule the headline holds", *parts])


def _result(claim: Mapping[str, Any]) -> str:
    return {True: "holds", False: "**does not hold**"}.get(claim["holds"], "undecided")


def _told(study: Study, rule: str, of: Sequence[Mapping[str, Any]]) -> str:
    """What is gained on one rule's SRPT, in a sentence."""
    at = {"mix": "mix-2", "rule": rule}
    gains = {
        (policy, metric): tables.percent(study.value("against", policy, f"{metric}_gain", at))
        for policy, metric in (
            *(("uniboost_low", m) for m in ("ttft_p95", "ttft_mean", "e2e_p99", "e2e_mean")),
            *(("uniboost_high", m) for m in ("e2e_p99", "e2e_mean")),
        )
    }
    low, high = (
        {m: text for (p, m), text in gains.items() if p == policy} for policy in ("uniboost_low", "uniboost_high")
    )
    holds = sum(c["holds"] is True for c in of)
    return (
        f"{holds} of {len(of)} parts hold. Low γ: P95 TTFT {low['ttft_p95']}, mean TTFT {low['ttft_mean']}, P99 E2E "
        f"{low['e2e_p99']}, mean E2E {low['e2e_mean']}; high γ: P99 E2E {high['e2e_p99']}, mean E2E {high['e2e_mean']}."
    )


def _other_models(study: Study) -> str:
    """Whether the gain on SRPT whose decodes stay carries over to the models whose KV is short."""
    parts = []
    for at in study.places("models"):
        if at["model"] == "llama-3-8b":
            continue
        ratios = []
        for metric, name in (("ttft_p95_s", "P95 TTFT"), ("e2e_p99_s", "P99 E2E")):
            ours, base = (study.value("models", p, metric, at) for p in ("uniboost_low", "srpt_decode_first"))
            if ours is not None and base is not None and ours.measured and base.measured:
                ratios.append(f"{name} {number(ours.measured)} s against {number(base.measured)} s")
        if ratios:
            parts.append(f"on {at['model']} (low γ) {join(ratios)}")
    if not parts:
        return ""
    return f"Against SRPT, decodes stay, on the models whose KV is short: {'; '.join(parts)}."
