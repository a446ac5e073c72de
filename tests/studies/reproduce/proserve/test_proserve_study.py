"""ProServe's study: what is planned, what a load is, and its document."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from tailrace import hooks, latency
from tailrace.studies import runs
from tailrace.studies.reproduce import points
from tailrace.studies.reproduce.proserve import overhead, plan, study, tight
from tailrace.studies.reproduce.proserve.plan import EXPERIMENTS, Scope, cells
from tailrace.studies.reproduce.proserve.settings import (
    MIXES,
    MODELS,
    POLICIES,
    TPOT_S,
    Setting,
    budget,
    capacity_rps,
    engine,
    of,
    ttft_slo_s,
)
from tailrace.studies.reproduce.proserve.variants import ALL_OFF, DEFAULTS, MEMORY, VARIED

from .worlds import KV, SEEDS, as_in_the_notes, document

pytestmark = pytest.mark.plain

FULL, QUICK = Scope(EXPERIMENTS, SEEDS, False), Scope(EXPERIMENTS, 3, True)


@pytest.mark.parametrize("scope", [FULL, QUICK])
def test_every_point_can_be_run(scope: Scope) -> None:
    found = cells(scope, KV)
    assert {cell.experiment for cell in found} >= set(plan.MAKERS) - {"vtc"}
    for text in {cell.point.policy for cell in found}:
        runs.parse_policy(text)
    for text in {cell.point.engine for cell in found}:
        runs.parse_engine(text)


def test_a_quick_study_is_part_of_the_whole() -> None:
    whole, quick = (cells(scope) for scope in (FULL, QUICK))
    assert 4 * len({c.point for c in quick}) < len({c.point for c in whole})
    assert all(c.policy in {w.policy for w in whole} for c in quick)


def test_load_one_is_what_steps_of_the_tpot_slo_can_do() -> None:
    cost = latency.build(MODELS["qwen2-7b"].latency).cost
    setting = Setting()
    w = of(setting, 1.0, SEEDS).load(0)
    p, n = w.prompt_tokens.astype(float), w.output_tokens.astype(float)
    c = cost._asdict()
    prefill = c["prefill_sq_s"] * p**2 + c["prefill_token_s"] * p
    decodes = (n - 1) * (c["decode_seq_s"] + c["decode_kv_s"] * (p + (n - 2) / 2))
    work = float((prefill + decodes).mean())
    assert capacity_rps("qwen2-7b", "azure") * work / (1 - c["constant_s"] / TPOT_S) == pytest.approx(1.0, rel=0.05)
    assert w.rate_rps == pytest.approx(capacity_rps("qwen2-7b", "azure"), rel=0.1)


def test_requests_are_the_same_for_all_policies_and_promised_alike() -> None:
    found = [c for c in cells(FULL) if c.experiment == "fig12" and c.at["load"] == 1.0 and c.at["mix"] == "azure"]
    by_model = {model: {c.point.traffic for c in found if c.at["model"] == model} for model in MODELS}
    assert [len(traffic) for traffic in by_model.values()] == [1, 1]
    w = next(iter(by_model["qwen2-7b"])).load(3)
    assert w.class_names == ("high", "low")
    assert w.class_weights == (2.0, 1.0)
    assert w.class_id.mean() == pytest.approx(0.5, abs=0.05)
    assert (w.priority == w.class_id).all()
    assert set(w.ttft_slo_s) == {1.0}
    assert set(w.tpot_slo_s) == {TPOT_S}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("mix", MIXES)
def test_long_prompts_can_make_the_ttft_slo(model: str, mix: str) -> None:
    cost = latency.build(MODELS[model].latency).cost
    prompts = of(Setting(model, mix), 1.0, SEEDS).load(1).prompt_tokens
    longest = int(np.quantile(prompts, 0.99))
    alone_s = hooks.chunk_s(longest, 0, cost) / (1 - hooks.constant_s(cost) / TPOT_S)
    slo_s = ttft_slo_s(model, mix)
    assert 1.5 * alone_s < slo_s < max(3.0 * alone_s, 1.01)
    assert slo_s % 0.5 == 0


def test_only_what_time_does_not_bound_has_the_profiled_budget() -> None:
    sizes = {name: runs.parse_engine(engine(Setting(), text)) for name, text in POLICIES.items()}
    profiled = budget("qwen2-7b", "azure")
    assert 128 < profiled < 1024
    assert {n for n, e in sizes.items() if e.token_budget == profiled} == {
        *("sarathi", "sarathi_priority", "edf", "priority", "sjf", "srpt")
    }
    assert {n for n, e in sizes.items() if e.max_seqs == 256} == {"prefill_first", "vtc", "vllm_fcfs"}


def test_every_variant_differs_and_each_varied_value_is_there() -> None:
    for what, values in VARIED.items():
        assert DEFAULTS[what] in values
        assert len({runs.parse_policy(text).params for text in values.values()}) == len(values)
    assert ALL_OFF in MEMORY
    for more in MEMORY.values():
        runs.parse_engine(engine(Setting(), POLICIES["tailrace"], kv_tokens=KV, **more))


def test_tight_memory_is_found_by_bisection(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def sample(asked: list[points.Point], seeds: int, *_: object) -> points.Samples:
        seen.append(runs.parse_engine(asked[0].engine).kv_tokens)
        rows = np.zeros((seeds, len(points._REDUCED["slos"][0])))
        rows[:, points._REDUCED["slos"][0].index("preemptions_per_request")] = 10_000 / seen[-1]
        return {asked[0]: rows}

    monkeypatch.setattr(tight, "sample", sample)
    assert tight.tight_kv_tokens(FULL) == math.ceil(100_000 / tight.STEP_TOKENS) * tight.STEP_TOKENS
    assert len(seen) < 14


def test_an_overheads_bound_is_a_round_number_above_it() -> None:
    assert [overhead.bound(us) for us in (3.0, 42.0, 99.0, 100.0, 5000.0)] == [10.0, 50.0, 100.0, 200.0, math.inf]


def test_the_document_holds_everything_that_was_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    made = document(as_in_the_notes, FULL, monkeypatch)
    assert json.loads(json.dumps(made)) == made
    assert {row["experiment"] for row in made["rows"]} >= set(EXPERIMENTS)
    wanted = {"profile", "experiment", "policy", "metric", "at", "paper", "measured", "ci", "seeds"}
    assert all(wanted <= row.keys() <= wanted | {"by_seed"} for row in made["rows"])
    printed = {row["metric"]: row for row in made["rows"] if row["paper"] is not None}
    assert printed.keys() == {"tdg_ratio_gain", "attainment_gain", "mape_percent"}
    assert printed["attainment_gain"]["measured"] == pytest.approx(100 * (0.9 / 0.5 - 1), abs=0.1)
    assert made["not_run"] == {}


def test_a_quick_study_says_what_it_leaves_out() -> None:
    assert study.prepare(study.Study(QUICK)).tight_kv_tokens == 0
    assert study._not_run(QUICK).keys() == {"memory", "estimator", "rest"}
