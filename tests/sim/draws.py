"""Policies with random parameters, and their oracles."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tailrace import params as parameters
from tailrace.hooks import Policy
from tailrace.registry import POLICIES

from .model import Oracle
from .oracles import AA, ORACLES, QBA
from .shares import SHARES
from .sink import Sink, SinkOracle, SinkParams
from .sliding import SLIDING
from .soft import SOFT

TICK = 2.0**-10


def draw_sink(rng: random.Random) -> SinkParams:
    limited = rng.random() < 0.4
    return SinkParams(
        order=rng.randrange(4),
        protect=rng.choice([0, 20, 50]),
        hold=rng.choice([0, 30]),
        tokens=rng.choice([0, 9]) if limited else 0,
        seqs=rng.choice([0, 4]) if limited else 0,
        seconds=rng.choice([0.0, TICK / 8, 2 * TICK, 4 * TICK, 16 * TICK]) if limited else 0.0,
        sign=rng.choice([1, -1]),
    )


def _aging(rng: random.Random) -> dict[str, Any]:
    return {
        "aging_quantile": rng.choice([0.0, 0.5, 0.75, 1.0]),
        "reference": rng.choice(["history_long", "history_all", "queue"]),
        "window": rng.choice([4, 8, 16]),
        "min_samples": rng.choice([1, 3]),
    }


def _oracle(values: dict[str, Any]) -> dict[str, Any]:
    """Parameters under the oracle's names."""
    short = {"aging_quantile": "gamma", "min_samples": "least"}
    return {short.get(name, name): value for name, value in values.items()}


def _boosting(rng: random.Random, name: str) -> dict[str, Any]:
    """Parameters under which boosts are of the size of the gaps between arrivals."""
    pick = rng.choice
    values: dict[str, Any] = {"gamma_per_s": pick([0.5, 4.0, 32.0, 1e3]), "seconds_per_token": pick([TICK / 4, TICK])}
    if name == "gamma_boost":
        return {**values, "signal": pick(["attained", "size", "prompt"])}
    if name == "dist_boost":
        return {**values, "decodes": pick([0, 2, 5]), "chunk_tokens": pick([0, 6])}
    values["hysteresis_s"] = pick([0.0, 8 * TICK, 1.0])
    if name == "uniboost_base":
        return values
    values |= {"k_tokens": pick([1, 4, 16]), "lock": pick(["admission", "milestone", "none"])}
    values |= {"victim": pick(["rank", "kv"]), "order": pick(["ranked", "decode_first"])}
    if name == "memguard":
        return values
    values |= {"gamma_min_per_s": 0.25, "gamma_max_per_s": pick([1e3, 5e3]), "window": pick([4, 16])}
    return {**values, "min_samples": pick([2, 4]), "refit_s": pick([0.0, 16 * TICK]), "ema": pick([0.3, 1.0])}


def _soft(rng: random.Random, name: str) -> dict[str, Any]:
    pick = rng.choice
    if name == "mlfq":
        quanta = {"quantum_tokens": pick([1, 8]), "ratio": pick([2, 3]), "queues": pick([1, 3, 8])}
        return {**quanta, "join": pick(["prompt", "top"]), "starve_s": pick([0.0, 16 * TICK, 64 * TICK])}
    if name == "ltr":
        return {"work": pick(["total", "output"]), "idle_steps": pick([0, 5, 20]), "quantum_steps": pick([1, 3])}
    if name == "trail":
        rule = pick(["recompute", "decode_first"])
        return {"work": pick(["total", "output"]), "c": pick([0.0, 0.5, 0.75, 1.0]), "rule": rule}
    return {} if name in ("las", "spf") else _boosting(rng, name)


def _shares(rng: random.Random, name: str) -> dict[str, Any]:
    pick = rng.choice
    if name == "vtc":
        prices = {"input_price": pick([1.0, 0.5, 0.0]), "output_price": pick([2.0, 0.0])}
        return {"client": pick(["class", "tenant"]), **prices}
    if name == "edf":
        return {"due_from": pick(["slo", "first_token"]), "displaces": pick(["kv", "place", "nothing"])}
    if name == "sarathi_priority":
        return {"begun": pick(["first", "ranked"])}
    return {"decodes": pick(["wait", "fill"])} if name == "prefill_first" else {}


def _sliding(rng: random.Random, name: str) -> dict[str, Any]:
    """Options of slide; of the numbers those that leave sums exact."""
    pick = rng.choice
    return {
        "preset": pick(["paper", "xllm", "tailrace"]),
        "order": pick(["slide", "slide", "slide", "density", "deadline"]),
        "latency_budget": pick([True, True, True, False]),
        "decode_deadline": pick(["actual", "tdg"]),
        "t_min": pick(["preset", "preset", "all", "feasible"]),
        "all_late": pick(["preset", "unbounded", "eta"]),
        "eta": pick([-1.0, 0.0, 0.5, 1.0]),
        "coeff": pick([1.0, 1.0, 0.25]),
        "hopeless": pick(["preset", "preset", "last", "ranked"]),
        "urgent_decodes_first": pick(["preset", "yes", "no"]),
        "misfit": pick(["stop", "skip"]),
        "min_last_chunk": pick([0, 0, 2]),
        "prefill_weight": pick([1.0, 8.0]),
        "displace": pick(["preset", "anybody", "prefills", "nobody"]),
        "starve_s": pick([0.0, 0.0, 0.0, 16 * TICK, 128 * TICK]),
        "starve_share": pick([1.0, 0.25]),
        "promote": pick(["head", "prefills"]),
        "starve_eta": pick([0.0, 0.75, 2.0]),
        "protect_share": pick([0.0, 0.5, 0.5]),
    }


MADE: dict[str, Callable[..., Oracle]] = {**SOFT, **SHARES, **SLIDING}
"""Oracles that take their policy's parameters."""
DRAWN: dict[str, Callable[[random.Random, str], dict[str, Any]]] = {
    **dict.fromkeys(SOFT, _soft),
    **dict.fromkeys(SHARES, _shares),
    **dict.fromkeys(SLIDING, _sliding),
}


def draw_policy(rng: random.Random, name: str) -> tuple[type[Policy], Any, Oracle]:
    """The policy ``name`` with random parameters, and its oracle."""
    if name == "sink":
        sink = draw_sink(rng)
        return Sink, sink, SinkOracle(sink)
    cls: type[Policy] = POLICIES.get(name)
    values: dict[str, Any] = DRAWN[name](rng, name) if name in DRAWN else {}
    oracle: Callable[[], Oracle] = ORACLES[name] if name in ORACLES else lambda: MADE[name](**values)
    if name == "aa":
        values = _aging(rng)
        oracle = lambda: AA(**_oracle(values))  # noqa: E731
    if name == "qba":
        values = {"k": rng.randint(1, 4), "debts": rng.choice(["frozen", "accumulate"]), **_aging(rng)}
        oracle = lambda: QBA(**_oracle(values))  # noqa: E731
    assert cls.Params is not None
    return cls, parameters.build(cls.Params, values, name), oracle()
