"""The page: what was run, how near it comes, then the paper's sections in their order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ...facts import join
from ...markup import code, escape, image, paragraph, table
from ...values import number, plain
from ..cells import of_paper
from ..claims import claims_section, counted
from ..layout import joined, not_run
from ..panels import Figure
from ..study import Study
from .names import ERRORS, METRICS, POLICIES, REFERENCE_RPS, STATED, printed
from .performance import model, performance
from .sensitivity import errors, hyperparameters, open_choices, side_by_side
from .trace import trace

__all__ = ["page"]

NEAR = 0.10
"""Relative distance that is called near."""
FARTHEST = 3
"""Numbers that are named as the farthest."""


def page(study: Study, figures: Sequence[Figure], folder: str) -> str:
    """The page as Markdown, with links to ``figures`` in ``folder`` beside it."""
    images = {f.name: image(f.title, f"{folder}/{f.name}.svg", f.caption) for f in figures}
    sections = [
        _head(study),
        _fit(study),
        _setup(study),
        performance(study, images.get("fig2", "")),
        model(study, images.get("phi", "")),
        hyperparameters(study, images.get("fig3", "")),
        errors(study, images),
        trace(study),
        open_choices(study, images.get("choices", "")),
        side_by_side(study, images.get("profiles", "")),
        claims_section(study),
        not_run(study),
    ]
    return joined(sections)


def _head(study: Study) -> str:
    document, record = study.document, study.document["profiles"][study.main]
    source = document["paper"]["source"]
    link = f"[{source}](https://arxiv.org/abs/{source.split()[-1]})" if source.startswith("arXiv ") else escape(source)
    first = (
        f"The experiments of {link}, run again with tailrace {escape(document['version'])}: {_workload(study)}, on the "
        f"engine {code(record['engine'])} with the step times {code(record['latency'])}."
    )
    seeds = study.document["settings"]["seeds"]
    many = (
        f"Numbers are means over {plain(seeds)} seeds; in brackets, 95 % intervals over the seeds. ≈ says that two "
        "numbers are not told apart: the 95 % interval of their difference, paired by seed (on the trace by window), "
        "holds zero."
    )
    counts = many if seeds > 1 else "Numbers are of a single seed, so there are no intervals."
    quick = "This is a quick run: fewer seeds and points than the paper's." if document["settings"].get("quick") else ""
    command = f"```sh\n{document['command']}\n```"
    made = (
        "This makes it again, this page included; every measured number here, and every sentence on one, is computed "
        "from its results:"
    )
    title = f"# {escape(document['paper']['title'])}, reproduced"
    return "\n\n".join([title, paragraph(first, counts, quick), made, command])


def _workload(study: Study) -> str:
    """What requests there were, of those experiments that were run."""
    requests = f"{plain(study.document['profiles'][study.main]['requests'])} requests a run"
    rates = [at["rate_rps"] for at in study.places("fig2") if "rate_rps" in at]
    loads = [f"at {plain(min(rates))} to {plain(max(rates))} req/s"] if rates else []
    if any(study.has(experiment) for experiment in ("fig3", *ERRORS, "choices")):
        loads.append(
            f"at {plain(REFERENCE_RPS)} req/s in the other sweeps" if rates else f"at {plain(REFERENCE_RPS)} req/s"
        )
    parts = [f"the paper's synthetic requests, Poisson arrivals {join(loads)}, {requests}"] if loads else []
    parts += ["windows of a production trace"] if study.has("table2") else []
    return "; ".join(parts) or "no experiment of its own"


def _fit(study: Study) -> str:
    """How near the printed numbers are met, and how many claims hold."""
    scores = study.document.get("fit") or {}
    parts = []
    if study.main in scores and scores[study.main]["mean_abs_log_ratio"] is not None:
        record = scores[study.main]
        score, ends = record["mean_abs_log_ratio"], record.get("ci")
        interval = f" [{ends[0]:.3f}, {ends[1]:.3f}]" if ends else ""
        parts.append(
            f"The {record['values']} numbers that the paper prints for {plain(REFERENCE_RPS)} req/s are met under "
            f"{code(study.main)} with a mean absolute log ratio of {score:.3f}{interval}: typically a factor of "
            f"{number(math.exp(score))} apart (0 is equal, 0.69 a factor of two). What the paper leaves open was "
            "chosen to come near these very numbers: this reading is consistent with them, and need not be the paper's."
        )
    others = [
        f"{code(p)} {scores[p]['mean_abs_log_ratio']:.3f}"
        for p in study.profiles[1:]
        if p in scores and scores[p]["mean_abs_log_ratio"] is not None
    ]
    parts += _adjusted(scores.get(study.main) or {})
    near = _near(study)
    rest = f"The other profiles' scores: {join(others)}." if others else ""
    return paragraph(*parts, near, rest, counted(study))


def _adjusted(record: Mapping[str, Any]) -> list[str]:
    """The score with each mean moved to the load that was to be drawn."""
    score = record.get("adjusted")
    if not score:
        return []
    ends = score.get("ci")
    interval = f" [{ends[0]:.3f}, {ends[1]:.3f}]" if ends else ""
    return [
        "So near to saturation the means of all policies move together with the load that the seeds happened to draw; "
        "moved to the expected gap and lengths, by regression over the seeds, they are "
        f"{score['mean_abs_log_ratio']:.3f}{interval} from the paper's."
    ]


def _near(study: Study) -> str:
    found = {key: v for key, v in printed(study, study.main).items() if v.ratio}
    if not found:
        return ""
    near = sum(abs((v.ratio or 0) - 1) <= NEAR for v in found.values())
    above = sum((v.ratio or 0) > 1 for v in found.values())
    far = sorted(found, key=lambda k: -abs(math.log(found[k].ratio or 1)))[:FARTHEST]
    named = [
        f"{POLICIES[policy]}'s {METRICS[metric]} at {place} ({number(found[place, policy, metric].measured)} s against "
        f"{of_paper(found[place, policy, metric])} s)"
        for place, policy, metric in far
    ]
    return (
        f"{near} of {len(found)} are within {100 * NEAR:.0f} %, {above} are above the paper's; farthest: {join(named)}."
    )


SHARED = {"load": "load", "labels": "labels", "off": "jitter, concurrency"}
"""Settings that all profiles have as the paper states them."""


def _setup(study: Study) -> str:
    profiles = study.document["profiles"]
    names = [p for p in study.profiles if p in profiles]
    titles = {"requests": "requests a run", "engine": "engine", "latency": "step times", "aging": "aging"}
    rows = [[title, *("as stated" for _ in names), *STATED[key]] for key, title in SHARED.items()]
    rows += [["seeds", *(plain(study.document["settings"]["seeds"]) for _ in names), *STATED["seeds"]]]
    for key, title in titles.items():
        values = [profiles[p].get(key) for p in names]
        shown = [plain(v) if key == "requests" else code(str(v)) for v in values]
        rows.append([title, *shown, *STATED[key]])
    head = ["setting", *(code(p) for p in names), "the paper states", "the paper leaves open"]
    lines = [f"- {code(p)}: {escape(profiles[p]['summary'].rstrip('.'))}." for p in names]
    main = f"Figures and tables are of {code(study.main)} where no profile is named." if len(names) > 1 else ""
    return "\n\n".join(part for part in ["## Setup", "\n".join(lines), main, table(head, rows, len(head))] if part)
