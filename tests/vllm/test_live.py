"""A small burst through vLLM's real engine, with its own scheduler and with ours.

Needs vLLM. What is compared counts engine steps, which no busy machine changes.
"""

from __future__ import annotations

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed here; run scripts/vllm")

from tailrace.studies import live

BURST = live.Burst(
    longs=20, shorts=80, over_steps=700, long_output=(50, 250), short_output=(16, 32), max_seqs=4, seed=1
)


def test_a_burst_is_served_in_our_order() -> None:
    """fcfs finishes as stock does, step by step; qba's short requests wait a fraction as long."""
    settings = live.plugin("stock,fcfs,qba")
    ((stock, fcfs, qba),) = live.run([BURST], list(settings.values()))
    assert sorted(stock.order) == list(range(100))
    assert stock.output_tokens == sum(ask.output_tokens for ask in live.plan(BURST))
    assert fcfs.order == stock.order
    assert fcfs.e2e_steps == stock.e2e_steps
    assert sorted(qba.order) == sorted(stock.order)
    short = [live.e2e(BURST, served, long=False, quantile=0.99, unit="steps") for served in (stock, qba)]
    assert short[1] <= short[0] / 2


@pytest.mark.plain
def test_step_times_are_learned_from_a_real_engine() -> None:
    """slide serves all under SLOs, and knows half way how long steps take, within what this machine's own noise is."""
    burst = live.Burst(longs=8, shorts=60, over_steps=150, long_output=(40, 80), short_output=(8, 24), max_seqs=8)
    slide = {"policy": "slide", "classes": {"all": {"ttft_slo_ms": 400, "tpot_slo_ms": 30}}}
    ((served,),) = live.run([burst], [slide])
    assert sorted(served.order) == list(range(68))
    assert served.learned["fits"] > 2
    assert served.learned["failures"] == 0
    assert served.learned["constant_s"] > 0
    assert served.learned["mape"] < 0.6
