"""What the error of an estimator is made of."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from tailrace.studies.estimator import estimate
from tailrace.studies.runs import Job

pytestmark = pytest.mark.plain

ROOFLINE = "roofline:model=qwen2-7b,device=a100-80gb"
JOB = Job("poisson:requests=40,rate_rps=6", "sarathi", "sarathi", ROOFLINE)
OTHER = "poisson:requests=30,rate_rps=15,seed=3"


def test_steps_of_the_profiled_model_are_estimated_exactly() -> None:
    [found] = estimate(Job(JOB.workload, "sarathi", "sarathi", "qwen2-7b-a100-derived"), [0.0])
    assert found.fit.held_out["all"].worst < 1e-6
    assert found.fit.held_out == found.undisturbed
    assert found.floor["all"].worst == 0
    assert found.elsewhere is None


def test_a_roofline_s_are_not_and_the_mixed_steps_are_worst() -> None:
    [found] = estimate(JOB, [0.0], elsewhere=replace(JOB, workload=OTHER))
    errors = found.fit.held_out
    assert 0.001 < errors["all"].mape < 0.06
    assert errors["mixed"].mape > 3 * errors["decode only"].mape
    assert found.elsewhere is not None
    assert found.elsewhere["all"].steps > 0
    assert found.elsewhere["all"] != errors["all"]


def test_jitter_sets_a_floor() -> None:
    calm, rough = estimate(JOB, [0.0, 0.1])
    assert (calm.jitter, rough.jitter) == (0.0, 0.1)
    assert calm.floor["all"].mape == 0
    # Of a lognormal factor with this coefficient of variation: the mean of |1/x - 1|, near that of |log x|.
    sigma = math.sqrt(math.log1p(0.01))
    assert rough.floor["all"].mape == pytest.approx(sigma * math.sqrt(2 / math.pi), rel=0.15)
    assert rough.fit.held_out["all"].mape > 0.9 * rough.floor["all"].mape
    assert rough.undisturbed["all"].mape < rough.fit.held_out["all"].mape


def test_the_same_again_and_as_plain_values() -> None:
    again = [estimate(JOB, [0.05]), estimate(JOB, [0.05])]
    assert again[0] == again[1]
    shown = again[0][0].show()
    assert json.loads(json.dumps(shown)) == shown
    assert shown["elsewhere"] is None
