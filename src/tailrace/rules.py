"""EngineRules: how an engine carries out a policy's order, each rule by name.

A policy insists on some (``Policy.rules``); the engine preset gives the rest. On a
clash the policy wins in the simulator. Kernels see the same rules as integer codes.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args, get_type_hints

import numpy as np

from .errors import UserError, nearest

__all__ = ["ENGINE_ONLY", "VLLM_V1", "EngineRules", "codes", "managed", "merge"]

ORDER_WAITING, ORDER_ALL = 0, 1
RANKED, RUNNING_FIRST, DECODE_FIRST, PREFILL_FIRST, PREFILL_ALONE = 0, 1, 2, 3, 4
ADMIT_CHUNK, ADMIT_PROMPT, ADMIT_PROJECTED = 0, 1, 2
STOP, SKIP = 0, 1
VICTIM_TAIL, VICTIM_HOOK = 0, 1
RECOMPUTE, SWAP = 0, 1
AT_ONCE, WHEN_NEEDED, AHEAD = 0, 1, 2
AS_WORK, AS_TOKENS = 0, 1
RELOAD_BLOCKING, RELOAD_LAYERWISE = 0, 1
COPY_ALL, COPY_ADAPTIVE = 0, 1
PROJECT_CHUNK, PROJECT_LIVE, PROJECT_GROWTH = 0, 1, 2
KV_PREEMPT, KV_STALL = 0, 1
KV_ENFORCED, KV_REPORTED = 0, 1


@dataclass(frozen=True)
class EngineRules:
    """Every rule of the engine, with vLLM V1's choice as the default."""

    order_scope: Literal["waiting", "all"] = "waiting"
    """What the policy's keys rank: the waiting only (the running keep their order of
    admission) or all requests."""
    phase_order: Literal["ranked", "running_first", "decode_first", "prefill_first", "prefill_alone"] = "running_first"
    """Who takes the step's budget first. ``ranked``: whoever ranks first.
    ``prefill_alone``: a step with a prefill has no decodes but those that resume from host memory."""
    continuation_first: bool = True
    """Begun prefills go before new ones; otherwise they compete by rank."""
    admit: Literal["chunk", "prompt", "projected"] = "chunk"
    """KV that must be free to start: the first chunk's, the whole prompt's (which is then
    reserved), or the projection's."""
    watermark: float = 0.0
    """Share of the KV kept free at admission while anything runs."""
    blocked_head: Literal["stop", "skip"] = "stop"
    """What a waiting request that cannot start does to those behind it."""
    chunk_cap: int = 0
    """Most prefill tokens of one request in a step; 0 = no cap."""
    chunk_cap_alone: bool = False
    """``chunk_cap`` also holds for a request that is the only one, running or waiting."""
    chunk_cap_adaptive: bool = False
    """``chunk_cap`` is never below an equal share of the step's budget for all requests."""
    decode_cap: int = 0
    """Most decodes in a step; 0 = no cap."""
    misfit: Literal["stop", "skip"] = "stop"
    """When the next piece of work does not fit what is left of the step: end the pass over the
    running, or over the waiting, in which it came; or try those behind it."""
    min_last_chunk: int = 0
    """A chunk that is not a prompt's last and has at most this many tokens does not fit (``misfit``)."""
    seconds_as: Literal["work", "tokens"] = "work"
    """How a policy's limit of seconds binds: each piece of work is cut to the seconds left, and others may
    fit behind it; or, as in vLLM, whose steps have a limit of tokens alone, the first piece that is cut lowers the
    step's tokens to what it gets, and from there only these bind."""
    victim: Literal["tail", "hook"] = "tail"
    """Who yields KV: the last in run order, or the policy's ``victim``."""
    evict: Literal["recompute", "swap"] = "recompute"
    """What becomes of a preempted request's KV: lost and computed again, or copied to host memory, from
    where it comes back before the request goes on: whole, unless ``swap_out`` or ``copy_budget`` say
    otherwise (if host memory is full: recomputed). With
    ``prefix_cache`` blocks that are still in the cache need not come back."""
    swap_out: Literal["at_once", "when_needed", "ahead"] = "at_once"
    """``evict="swap"``: a preempted request's KV is copied out at once (vLLM's engine V0), or stays on the
    device until a step needs its blocks (UniBoost's Algorithm 1), the worst ranked first. Who resumes before
    that needs no copies. Host memory is reserved when it is preempted. ``ahead``: full blocks are copied in
    the background while their request runs (ProServe), no step waits for them; a preempted request keeps what
    was copied by then, and the rest is recomputed."""
    reload: Literal["blocking", "layerwise"] = "blocking"
    """``evict="swap"``: a step computes once all KV that comes back for it is there, or each layer computes
    while the next one's KV comes (ProServe)."""
    copy_budget: Literal["all", "adaptive"] = "all"
    """``evict="swap"``: who resumes has all its KV copied back, or as much as the step has time for (ProServe):
    what is not copied is dropped from host memory and recomputed, or the request waits for another step. It
    binds where the policy limits the step's seconds. The first that resumes in a step may always copy all."""
    may_preempt_at_cap: bool = False
    """A waiting request may take the place of a running one at the sequence cap, and the KV it needs
    with it."""
    may_preempt_for_kv: bool = False
    """A waiting request may take the KV of running ones. Here and at the cap: of those that it
    outranks and that ``may_preempt`` gives it, once they are known to suffice."""
    projection: Literal["chunk", "live_prompt", "live_growth_prompt"] = "live_growth_prompt"
    """``admit="projected"``: what is live after this step plus the first chunk; what is live
    before it plus the whole prompt; what is live after it plus the whole prompt."""
    kv_short: Literal["preempt", "stall"] = "preempt"
    """A running request without a block preempts, or waits until nobody can go on."""
    admit_after_preemption: bool = False
    """New requests may start in a step in which KV pressure preempted somebody."""
    reserve_full_isl: bool = True
    """``admit="chunk"``: blocks for all known tokens must be free, though only the chunk's are taken."""
    decode_block_tokens: int = 1
    """Output tokens one decode makes in a step."""
    prefill_emits: bool = True
    """The step that ends a prefill delivers the first output token (as real engines do)."""
    kv_limit: Literal["enforced", "reported"] = "enforced"
    """``reported``: KV may pass its capacity and the steps in which it does are counted."""
    block_tokens: int = 16
    """Tokens a KV block holds."""
    steps_in_flight: int = 1
    """2 = asynchronous scheduling: a step is planned while the one before runs."""
    prefix_cache: bool = False
    """Full KV blocks keep their content until they are needed, and a request that begins alike takes
    them over. Whom to displace is then decided before the step, from the cache as it is then."""
    min_service_tokens: int = 64
    """Tokens that a request which was displaced in vain must attain before it may be displaced again."""

    def __post_init__(self) -> None:
        for name, kind in _hints().items():
            _check(name, kind, getattr(self, name))
        if self.prefix_cache and (self.admit != "chunk" or self.kv_limit != "enforced"):
            raise UserError("rule prefix_cache needs admit=chunk and kv_limit=enforced")
        if self.prefix_cache and self.swap_out == "when_needed":
            raise UserError("rule swap_out=when_needed does not go with prefix_cache=true yet: use swap_out=at_once")
        if self.prefix_cache and managed(self):
            name, value, off = managed(self)[0]
            raise UserError(f"rule {name}={value} does not go with prefix_cache=true yet: use {name}={off}")
        if self.seconds_as == "tokens" and (self.evict == "swap" or self.min_last_chunk > 0):
            raise UserError("rule seconds_as=tokens needs evict=recompute and min_last_chunk=0, as vLLM has them")
        if 0 < self.chunk_cap <= self.min_last_chunk:
            raise UserError(f"rule chunk_cap={self.chunk_cap} must be above min_last_chunk={self.min_last_chunk}")


