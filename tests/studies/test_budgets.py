"""Budgets for the decodes of a workload, and the run that tries them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tailrace.errors import UserError
from tailrace.latency import Sample, build, step_shape, token_budget
from tailrace.studies import budgets
from tailrace.studies.budgets import Mix
from tailrace.studies.runs import Job, watch_job

pytestmark = pytest.mark.plain

SLO = 0.05
# A decode on 2,000 tokens costs three prefill tokens, so that those left out count.
MODEL = "profiled:constant_s=0.01,prefill_token_s=1e-4,decode_kv_s=1.5e-7"
JOB = Job("poisson:requests=30,rate_rps=6,prompt=2000,output=100", "sarathi", "sarathi:kv_tokens=200000", MODEL)
MIXED: list[Sample] = [
    (step_shape([(100, 0)], [(1, 10)]), 1.0),
    (step_shape([(200, 30), (100, 60)], [(1, 20), (1, 30), (1, 60)]), 1.0),
]
OTHERS: list[Sample] = [(step_shape([(900, 900)]), 1.0), (step_shape(decodes=[(1, 9999)] * 50), 1.0)]


def test_the_mean_is_of_steps_that_hold_both() -> None:
    assert budgets.mean_mix(MIXED) == Mix(2, 30.0, 30)  # 4 decodes on 120; 12,000 pairs of 400 tokens
    assert budgets.mean_mix(OTHERS + MIXED) == budgets.mean_mix(MIXED)
    assert budgets.mean_mix(MIXED, 7) == Mix(2, 30.0, 7)


def test_the_heavy_step_leaves_a_twentieth_of_the_steps_over_the_slo() -> None:
    rng, cost = np.random.default_rng(5), build(MODEL).cost
    mixes = [
        Mix(int(n), float(kv), 0) for n, kv in zip(rng.integers(1, 60, 200), rng.integers(1, 4000, 200), strict=True)
    ]
    heavy = token_budget(cost, SLO, *budgets.heavy_mix(mixes, cost, SLO))
    assert sum(token_budget(cost, SLO, *mix) < heavy for mix in mixes) == 9  # the tenth allows just that
    assert budgets.heavy_mix(mixes[:1], cost, SLO) == mixes[0]


def test_a_mix_that_is_given() -> None:
    study = budgets.given(MODEL, SLO, Mix(20, 2000.0, 500))
    alone, given = study.budgets
    assert alone.tokens == token_budget(build(MODEL).cost, SLO, prefill_kv_tokens=500)
    assert given.tokens == token_budget(build(MODEL).cost, SLO, 20, 2000.0, 500)
    assert given.typical_step_s < SLO < alone.typical_step_s
    assert study.workload is None
    assert alone.check is given.check is None
    assert budgets.given(MODEL, SLO, Mix(200, 2000.0, 0)).budgets[1].tokens == 0


def test_budgets_of_a_workload_are_tried() -> None:
    study = budgets.of_workload(JOB, SLO)
    alone, mean, heavy = study.budgets
    assert (alone.profiled_with, alone.mix, alone.tokens) == (budgets.ALONE, Mix(0, 0.0, 0), 399)
    assert alone.tokens > mean.tokens > heavy.tokens > 0
    assert mean.tokens == token_budget(build(MODEL).cost, SLO, *mean.mix)
    assert mean.typical_step_s == pytest.approx(SLO, rel=0.01)
    assert alone.check is not None
    assert mean.check is not None
    assert heavy.check is not None
    assert alone.check.over_share > mean.check.over_share > heavy.check.over_share
    assert json.loads(json.dumps(study.show())) == study.show()
    assert budgets.of_workload(JOB, SLO) == study


def test_the_check_counts_the_steps_that_a_watched_run_has() -> None:
    check = budgets.of_workload(JOB, SLO).budgets[0].check
    watched = watch_job(Job(JOB.workload, "sarathi", "sarathi:kv_tokens=200000,token_budget=399", MODEL))
    seconds = np.array([step.end_s - step.begin_s for step in watched.steps if step.decode_tokens])
    assert check is not None
    assert check.steps == len(watched.steps)
    assert check.over_share == pytest.approx((seconds >= SLO).mean())
    assert check.longest_s == pytest.approx(seconds.max())
    assert check.tpot_p99_s == watched.result.summary()["metrics"]["tpot_s"]["p99"]


def test_the_chunk_s_own_tokens_may_be_stated() -> None:
    study = budgets.of_workload(JOB, SLO, 100)
    assert [each.mix.prefill_kv_tokens for each in study.budgets] == [100, 100, 100]


@pytest.mark.parametrize(
    ("workload", "slo", "says"),
    [
        ("deterministic:requests=3,gap_s=90", SLO, "no step holds a prefill and decodes"),
        ("deterministic:requests=3", 0.01, "a step of one token already takes longer"),
        ("deterministic:requests=3,output=1", SLO, "no request decodes"),
    ],
)
def test_what_cannot_be_profiled_is_said(workload: str, slo: float, says: str) -> None:
    with pytest.raises(UserError, match=says):
        budgets.of_workload(Job(workload, "sarathi", JOB.engine, MODEL), slo)
