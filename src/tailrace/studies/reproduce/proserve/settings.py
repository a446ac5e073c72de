"""What is run on what: models, workloads and their SLOs, policies and their engines, and what a load is."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from .... import hooks, latency, spec, workloads
from ..points import Point
from ..traffic import Generated, Promised, Windows

__all__ = ["BASELINES", "FCFS", "MIXES", "MODELS", "PAPERS", "POLICIES", "SKIPPED", "SLIDES", "Model", "Setting"]
__all__ += ["TPOT_S", "TTFT_S", "UNBOUND", "budget", "capacity_rps", "engine", "of", "point", "ttft_slo_s"]


class Model(NamedTuple):
    """Step times, and the memory that goes with them."""

    latency: str
    memory_of: str
    """The latency preset whose device's KV capacity it has."""
    roofline: str
    """What times the steps that its estimator is fitted to."""
    about: str


ASSUMED: Final = {
    "constant_s": 9e-3,
    "prefill_token_s": 9e-5,
    "prefill_sq_s": 1.7e-9,
    "prefill_cross_s": 3.3e-9,
    "decode_seq_s": 4e-5,
    "decode_kv_s": 4.4e-8,
}
MODELS: Final[Mapping[str, Model]] = {
    "qwen2-7b": Model(
        spec.write("profiled", ASSUMED),
        "qwen2-7b-a100-derived",
        "roofline:model=qwen2-7b,device=a100-80gb",
        "step times assumed, in the profiled form: 9 ms, 0.09 ms a prefill token, 0.04 ms a decode, and attention",
    ),
    "qwen3-32b": Model(
        "qwen3-32b-tp2-a100-derived",
        "qwen3-32b-tp2-a100-derived",
        "roofline:model=qwen3-32b,device=a100-80gb,tp=2",
        "on two A100, step times derived from published figures, not measured",
    ),
}


class Mix(NamedTuple):
    """A workload without its rate."""

    arrivals: str
    lengths: str
    duration_s: float
    """Of its arrivals."""
    about: str


MIXES: Final[Mapping[str, Mix]] = {
    "azure": Mix("poisson", "azure-conv", 300.0, "lengths of Azure's 2023 conversation trace"),
    "sharegpt": Mix("poisson", "sharegpt-like", 300.0, "chats like ShareGPT's, Poisson arrivals"),
    "bursty": Mix(
        "gamma:cv=2",
        "lognormal:512:1.2:160:1.0",
        300.0,
        "as BurstGPT: gamma gaps (CV 2, assumed), lengths of a high variance (lognormals, assumed)",
    ),
    "reasoning": Mix(
        "poisson",
        "azure-conv@0.9+s1k-like@0.1",
        900.0,
        "nine in ten as Azure's, one in ten reasons (outputs of some 4,500 tokens); longer runs, as its requests last",
    ),
}
TTFT_S: Final = 1.0
TPOT_S: Final = 0.05
TTFT_QUANTILE: Final = 0.99
TTFT_TIMES: Final = 2.0
TTFT_STEP_S: Final = 0.5
"""TTFT SLOs are multiples of it."""
WEIGHT: Final = 2.0
"""The high class's; the low one's is 1."""
SKIPPED: Final = 0.1
BUDGET_SHARE: Final = 0.9
"""Of the TPOT SLO, for which token budgets are profiled: as much room as SlideBatching's η leaves. At all of it
every other step is too long, and half of the requests of a full engine miss their TPOT."""
DRAWN: Final = 20_000
DRAW_SEED: Final = 999
"""Of the lengths that expectations are taken of; no run has it."""
UNBOUND: Final = 8192
"""Tokens a step where seconds bound it."""
VLLM: Final = {"token_budget": 2048, "max_seqs": 256}
"""vLLM's defaults on a data-centre GPU."""

SLIDES: Final[Mapping[str, str]] = {
    "tailrace": "slide:preset=tailrace",
    "paper": "slide:preset=paper",
    "xllm": "slide:preset=xllm",
}
PAPERS: Final[Mapping[str, str]] = {
    "prefill_first": "prefill_first",
    "vtc": "vtc",
    "sarathi": "sarathi",
    "sarathi_priority": "sarathi_priority",
    "fairbatching": "fairbatching",
}
"""Whom the paper's main figures compare with."""
FCFS: Final[Mapping[str, str]] = {
    **PAPERS,
    "edf": "edf:due_from=first_token",
    "priority": "priority",
    "vllm_fcfs": "vllm_fcfs",
}
"""Every baseline in order of arrival, by deadline, by class, or by share. EDF's deadlines are those that attainment
is about: counted from when the first token was due, decodes spend what an early one saved and miss their TPOT."""
BASELINES: Final[Mapping[str, str]] = {**FCFS, "sjf": "sjf", "srpt": "srpt"}
POLICIES: Final[Mapping[str, str]] = {**SLIDES, **BASELINES}
"""Name in the study → policy."""


@dataclass(frozen=True)
class Setting:
    """A model, a workload, and what its requests are promised."""

    model: str = "qwen2-7b"
    mix: str = "azure"
    weight: float = WEIGHT
    ttft_s: float = 0.0
    """0 = `ttft_slo_s`."""
    scale: float = 1.0
    """Of both objectives."""
    trace: str = ""
    """Azure's conversation trace, whose windows replace the generated Azure workload."""


