"""The queueing model of §III, calibrated from the simulator as §IV-A5 says.

Service times come from FCFS traces at λ = 30, promoted fractions from AA's and QBA's at five
loads. What the paper does not say is defined here: a service lasts from the first chunk to
the finish; n_safe is the KV that admission may fill over the mean KV of a decoding request.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ....config import EngineConfig
from ....errors import UserError
from ....metrics import FINISHED
from ....queueing import (
    Curve,
    DiscreteService,
    Moments,
    Service,
    Surrogate,
    decode_kv_tokens,
    effective_servers,
    matching_servers,
    safe_servers,
)
from ....table import LONG
from ... import runs
from ..measure import F8, MEASURES
from ..points import Samples, run
from .plan import CALIBRATION_RPS, PHI_RPS, POLICIES
from .profiles import Profile

__all__ = ["Calibration", "calibrate", "phi_points"]

TRACES: Final = 10
"""FCFS traces that service times are fitted to, one a seed."""
AGING: Final = ("aa", "qba")


@dataclass(frozen=True)
class Calibration:
    """The model with n as the paper defines it, and with the other readings of n."""

    models: Mapping[str, Surrogate]
    """By reading: ``stated`` = ⌊min(B/q, n_safe)⌋, ``budget`` = B/q, ``matched`` = by the FCFS wait at λ = 30."""
    shown: dict[str, Any]
    """As a JSON-able mapping."""

    def waits(self, reading: str, loads: Any) -> dict[tuple[str, int], float | None]:
        """(policy, λ) → E[W], None where ρ ≥ 1."""
        model = self.models[reading]
        return {(policy, rate): model.wait_s(policy, rate) for rate in loads for policy in POLICIES}


@dataclass(frozen=True)
class _Traces:
    """Requests of the FCFS traces that finished, (n,) each."""

    prompt: F8
    output: F8
    service_s: F8
    long: F8
    wait_s: float


def phi_points(profile: Profile) -> list[Any]:
    """The points whose tallies are the promoted fractions."""
    return [profile.point(policy, rate) for policy in AGING for rate in PHI_RPS]


def calibrate(profile: Profile, samples: Samples, seeds: int) -> Calibration:
    """Fit the model; ``samples`` hold `phi_points`."""
    traces = _traces(profile, min(seeds, TRACES))
    config = runs.parse_engine(profile.point("fcfs").engine)
    service = Service.fit(traces.prompt, traces.output, traces.service_s)
    seconds = service.seconds(traces.prompt, traces.output)
    moments = service.moments(traces.prompt, traces.output)
    kv = decode_kv_tokens(traces.prompt, traces.output)
    n_safe = safe_servers(config.kv_tokens, 1 - config.rules.watermark, kv)
    budget = config.token_budget // config.rules.decode_block_tokens
    servers = {
        "stated": effective_servers(config.token_budget, config.rules.decode_block_tokens, n_safe),
        "budget": budget,
        "matched": matching_servers(CALIBRATION_RPS, moments, traces.wait_s),
    }
    fractions = {policy: _fractions(profile, samples, policy) for policy in AGING}
    models = {
        reading: Surrogate.of(
            seconds,
            traces.long,
            n,
            {p: Curve.of([(rate * moments.mean / n, phi) for rate, phi in found]) for p, found in fractions.items()},
        )
        for reading, n in servers.items()
    }
    shown = {
        "rate_rps": CALIBRATION_RPS,
        **dataclasses.asdict(service),
        "mean_service_s": moments.mean,
        "service_scv": moments.scv,
        "r_squared": 1 - float(np.var(traces.service_s - seconds) / np.var(traces.service_s)),
        "mean_decode_kv_tokens": kv,
        "n_safe": n_safe,
        "budget_servers": budget,
        "servers": servers["stated"],
        "matched_servers": servers["matched"],
        "capacity_rps": {reading: model.capacity_rps for reading, model in models.items()},
        "discrete": _discrete(traces, config),
        "phi": {
            policy: [{"rate_rps": rate, "rho": models["stated"].utilisation(rate), "phi": phi} for rate, phi in found]
            for policy, found in fractions.items()
        },
    }
    return Calibration(models, shown)


def _traces(profile: Profile, seeds: int) -> _Traces:
    columns: list[list[F8]] = []
    waits = []
    for seed in range(seeds):
        made = run(profile.point("fcfs", CALIBRATION_RPS), seed)
        n, w = len(made.workload), made.workload
        done = made.records.out["reason"][:n] == FINISHED
        started = made.buffers.table["started_s"][:n]
        service = made.records.out["finish_s"][:n] - started
        long = w.predicted_class == LONG
        columns.append([np.asarray(c, float)[done] for c in (w.prompt_tokens, w.output_tokens, service, long)])
        waits.append(float(np.nanmean(started - w.arrival_s)))
    prompt, output, service, long = (np.concatenate(part) for part in zip(*columns, strict=True))
    return _Traces(prompt, output, service, long, float(np.mean(waits)))


def _fractions(profile: Profile, samples: Samples, policy: str) -> list[tuple[float, float]]:
    """(λ, φ), pooled over seeds."""
    started, ahead = (MEASURES.index(name) for name in ("predicted_long_started", "promoted"))
    out = []
    for rate in PHI_RPS:
        rows = samples[profile.point(policy, rate)]
        out.append((float(rate), float(rows[:, ahead].sum() / rows[:, started].sum())))
    return out


def _discrete(traces: _Traces, config: EngineConfig) -> dict[str, Any] | None:
    """Eq. 2 with C_p = B, the largest chunk there is; None where it cannot be fitted."""
    chunk, block = config.token_budget, config.rules.decode_block_tokens
    try:
        found = DiscreteService.fit(
            traces.prompt, traces.output, traces.service_s, chunk_tokens=chunk, block_tokens=block
        )
    except UserError:
        return None
    moments: Moments = found.moments(traces.prompt, traces.output)
    return {
        "s0_s": found.s0_s,
        "prefill_chunk_s": found.chunk_s,
        "decode_block_s": found.block_s,
        "chunk_tokens": chunk,
        "mean_service_s": moments.mean,
        "service_scv": moments.scv,
    }
