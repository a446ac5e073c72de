"""The token budget for a TPOT SLO, profiled on a prefill alone and with what runs beside it.

A budget profiled on a prefill alone leaves out the decodes, and what the chunk's own prompt has computed
before. How many decodes run, and on how much KV, is taken from a short simulation of the workload under
Sarathi's order, with the lone prefill's budget: by Little's law it would follow from the mean time of a
step, which is what the budget decides; a run also knows the KV limit, the cap on sequences and the spread.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from ..errors import UserError
from ..latency import Sample, step_seconds, token_budget
from ..latency.budget import budget_step
from ..sim.shapes import step_samples
from .runs import Job, instance_of, parse_engine, parse_latency, workload_of

__all__ = ["ALONE", "HEAVY", "MEAN", "Budget", "Check", "Mix", "Study", "given", "heavy_mix", "mean_mix", "of_workload"]

ALONE: Final = "a prefill alone"
MEAN: Final = "the mean step"
HEAVY: Final = "a heavy step"
LIGHTER: Final = 0.95
"""Share of the steps that are lighter than the heavy one: their full steps meet the SLO with its budget."""


class Mix(NamedTuple):
    """What stands beside the tokens of a chunk in a step."""

    decodes: int
    kv_tokens: float
    """KV of a decode, in the mean."""
    prefill_kv_tokens: int
    """Of the chunk's prompt, computed before."""


@dataclass(frozen=True)
class Check:
    """What a run with a budget shows."""

    steps: int
    over_share: float
    """Share of the steps with decodes that take the SLO or longer: a token comes too late."""
    step_p99_s: float
    """Of the steps with decodes."""
    longest_s: float
    tpot_p99_s: float | None
    ttft_p99_s: float | None


@dataclass(frozen=True)
class Budget:
    """A budget, and what it was profiled with."""

    profiled_with: str
    mix: Mix
    tokens: int
    """0: no step meets the SLO with this mix."""
    typical_step_s: float
    """Of a full step of this budget in the mean mix."""
    check: Check | None = None


@dataclass(frozen=True)
class Study:
    """Budgets for one SLO; the first is the lone prefill's."""

    latency: str
    tpot_slo_s: float
    budgets: tuple[Budget, ...]
    workload: dict[str, Any] | None = None
    engine: str = ""

    def show(self) -> dict[str, Any]:
        """As plain values."""
        return {"study": "budget", **dataclasses.asdict(self), "budgets": [_shown(each) for each in self.budgets]}


def _shown(budget: Budget) -> dict[str, Any]:
    return {**dataclasses.asdict(budget), "mix": budget.mix._asdict()}


def given(latency: str, tpot_slo_s: float, mix: Mix) -> Study:
    """Budgets for a mix that the user names. Raises UserError for values that cannot be."""
    model = parse_latency(latency, parse_engine("sarathi"))
    mixes = {ALONE: Mix(0, 0.0, mix.prefill_kv_tokens), "the mix given": mix}
    return Study(model.name, tpot_slo_s, _budgets(model.cost, tpot_slo_s, mixes, mix))