@functools.cache
def _lengths(mix: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Prompts and outputs that expectations are taken of."""
    w = workloads.load(f"poisson:requests={DRAWN},lengths={MIXES[mix].lengths}", seed=DRAW_SEED)
    return w.prompt_tokens, w.output_tokens


def _cost(model: str) -> Any:
    return latency.build(MODELS[model].latency).cost


@functools.cache
def ttft_slo_s(model: str, mix: str) -> float:
    """1 s or, where that is too little for long prompts, twice what the P99 prompt takes in steps of the TPOT SLO.

    Rounded up to half a second. A step of that length has TPOT_SLO − c for work.
    """
    cost = _cost(model)
    prompt = int(np.quantile(_lengths(mix)[0], TTFT_QUANTILE))
    alone_s = hooks.chunk_s(prompt, 0, cost) / (1 - hooks.constant_s(cost) / TPOT_S)
    return max(TTFT_S, math.ceil(TTFT_TIMES * alone_s / TTFT_STEP_S) * TTFT_STEP_S)


def _work_s(prompt: int, output: int, cost: Any) -> float:
    """Of one request; a decode's seconds are linear in its KV, so all cost as the mean of the first and the last."""
    first, last = (hooks.decode_s(1, kv, cost) for kv in (prompt, max(prompt + output - 2, 0)))
    return hooks.chunk_s(prompt, 0, cost) + (output - 1) * (first + last) / 2


@functools.cache
def capacity_rps(model: str, mix: str) -> float:
    """Load 1: (1 − c/TPOT_SLO) / E[work of a request], requests/s.

    A request's work is its prefill in one chunk and each of its decodes on its growing KV, by the latency model.
    """
    cost = _cost(model)
    prompt, output = _lengths(mix)
    work = [_work_s(int(p), int(n), cost) for p, n in zip(prompt, output, strict=True)]
    return float((1 - hooks.constant_s(cost) / TPOT_S) / np.mean(work))


@functools.cache
def budget(model: str, mix: str) -> int:
    """Most tokens of a step that takes `BUDGET_SHARE` of the TPOT SLO, with the decodes there are at load 1 in it.

    By Little's law those are rate · E[decodes] · TPOT_SLO, on the KV that a decode finds in the mean.
    """
    prompt, output = (tokens.astype(float) for tokens in _lengths(mix))
    decodes = output - 1
    kv = float((decodes * (prompt + decodes / 2)).sum() / decodes.sum())
    cached = float((prompt**2).sum() / (2 * prompt.sum()))
    count = round(capacity_rps(model, mix) * float(decodes.mean()) * TPOT_S)
    return latency.token_budget(_cost(model), BUDGET_SHARE * TPOT_S, count, kv, int(cached))


def engine(setting: Setting, policy: str, **more: Any) -> str:
    """The engine that goes with a policy, as text; ``more`` replaces its settings.

    What is bounded by seconds has no other bound; the vLLM-like have vLLM's tokens and sequences; the rest the
    profiled token budget.
    """
    name = policy.partition(":")[0]
    if name in ("slide", "fairbatching"):
        sizes: dict[str, Any] = {"token_budget": UNBOUND, "max_seqs": 0}
    elif name in ("prefill_first", "vtc", "vllm_fcfs"):
        sizes = dict(VLLM)
    else:
        sizes = {"token_budget": budget(setting.model, setting.mix), "max_seqs": 0}
        if name == "priority":  # or begun prefills of the low class go before the high one's decodes
            sizes["continuation_first"] = "false"
    return spec.write("vllm_v1", {**sizes, **_memory(setting.model), **more})


def _memory(model: str) -> dict[str, Any]:
    device = latency.build(MODELS[model].memory_of)
    return {
        "kv_tokens": device.kv_tokens,
        "kv_bytes_per_token": device.kv_bytes_per_token,
        "layers": device.layers,
    }


def of(setting: Setting, load: float, seeds: int, shorter: float = 1.0) -> Promised:
    """The requests at ``load`` with their promises; ``shorter``: of the arrivals' time this share."""
    mix = MIXES[setting.mix]
    rate = float(f"{load * capacity_rps(setting.model, setting.mix):.4g}")
    requests = max(round(rate * mix.duration_s * shorter), 20)
    ttft_s = setting.ttft_s or ttft_slo_s(setting.model, setting.mix)
    service = workloads.Service(
        f"high@0.5 weight={setting.weight:g} priority=0 + low@0.5 weight=1 priority=1",
        f"ttft_s={ttft_s:g},tpot_s={TPOT_S:g}",
        setting.scale,
    )
    if setting.trace and setting.mix == "azure":
        return Promised(Windows(setting.trace, max(seeds, 2), rate, 1.0, requests), service)
    joint = "," if ":" in mix.arrivals else ":"
    text = f"{mix.arrivals}{joint}rate_rps={rate:g},requests={requests},lengths={mix.lengths}"
    return Promised(Generated(text), service)


def point(setting: Setting, policy: str, traffic: Promised, **more: Any) -> Point:
    """``policy`` (as text) on ``traffic``; ``more``: what of its engine differs."""
    return Point(
        traffic, policy, engine(setting, policy, **more), MODELS[setting.model].latency, "oracle", SKIPPED, "slos"
    )
