"""UniBoost's study: what is planned, and its document."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tailrace import latency, workloads
from tailrace.errors import UserError
from tailrace.studies import runs
from tailrace.studies.reproduce.experiments import choose
from tailrace.studies.reproduce.points import Point
from tailrace.studies.reproduce.uniboost import curves, plan, toys
from tailrace.studies.reproduce.uniboost.plan import EXPERIMENTS, Scope, cells, settings
from tailrace.studies.reproduce.uniboost.settings import POLICIES, Setting, engine, reference

from .worlds import SEEDS, Assumed, as_in_the_article, document

pytestmark = pytest.mark.plain

FULL, QUICK = Scope(EXPERIMENTS, SEEDS, False), Scope(EXPERIMENTS, 3, True)


@pytest.mark.parametrize("scope", [FULL, QUICK])
def test_every_point_can_be_run(scope: Scope) -> None:
    found = cells(scope, Assumed(settings(scope)))
    assert {cell.experiment for cell in found} >= set(plan.MAKERS) - {"capabilities"}
    for text in {cell.point.policy for cell in found}:
        runs.parse_policy(text)
    for point in {Point(c.point.traffic, "las", c.point.engine, c.point.latency) for c in found}:
        config = runs.parse_engine(point.engine)
        assert (config.rules.evict, config.rules.swap_out) in (("swap", "when_needed"), ("swap", "at_once"))
        assert config.host_kv_tokens * (latency.build(point.latency).kv_bytes_per_token or 0) <= 256e9


def test_a_quick_study_is_part_of_the_whole() -> None:
    whole, quick = (cells(scope, Assumed(settings(scope))) for scope in (FULL, QUICK))
    assert 4 * len({c.point for c in quick}) < 2 * len({c.point for c in whole})
    assert all(c.policy in {w.policy for w in whole} for c in quick)


def test_each_experiment_can_be_run_alone() -> None:
    for name in EXPERIMENTS:
        scope = Scope((name,), 2, True)
        assert cells(scope, Assumed(settings(scope))) or name in ("toys", "lengths", "staircase")


def test_the_reference_recomputes_and_sees_the_same_lengths() -> None:
    point = reference(Setting(kv_tokens=5000))
    config = runs.parse_engine(point.engine)
    assert (point.policy, config.rules.evict, config.max_seqs, config.kv_tokens) == ("sarathi", "recompute", 64, 5000)
    assert "azure-conv@0.3+s1k-like@0.7" in point.traffic.key()
    assert runs.parse_engine(engine(Setting(kv_tokens=5000))).kv_tokens == 5000


def test_an_unknown_experiment_is_refused() -> None:
    with pytest.raises(UserError, match=r"unknown experiment .staircas. .did you mean .staircase."):
        choose("staircas", EXPERIMENTS)
    assert choose("noise, toys", EXPERIMENTS) == ("toys", "noise")


def test_mix_two_has_its_output_tail_beyond_sixteen_thousand_tokens() -> None:
    w = workloads.load(f"poisson:requests=20000,lengths={Setting().drawn}", seed=1)
    assert np.quantile(w.output_tokens, 0.99) > 16_000


def test_half_of_the_spiky_load_is_in_spikes() -> None:
    capacities = Assumed([plan.SPIKY])
    capacities.rps = {plan.SPIKY: 6.0}
    w = plan.spiky(POLICIES["uniboost_low"], FULL, capacities).traffic.load(0)
    counts = np.bincount(w.arrival_s.astype(int))
    assert counts.max() > 50
    assert w.rate_rps == pytest.approx(6.0 * plan.SPIKY_RHO, rel=0.25)


def test_toys_are_the_articles() -> None:
    assert toys.latencies("convoy", "fcfs").mean() == 9.0
    assert toys.latencies("burst", "las").max() == 11.0


def test_memguards_stairs_never_lie_below_the_boost() -> None:
    stairs = {(g, tokens): boost for which, g, tokens, boost in curves.staircase() if which == "memguard"}
    for which, gamma, tokens, boost in curves.staircase():
        if which == "boost" and tokens >= 256:
            assert stairs[gamma, tokens] >= boost
    assert len({round(boost, 6) for (gamma, _), boost in stairs.items() if gamma == 0.02}) == 7  # 256 to 16,384


def test_the_document_holds_everything_that_was_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    made = document(as_in_the_article, FULL, monkeypatch)
    assert json.loads(json.dumps(made)) == made
    assert {row["experiment"] for row in made["rows"]} >= set(EXPERIMENTS) - {"tails", "capabilities"}
    wanted = {"profile", "experiment", "policy", "metric", "at", "paper", "measured", "ci", "seeds"}
    assert all(wanted <= row.keys() <= wanted | {"by_seed"} for row in made["rows"])
    printed = [row for row in made["rows"] if row["paper"] is not None]
    assert {row["experiment"] for row in printed} == {"against", "starvation", "toys"}
    found = {r["policy"]: r for r in made["capabilities"]}
    assert found.keys() == POLICIES.keys()
    assert found["uniboost_high"]["light_tail"] == pytest.approx(1.0, abs=0.01)
    assert found["uniboost_high"]["heavy_tail"] == pytest.approx(600 / 500, abs=0.01)
    assert made["not_run"] == {}