def managed(rules: EngineRules) -> list[tuple[str, str, str]]:
    """``(name, value, the value that is off)`` of the rules that ask for ProServe's block management."""
    on = (("swap_out", "ahead", "at_once"), ("reload", "layerwise", "blocking"), ("copy_budget", "adaptive", "all"))
    return [(name, value, off) for name, value, off in on if getattr(rules, name) == value]


@functools.cache
def _hints() -> dict[str, Any]:
    return get_type_hints(EngineRules)


ENGINE_ONLY: Final = (
    *("decode_block_tokens", "prefill_emits", "kv_limit", "block_tokens", "steps_in_flight"),
    *("prefix_cache", "min_service_tokens", "seconds_as"),
)
"""Rules that always are the engine's: no policy may insist on them."""

_LOWEST = {"block_tokens": 1, "decode_block_tokens": 1, "steps_in_flight": 1}


def _check(name: str, kind: Any, value: Any) -> None:
    choices = get_args(kind)
    if choices:
        if value not in choices:
            raise UserError(f"rule {name}: {value!r} is not one of its values{nearest(str(value), choices)}")
    elif kind is bool:
        if not isinstance(value, bool):
            raise UserError(f"rule {name}: {value!r} must be true or false")
    elif kind is float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
            raise UserError(f"rule {name}: {value!r} must be a share in [0, 1)")
    elif isinstance(value, bool) or not isinstance(value, int) or value < _LOWEST.get(name, 0):
        raise UserError(f"rule {name}: {value!r} must be a whole number of at least {_LOWEST.get(name, 0)}")
    if name == "steps_in_flight" and value > 2:
        raise UserError(f"rule {name}: {value!r} must be 1 or 2")


