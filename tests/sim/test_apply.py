"""Tokens in time, as they are delivered, against every token's time."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest

from tailrace.config import engine
from tailrace.latency import Latency, PiecewiseParams
from tailrace.metrics import gain
from tailrace.registry import POLICIES
from tailrace.sim.run import Instance
from tailrace.sim.watch import watch
from tailrace.workloads.workload import Workload

from .cases import TICK, Case, draw, swapping
from .digest import STEPS
from .tokens import in_time

pytestmark = pytest.mark.plain


def with_objectives(case: Case, rng: random.Random) -> Case:
    """Whole ticks, so that tokens come at the very moment they are due; some requests have one objective or none."""
    n = len(case.workload)
    ttft = [rng.choice([np.inf, *(k * 4 * TICK for k in (1, 4, 16, 64, 256))]) for _ in range(n)]
    tpot = [rng.choice([np.inf, *(k * TICK for k in (1, 4, 8, 16, 64))]) for _ in range(n)]
    changed = dataclasses.replace(case.workload, ttft_slo_s=np.array(ttft), tpot_slo_s=np.array(tpot))
    return dataclasses.replace(case, workload=changed)


@pytest.mark.parametrize("seed", range(40))
def test_tokens_in_time_are_counted_as_they_are_delivered(seed: int) -> None:
    rng = random.Random(seed)
    make = swapping if seed % 4 == 0 else draw
    seen = watch(with_objectives(make(rng.choice(["sink", "fcfs", "srpt", "qba"]), seed), rng).instance(), STEPS)
    first, later = in_time(seen)
    r = seen.result.requests
    assert r.on_time_tokens.tolist() == later
    assert r.first_on_time.astype(int).tolist() == first


def test_a_block_of_tokens_is_in_time_in_part() -> None:
    # A prompt of 8 tokens takes 4 ticks, then blocks of 4 tokens come after 8 and 12 ticks: tokens 1 to 4 and 5 to 8
    # (none comes with the prefill). With a TTFT of 7 ticks they are due after 7, 8, 9, 10 and 11, 12, 13, 14: the third
    # and fourth, the seventh and eighth are in time. With 8.5, all are.
    config = engine("qba", {"decode_block_tokens": 4, "kv_tokens": 1000})
    latency = Latency("flat", PiecewiseParams(constant_s=4 * TICK), None, "")
    fcfs = POLICIES.get("fcfs")
    seen = {}
    for ttft in (8, 8.5, 7.5, 7, 2):
        w = Workload.of([0.0], [8], [8], name="one", ttft_slo_s=ttft * TICK, tpot_slo_s=TICK)
        result = watch(Instance(w, fcfs, fcfs.Params(), config, latency)).result
        seen[ttft] = bool(result.requests.first_on_time[0]), int(result.requests.on_time_tokens[0])
    assert seen == {8: (False, 6), 8.5: (True, 7), 7.5: (False, 6), 7: (False, 4), 2: (False, 0)}


def test_ratios_are_those_of_all_tokens() -> None:
    seen = watch(with_objectives(draw("srpt", 3), random.Random(3)).instance(), STEPS)
    r = seen.result.requests
    first, later = in_time(seen)
    worth = r.prompt_tokens.sum() / r.output_tokens.sum()
    got = due = 0.0
    for row in np.flatnonzero(np.isfinite(r.ttft_slo_s)):
        got += worth * first[row] + max(later[row], 0)
        due += worth + (r.output_tokens[row] - 1) * (later[row] >= 0)
    assert 0.05 < got / due < 0.95
    found = gain(r)
    assert found is not None
    assert found["tdg_ratio"] == pytest.approx(got / due, rel=1e-12)
