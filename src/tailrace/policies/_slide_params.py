"""Options of slide, and what its presets make of those that are left to them."""

from __future__ import annotations

from typing import Annotated, Any, Final, NamedTuple

from .._jit import kernel
from ..params import P
from ._deadlines import FIRST_TOKEN

__all__ = ["ANYBODY", "DEADLINE", "DENSITY", "NOBODY", "TO_PREFILLS", "SlideParams", "bounds_late", "decodes_first"]
__all__ += ["displaces", "eta", "feasible_only", "hopeless_last", "least_chunk_tokens"]

PAPER, XLLM, TAILRACE = 0, 1, 2
SLIDE, DENSITY, DEADLINE = 0, 1, 2
OF_PRESET: Final = 0
ALL, FEASIBLE = 1, 2
LAST, RANKED = 1, 2
YES, NO = 1, 2
UNBOUNDED, ETA = 1, 2
ANYBODY, PREFILLS, NOBODY = 1, 2, 3
TO_HEAD, TO_PREFILLS = 0, 1

PRESET_ETA: Final = 0.65
"""xLLM's η, as a share of the smallest TPOT SLO. The paper gives no value, so ``paper`` takes it too."""
TAILRACE_ETA: Final = 0.9
"""With t_min of the feasible: no other form is better by a point anywhere in docs/papers/proserve.md."""
XLLM_LAST_CHUNK: Final = 50


class SlideParams(NamedTuple):
    """Parameters of slide."""

    preset: Annotated[
        int,
        P(
            "what every option left at `preset` (or -1) stands for: the paper's algorithm, its authors' scheduler "
            "xLLM, or ours, with hopeless prefills last",
            choices=("paper", "xllm", "tailrace"),
        ),
    ] = TAILRACE
    order: Annotated[
        int,
        P(
            "the sliding boundary, or one of its two orders alone: density (all with a deadline are urgent) or "
            "deadline (nobody is)",
            choices=("slide", "density", "deadline"),
        ),
    ] = SLIDE
    latency_budget: Annotated[
        bool, P("fill a step up to t_budget; false: up to the engine's tokens and sequences alone")
    ] = True
    decode_deadline: Annotated[
        int,
        P(
            "a decode's next token is due g·TPOT_SLO after the first one was due (the deadlines of the token gain: a "
            "decode then spends what an early first token saved), or after it came",
            choices=("tdg", "actual"),
        ),
    ] = FIRST_TOKEN
    t_min: Annotated[
        int,
        P(
            "whose remain bounds the step: everybody's (paper), or theirs who can still make it, remain ≥ e + c "
            "(xllm, tailrace)",
            choices=("preset", "all", "feasible"),
        ),
    ] = OF_PRESET
    all_late: Annotated[
        int,
        P(
            "t_budget where nobody can make it that t_min looks at: none, tokens and sequences alone bind (xllm), or η "
            "(tailrace)",
            choices=("preset", "unbounded", "eta"),
        ),
    ] = OF_PRESET
    eta: Annotated[
        float,
        P("η: least t_budget, as a share of the queue's smallest TPOT SLO; -1 = 0.65 (paper, xllm), 0.9 (tailrace)",
          low=-1.0),
    ] = -1.0  # fmt: skip
    coeff: Annotated[float, P("urgent if remain < coeff·φ", low=0.0)] = 1.0
    hopeless: Annotated[
        int,
        P(
            "prefills that can no longer make their first token's deadline, remain < e + c: last, by density "
            "(tailrace), or ranked as any other (paper, xllm)",
            choices=("preset", "last", "ranked"),
        ),
    ] = OF_PRESET
    urgent_decodes_first: Annotated[
        int,
        P("urgent decodes before urgent prefills: no (paper, tailrace), yes (xllm)", choices=("preset", "yes", "no")),
    ] = OF_PRESET
    misfit: Annotated[
        int, P("when the next piece of work does not fit t_budget: stop, as xLLM, or skip it", choices=("stop", "skip"))
    ] = 0
    min_last_chunk: Annotated[
        int,
        P("a chunk of at most so many tokens that does not end its prompt ends the step; -1 = 0 (paper, tailrace), "
          "50 (xllm)", unit="tokens", low=-1),
    ] = -1  # fmt: skip
    prefill_weight: Annotated[
        float,
        P("w_p:w_d, what a first token is worth beside a later one. It only weighs prefills against decodes, whose "
          "work is some hundred times smaller; the paper's value is the workload's mean input : mean output",
          low=0.0, open_low=True),
    ] = 1.0  # fmt: skip
    displace: Annotated[
        int,
        P(
            "whose place and KV a waiting request may take that outranks it: anybody's (paper, xllm), or only a "
            "prefill's (tailrace): a decode that must compute its KV again has often missed its TPOT by then",
            choices=("preset", "anybody", "prefills", "nobody"),
        ),
    ] = OF_PRESET
    starve_s: Annotated[
        float,
        P(
            "τ: whoever has waited for longer goes first, the longest first: a prefill since it arrived, a decode "
            "since a step served it; 0 = never",
            unit="s",
            low=0.0,
        ),
    ] = 0.0
    promote: Annotated[
        int,
        P(
            "where a starving request goes: to the head of the queue (the paper), or if it is a prefill to the head of "
            "the prefills, behind urgent decodes, whose TPOT a promoted long prompt would otherwise spoil",
            choices=("head", "prefills"),
        ),
    ] = TO_PREFILLS
    starve_share: Annotated[
        float, P("share of the steps in which starving requests do go first", low=0.0, high=1.0)
    ] = 0.15
    starve_eta: Annotated[
        float,
        P(
            "η while anybody starves, if that is more: longer steps do more work a second, just under the TPOT SLO",
            low=0.0,
        ),
    ] = 0.95
    protect_share: Annotated[
        float,
        P(
            "share of starve_s after which a request that waits keeps its KV while others can yield theirs (without "
            "it the tail of the queue yields); 0 = never",
            low=0.0,
            high=1.0,
        ),
    ] = 0.0


@kernel
def eta(params: Any) -> float:
    if params.eta >= 0:
        return params.eta
    return TAILRACE_ETA if params.preset == TAILRACE else PRESET_ETA


@kernel
def feasible_only(params: Any) -> bool:
    return bool(params.t_min == FEASIBLE or (params.t_min == OF_PRESET and params.preset != PAPER))


@kernel
def bounds_late(params: Any) -> bool:
    """Whether η bounds a step in which nobody can make it."""
    return bool(params.all_late == ETA or (params.all_late == OF_PRESET and params.preset == TAILRACE))


@kernel
def hopeless_last(params: Any) -> bool:
    return bool(params.hopeless == LAST or (params.hopeless == OF_PRESET and params.preset == TAILRACE))


@kernel
def decodes_first(params: Any) -> bool:
    first = params.urgent_decodes_first
    return bool(first == YES or (first == OF_PRESET and params.preset == XLLM))


@kernel
def displaces(params: Any) -> int:
    """ANYBODY, PREFILLS or NOBODY."""
    if params.displace != OF_PRESET:
        return int(params.displace)
    return PREFILLS if params.preset == TAILRACE else ANYBODY


@kernel
def least_chunk_tokens(params: Any) -> int:
    """The engine rule ``min_last_chunk``."""
    if params.min_last_chunk >= 0:
        return int(params.min_last_chunk)
    return XLLM_LAST_CHUNK if params.preset == XLLM else 0