def of_workload(job: Job, tpot_slo_s: float, prefill_kv_tokens: int | None = None) -> Study:
    """Budgets for the mix of steps that ``job``'s workload makes, each tried in a run of it.

    ``prefill_kv_tokens``: of the chunk in every row; by default none for the lone prefill and
    what the run shows for the others. The engine's own token budget is put aside. Raises
    UserError where no step holds a chunk and decodes, and for mistakes in the job.
    """
    config = parse_engine(job.engine)
    model = parse_latency(job.latency, config)
    lone = Mix(0, 0.0, prefill_kv_tokens or 0)
    alone = token_budget(model.cost, tpot_slo_s, *lone)
    if not alone:
        raise UserError(f"tpot_slo_s={tpot_slo_s:g}: a step of one token already takes longer under {model.name}")
    samples, first = _run(job, alone, tpot_slo_s)
    mixes = [_mix(sample, prefill_kv_tokens) for sample in samples if _is_mixed(sample)]
    if not mixes:
        raise UserError(f"workload {job.workload!r}: no step holds a prefill and decodes; give a higher rate")
    typical = mean_mix(samples, prefill_kv_tokens)
    asked = {ALONE: lone, MEAN: typical, HEAVY: heavy_mix(mixes, model.cost, tpot_slo_s)}
    found = _budgets(model.cost, tpot_slo_s, asked, typical)
    checks: dict[int, Check | None] = {alone: first, 0: None}
    for tokens in (each.tokens for each in found):
        if tokens not in checks:
            checks[tokens] = _run(job, tokens, tpot_slo_s)[1]
    tried = tuple(dataclasses.replace(each, check=checks[each.tokens]) for each in found)
    about = workload_of(job)
    shown = {"name": about.name, "requests": len(about), "rate_rps": about.rate_rps}
    return Study(model.name, tpot_slo_s, tried, shown, job.engine)


def _is_mixed(sample: Sample) -> bool:
    return sample[0].prefill_tokens > 0 and sample[0].decode_seqs > 0


def _mix(sample: Sample, prefill_kv_tokens: int | None) -> Mix:
    """That of a mixed step; its chunks are taken for one, whose tokens attend to as much."""
    shape = sample[0]
    cached = round(shape.prefill_cross / shape.prefill_tokens) if prefill_kv_tokens is None else prefill_kv_tokens
    return Mix(shape.decode_seqs, shape.decode_kv / shape.decode_seqs, cached)


def mean_mix(samples: Sequence[Sample], prefill_kv_tokens: int | None = None) -> Mix:
    """Decodes of a mixed step in the mean, rounded; the mean KV of one, and of a token of a chunk."""
    mixed = [shape for shape, seconds in samples if _is_mixed((shape, seconds))]
    decodes, chunks = sum(shape.decode_seqs for shape in mixed), sum(shape.prefill_tokens for shape in mixed)
    cached = round(sum(shape.prefill_cross for shape in mixed) / chunks)
    kv = sum(shape.decode_kv for shape in mixed) / decodes
    return Mix(round(decodes / len(mixed)), kv, cached if prefill_kv_tokens is None else prefill_kv_tokens)


def heavy_mix(mixes: Sequence[Mix], cost: Any, tpot_slo_s: float, lighter: float = LIGHTER) -> Mix:
    """The mix whose budget is met by the full steps of a share ``lighter`` of the mixes, and not of more."""
    ranked = sorted(mixes, key=lambda mix: (-token_budget(cost, tpot_slo_s, *mix), mix))
    return ranked[min(len(ranked) - 1, int(lighter * len(ranked)))]


def _budgets(cost: Any, tpot_slo_s: float, mixes: dict[str, Mix], typical: Mix) -> tuple[Budget, ...]:
    found = []
    for name, mix in mixes.items():
        tokens = token_budget(cost, tpot_slo_s, *mix)
        full = budget_step(max(0, tokens - typical.decodes), *typical)
        found.append(Budget(name, mix, tokens, step_seconds(full, cost)))
    return tuple(found)


def _run(job: Job, budget: int, tpot_slo_s: float) -> tuple[list[Sample], Check]:
    """Every step of the workload under Sarathi's order and this budget, and what it shows."""
    run = instance_of(job, token_budget=budget)
    samples = step_samples(run)
    found = run.result().summary()["metrics"]
    decoding = np.array([seconds for shape, seconds in samples if shape.decode_seqs])
    if not len(decoding):
        raise UserError(f"workload {job.workload!r}: no request decodes; there is nothing to keep under the SLO")
    check = Check(
        steps=len(samples),
        over_share=float((decoding >= tpot_slo_s).mean()),
        step_p99_s=float(np.quantile(decoding, 0.99)),
        longest_s=float(decoding.max()),
        tpot_p99_s=found["tpot_s"]["p99"],
        ttft_p99_s=found["ttft_s"]["p99"],
    )
    return samples, check
