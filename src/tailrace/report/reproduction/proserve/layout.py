"""The page: what is compared, the headline, what was run, then the figures one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...markup import code, escape, image, table
from ...values import number
from ..claims import claims_section
from ..layout import joined, not_run, section
from ..panels import Figure
from ..study import Study
from . import tables
from .headline import head, headline
from .names import MIXES, label

__all__ = ["page"]

BARS: Final = (
    "Margins are the project's own targets where they are not the paper's; “within” says how near counts as holding."
)
LOAD: Final = (
    "Load 1.0 is the rate (1 − c/TPOT_SLO) / E[work of a request], c being a step's constant time: in steps of the "
    "TPOT SLO the engine can then just do the work that arrives (each prefill in one chunk, each decode on its growing "
    "KV, by the latency model). Runs are drained; the first {skipped:.0f} % of the requests are not counted."
)
TTFT: Final = (
    "The TTFT SLO is 1 s or, where long prompts could not be served in that, twice what the P99 prompt takes alone in "
    "steps of the TPOT SLO, rounded up to half a second. The profiled token budget is the largest step that takes "
    "nine tenths of the TPOT SLO with as many decodes in it as there are at load 1.0: profiled on a prefill alone, or "
    "for all of the SLO, it would be too large, and Sarathi and SJF worse than they are."
)
FIXED: Final = (
    "SJF is by remaining work, told all output lengths; FCFS is Sarathi's. EDF serves whoever is most urgent as if all "
    "could be served; past saturation it finishes hardly anything in time."
)
BUDGETS: Final = "With a TTFT SLO of 1 s no budget's rise could be seen. SlideBatching is bounded by time as well."
REGIMES: Final = (
    "Of a step's order that group decides in which its seconds end: if all work fits, none. A prefill is hopeless once "
    "it can no longer make its deadline."
)
ABLATIONS: Final = "Without a latency budget a step holds the profiled token budget."
WEIGHTS: Final = "What happens to either class as the high one's weight grows; both have the same SLOs."
STARVATION: Final = (
    "A prefill that came more than τ ago, or a decode not served for so long, is starving. It is never helped; or in a "
    "share of the steps starving prefills go behind urgent decodes and before all other prefills, while steps are "
    "longer (η 0.95); or whoever starves is always at the head, as the paper has it. Under overload most of the "
    "waiting are starving, and at the head they are served instead of those that can still be in time."
)
MEMORY: Final = (
    "Reasoning mix, Qwen2-7B. Tight is a KV of {kv} tokens: with it vLLM-FCFS preempts {preemptions:g} times a request "
    "at load 0.85 (by bisection); half a time a request, as one would take, it never does, as it admits whole prompts "
    "only where they fit. Copies go at 25 GB/s each way."
)
NOISE: Final = "A step's time is the model's times a lognormal factor of mean 1; policies are told the model's."
VTC: Final = (
    "Service of the high class over the low one's while both are backlogged (load 3), prompt + 2·output tokens:"
)


def page(study: Study, figures: Sequence[Figure], folder: str) -> str:
    """The page as Markdown, with links to ``figures`` in ``folder`` beside it."""
    images = {f.name: image(f.title, f"{folder}/{f.name}.svg", f.caption) for f in figures}
    settings = study.document["settings"]
    kv, preempted = number(float(settings["tight_kv_tokens"])), settings["tight_preemptions"]
    sections = [
        head(study),
        headline(study),
        *_main(study, images),
        section("Classes (Fig. 3)", images.get("classes", ""), tables.classes(study, "fig3", "load")),
        section("EDF, SJF and FCFS (Figs. 4, 5)", images.get("fixed", ""), FIXED),
        section("Token budget (Fig. 8)", images.get("budgets", ""), BUDGETS),
        section("The sliding boundary", images.get("regimes", ""), REGIMES),
        section("Ablations", images.get("ablation", ""), ABLATIONS, _ablation(study)),
        section("Sensitivity", images.get("sensitivity", ""), tables.sensitivity(study)),
        section("Priority weights", images.get("weights", ""), WEIGHTS),
        section("Starvation", tables.starvation(study), STARVATION),
        section(
            "Block management",
            tables.memory(study),
            MEMORY.format(kv=kv, preemptions=preempted),
        ),
        section("Tighter and looser SLOs", images.get("slo", ""), ""),
        section("Noise", images.get("noise", ""), NOISE),
        section("Shares of weighted VTC", _shares(study)),
        _setup(study),
        claims_section(study, BARS),
        not_run(study),
    ]
    return joined(sections)


def _main(study: Study, images: dict[str, str]) -> list[str]:
    out = []
    for model in dict.fromkeys(at["model"] for at in study.places("fig12")):
        parts = [images.get(f"main-{model}", "")]
        for mix in MIXES:
            gain = tables.gains(study, model, mix, "tdg_ratio")
            if gain:
                parts += [f"{MIXES[mix]}, TDG_Ratio of ours above the others':", gain]
            parts.append(tables.by_load(study, model, mix))
        out.append(section(f"{model} (Fig. 12)", *parts))
    return out


def _ablation(study: Study) -> str:
    parts = []
    for metric, name in (("attainment", "Attainment (%)"), ("tdg_ratio", "TDG_Ratio (%)")):
        text = tables.over(study, "ablation", metric, "load")
        if text:
            parts.append(f"{name}:\n\n{text}")
    return "\n\n".join(parts)


def _shares(study: Study) -> str:
    rows = []
    for at in study.places("vtc"):
        value = study.value("vtc", "vtc", "service_ratio", at)
        if value is not None:
            rows.append([f"{at['weight']:g}", number(value.measured)])
    return f"{VTC}\n\n{table(['weight', 'service'], rows)}" if rows else ""


def _setup(study: Study) -> str:
    s = study.document["settings"]
    models = [[escape(name), code(m["latency"]), escape(m["about"])] for name, m in s["models"].items()]
    named = [[label(name), code(p["policy"]), code(p["engine"])] for name, p in s["policies"].items()]
    trace = (
        f"Azure's requests are windows of its trace ({escape(s['trace'])}), their arrivals expanded to the rate."
        if s["trace"]
        else "Azure's requests have the trace's lengths (by quantiles) and Poisson arrivals: the trace was not given."
    )
    parts = [
        LOAD.format(skipped=100 * s["skipped"]),
        TTFT,
        trace,
        tables.workloads(study),
        table(["model", "step times", ""], models, 3),
        "Engines, of the first model on Azure's workload. What is bounded by seconds has no other bound; the vLLM-like "
        "run at most 256 sequences, without which prefill first thrashes.",
        table(["", "policy", "engine"], named, 3),
    ]
    return section("Setup", *parts)