def codes(rules: EngineRules) -> np.ndarray[Any, Any]:
    """``rules`` for kernels: one record; a literal is the position of its value, the rest as they are."""
    hints = _hints()
    kinds = {bool: "?", int: "i8", float: "f8"}
    record = np.zeros(1, dtype=[(name, kinds.get(kind, "i8")) for name, kind in hints.items()])
    for name, kind in hints.items():
        value = getattr(rules, name)
        record[name] = get_args(kind).index(value) if get_args(kind) else value
    return record


_HOW: Final[dict[str, Any]] = {"swap_out": "at_once", "reload": "blocking", "copy_budget": "all"}
"""Rules that say how ``evict="swap"`` swaps, as they are where nothing does."""


def merge(engine: EngineRules, wanted: dict[str, Any], policy: str) -> EngineRules:
    """``engine`` with the fields that ``policy`` insists on.

    Raises UserError for a field that does not exist or is the engine's alone, and for what says how to
    swap (`_HOW`) where neither swaps.
    """
    known = [field.name for field in dataclasses.fields(EngineRules)]
    for name in wanted:
        if name not in known:
            raise UserError(f"policy {policy}: no engine rule is called {name!r}{nearest(name, known)}")
        if name in ENGINE_ONLY:
            raise UserError(f"policy {policy}: rule {name!r} is the engine's, a policy cannot set it")
    rules = dataclasses.replace(engine, **wanted)
    if rules.evict == "swap":
        return rules
    for name, off in _HOW.items():
        if engine.evict != "swap" and getattr(rules, name) != off:
            raise UserError(f"rule {name}={getattr(rules, name)} needs evict=swap")
    return dataclasses.replace(rules, **_HOW)  # the policy recomputes on an engine that swaps


VLLM_V1: Final[dict[str, Any]] = {
    "order_scope": "waiting",
    "phase_order": "running_first",
    "continuation_first": True,
    "admit": "chunk",
    "blocked_head": "stop",
    "decode_cap": 0,
    "min_last_chunk": 0,
    "misfit": "stop",
    "kv_short": "preempt",
    "evict": "recompute",
    "may_preempt_at_cap": False,
    "may_preempt_for_kv": False,
    "admit_after_preemption": False,
}
"""What stock vLLM V1 fixes. Chunk caps, watermark and the full-prompt gate are its settings."""
