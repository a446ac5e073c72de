"""fcfs, the priorities, sjf and srpt: who goes first, and who is displaced for whom."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tailrace import params
from tailrace.config import engine
from tailrace.errors import UserError
from tailrace.hooks import Policy
from tailrace.latency import Latency, PiecewiseParams
from tailrace.registry import POLICIES
from tailrace.rules import ENGINE_ONLY, EngineRules, merge
from tailrace.sim.run import Instance, simulate
from tailrace.workloads.workload import Workload

LATENCY = Latency("paper", PiecewiseParams(), None, "")
ONE = {"max_seqs": 1, "kv_tokens": 4096, "token_budget": 64}


def run(name: str, workload: Workload, **overrides: Any) -> Any:
    policy = POLICIES.get(name)
    chosen = params.build(policy.Params, {}, name)
    return simulate(workload, policy, chosen, engine("vllm_v1", {**ONE, **overrides}), LATENCY).requests


def starts(name: str, workload: Workload, **overrides: Any) -> list[int]:
    return [int(i) for i in np.argsort(run(name, workload, **overrides).started_s, kind="stable")]


FIVE = Workload.of(
    [0.0, 0.001, 0.001, 0.002, 0.003],
    [32, 50, 10, 40, 10],
    [20, 9, 90, 9, 2],
    name="five",
    priority=[0, 5, -1, 5, 0],
    predicted_output_tokens=[20, 9, 90, 9, 2],
)


def test_fcfs_serves_in_order_of_arrival() -> None:
    assert starts("fcfs", FIVE) == starts("vllm_fcfs", FIVE) == starts("sarathi", FIVE) == [0, 1, 2, 3, 4]


def test_vllm_priority_sorts_the_waiting_and_displaces_nobody() -> None:
    requests = run("vllm_priority", FIVE)
    assert np.argsort(requests.started_s).tolist() == [0, 2, 4, 1, 3]
    assert requests.preemptions.sum() == 0


def test_priority_displaces_whoever_runs() -> None:
    requests = run("priority", FIVE)
    assert requests.preemptions.tolist() == [1, 0, 0, 0, 0]
    assert np.argsort(requests.finish_s).tolist() == [2, 0, 4, 1, 3]


def test_the_largest_priority_yields_kv_under_vllm_priority() -> None:
    workload = Workload.of([0.0, 0.0, 0.0], 16, 40, name="three", priority=[1, 9, 3])
    requests = run("vllm_priority", workload, max_seqs=3, kv_tokens=96, block_tokens=16)
    assert requests.preemptions[1] == requests.preemptions.max() > 0
    assert requests.preemptions[0] == 0


def test_sjf_goes_by_prompt_plus_prediction() -> None:
    requests = run("sjf", FIVE)
    size = FIVE.prompt_tokens + FIVE.predicted_output_tokens
    assert [int(size[i]) for i in np.argsort(requests.finish_s)] == sorted(size.tolist())


def test_spf_goes_by_prompt_among_the_waiting_and_displaces_nobody() -> None:
    requests = run("spf", FIVE)
    assert starts("spf", FIVE) == [0, 2, 4, 3, 1]
    assert requests.preemptions.sum() == 0


@pytest.mark.parametrize("name", ["sjf", "srpt", "priority"])
def test_equals_never_displace_each_other(name: str) -> None:
    """Neither at the sequence cap nor for KV; the first come runs to its end."""
    workload = Workload.of(np.arange(12) * 1e-3, 30, 12, name="equal", priority=0)
    for overrides in ({"max_seqs": 2}, {"max_seqs": 0, "kv_tokens": 128, "block_tokens": 1}):
        requests = run(name, workload, **overrides)
        assert np.argsort(requests.finish_s, kind="stable").tolist() == list(range(12))
        if overrides["max_seqs"]:
            assert requests.preemptions.sum() == 0


def test_srpt_lets_a_request_that_is_nearly_done_finish() -> None:
    workload = Workload.of([0.0, 0.15], [10, 10], [60, 15], name="two", predicted_output_tokens=[60, 15])
    assert run("srpt", workload).preemptions.tolist() == [0, 0]  # at 0.15 s the first has fewer left
    assert run("sjf", workload).preemptions.tolist() == [1, 0]  # by size at arrival it has more


def test_srpt_counts_a_request_past_its_prediction_as_one_token() -> None:
    workload = Workload.of([0.0, 0.1], [10, 1], [60, 1], name="late", predicted_output_tokens=[3, 1])
    assert run("srpt", workload).preemptions.tolist() == [0, 0]  # 1 left against 1 + 1


class Wrong(Policy):
    """Insists on whatever a test gives it."""

    name = "wrong"
    wanted: dict[str, Any] = {}  # noqa: RUF012

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        return Wrong.wanted


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"phase_ordr": "ranked"}, "no engine rule is called 'phase_ordr'.*phase_order"),
        ({"phase_order": "rankd"}, "'rankd' is not one of its values.*ranked"),
        ({"block_tokens": 1}, "'block_tokens' is the engine's"),
        ({"victim": "hook"}, "has no victim hook"),
        ({"evict": "swap"}, "needs host memory"),
        ({"decode_cap": -1}, "whole number of at least 0"),
    ],
)
def test_rules_that_do_not_exist_are_refused(
    wanted: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Wrong, "wanted", wanted)
    with pytest.raises(UserError, match=message):
        Instance(FIVE, Wrong, (), engine("vllm_v1", ONE), LATENCY)


@pytest.mark.parametrize("name", ENGINE_ONLY)
def test_what_is_the_engines_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="is the engine's"):
        merge(EngineRules(), {name: getattr(EngineRules(), name)}, "greedy")


def test_the_policy_wins_over_the_engine() -> None:
    policy = POLICIES.get("sarathi")
    chosen = Instance(FIVE, policy, params.build(policy.Params, {}, "sarathi"), engine("vllm_v1", ONE), LATENCY)
    assert (chosen.rules.phase_order, chosen.rules.watermark, chosen.rules.victim) == ("decode_first", 0.01, "hook")
