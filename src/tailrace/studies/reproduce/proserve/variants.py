"""What is changed of SlideBatching and of its engine, one thing at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["ABLATIONS", "ALL_OFF", "ALL_ON", "DEFAULTS", "HEAD", "LEAST_S", "MEMORY", "PROTECTED", "STARVATION"]
__all__ += ["VARIED", "slide"]

SLIDE: Final = "slide:preset=tailrace"


def slide(**changed: Any) -> str:
    """Our preset with other options."""
    return ",".join([SLIDE, *(f"{name}={value}" for name, value in changed.items())])


ABLATIONS: Final[Mapping[str, str]] = {
    "whole": SLIDE,
    "only deadline": slide(order="deadline"),
    "only density": slide(order="density"),
    "no latency budget": slide(latency_budget="false"),
    "hopeless ranked": slide(hopeless="ranked"),
    "deadlines of the token gain": slide(decode_deadline="tdg"),
    "t_min of all": slide(t_min="all"),
    "paper": "slide:preset=paper",
    "paper, only deadline": "slide:preset=paper,order=deadline",
    "paper, only density": "slide:preset=paper,order=density",
    "xllm": "slide:preset=xllm",
}
"""Name → policy. Without a latency budget a step has the profiled token budget."""

COEFFICIENTS: Final = (0.01, 0.1, 0.5, 0.8, 1.0, 2.0, 10.0)
VARIED: Final[Mapping[str, Mapping[str, str]]] = {
    "coeff": {f"{c:g}": slide(coeff=c) for c in COEFFICIENTS},
    "coeff, the paper's form": {f"{c:g}": f"slide:preset=paper,coeff={c:g}" for c in COEFFICIENTS},
    "η, of the TPOT SLO": {f"{e:g}": slide(eta=e) for e in (0.2, 0.4, 0.65, 0.8, 0.9, 0.95, 1.0, 2.0)},
    "w_p:w_d in the order": {f"{w:g}": slide(prefill_weight=w) for w in (0.1, 1.0, 5.5, 100.0)},
    "whom the waiting displace": {w: slide(displace=w) for w in ("anybody", "prefills", "nobody")},
    "at a misfit": {w: slide(misfit=w) for w in ("stop", "skip")},
    "t_budget where all are late": {w: slide(all_late=w) for w in ("eta", "unbounded")},
    "urgent decodes first": {w: slide(urgent_decodes_first=w) for w in ("no", "yes")},
    "least last chunk, tokens": {f"{t}": slide(min_last_chunk=t) for t in (0, 50)},
}
"""What is varied → its values → policy. 5.5 is mean input : mean output of Azure's conversations."""
DEFAULTS: Final[Mapping[str, str]] = {
    "coeff": "1",
    "coeff, the paper's form": "1",
    "η, of the TPOT SLO": "0.9",
    "w_p:w_d in the order": "1",
    "whom the waiting displace": "prefills",
    "at a misfit": "stop",
    "t_budget where all are late": "eta",
    "urgent decodes first": "no",
    "least last chunk, tokens": "0",
}

LEAST_S: Final = 30.0
"""τ of the study."""
PROTECTED: Final = "15 % of the steps"
HEAD: Final = "to the head"
STARVATION: Final[Mapping[str, str]] = {
    "off": SLIDE,
    "5 % of the steps": slide(starve_s=LEAST_S, starve_share=0.05),
    PROTECTED: slide(starve_s=LEAST_S),
    "30 % of the steps": slide(starve_s=LEAST_S, starve_share=0.3),
    "15 %, no longer steps": slide(starve_s=LEAST_S, starve_eta=0.0),
    HEAD: slide(starve_s=LEAST_S, starve_share=1.0, promote="head", starve_eta=0.0),
}
"""What becomes of whoever has waited for τ. `PROTECTED` is the default once τ is given; `HEAD` is the paper's: first
in every step."""

HOST_TOKENS: Final = 2_000_000
SWAP: Final[Mapping[str, Any]] = {"evict": "swap", "host_kv_tokens": HOST_TOKENS}
ALL_OFF: Final = "recompute"
ALL_ON: Final = "all parts"
MEMORY: Final[Mapping[str, Mapping[str, Any]]] = {
    ALL_OFF: {},
    "blocking swap": {**SWAP, "swap_out": "at_once"},
    "swap when needed": {**SWAP, "swap_out": "when_needed"},
    "copies ahead": {**SWAP, "swap_out": "ahead"},
    "copies ahead, layer by layer": {**SWAP, "swap_out": "ahead", "reload": "layerwise"},
    ALL_ON: {**SWAP, "swap_out": "ahead", "reload": "layerwise", "copy_budget": "adaptive"},
    "all but copies ahead": {**SWAP, "swap_out": "at_once", "reload": "layerwise", "copy_budget": "adaptive"},
    "all but layer by layer": {**SWAP, "swap_out": "ahead", "copy_budget": "adaptive"},
}
"""Parts of block management → what of the engine they set. `ALL_OFF` has none of them, `ALL_ON` all there are; all
but the copy budget is "copies ahead, layer by layer"."""
