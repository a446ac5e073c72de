"""Runs from texts: parsing, the cache, and seeds."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tailrace.errors import UserError
from tailrace.studies import runs, store
from tailrace.studies.runs import Job


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty run cache (compiled code stays where it is)."""
    monkeypatch.setattr(store, "folder", lambda: tmp_path)
    return tmp_path


def test_policy_texts() -> None:
    assert runs.parse_policy("qba:k=3,window=10").params.window == 10
    assert runs.parse_policy("qba:k=3").label == "qba:k=3"
    assert runs.parse_policy("qba:k=5").label == "qba"
    assert runs.parse_policy("qba:reference=queue").label == "qba:reference=queue"
    assert [p.label for p in runs.parse_policies("fcfs,qba,k=2,psf")] == ["fcfs", "qba:k=2", "psf"]


def test_a_result_is_kept_and_a_damaged_one_is_made_again(cache: Path) -> None:
    job = Job("qba:requests=60", "fcfs", "qba")
    first = runs.run_job(job)
    (kept,) = cache.glob("*.npz")
    again = runs.run_job(job)
    assert again.summary() == first.summary()
    assert again.meta == first.meta
    kept.write_bytes(kept.read_bytes()[:200])
    assert runs.run_job(job).summary() == first.summary()
    assert list(cache.glob("*.tmp")) == []


def test_paths_are_kept_whole(cache: Path) -> None:
    result = runs.run_job(Job("qba:requests=60", "fcfs", "qba"))
    many, few = np.arange(500.0), np.array([1.0])
    store.save("some", dataclasses.replace(result, paths={"a_s": (many, many**2), "b": (few, -few)}))
    found = store.load("some")
    assert found is not None
    assert list(found.paths) == ["a_s", "b"]
    np.testing.assert_array_equal(found.paths["a_s"], (many, many**2))
    np.testing.assert_array_equal(found.paths["b"], (few, -few))
    assert runs.run_job(Job("qba:requests=60", "fcfs", "qba")).paths == {}


@pytest.mark.parametrize(
    "change",
    [
        {"policy": "psf"},
        {"engine": "qba:token_budget=64"},
        {"latency": "piecewise:constant_s=0.004"},
        {"workload": "qba:requests=61"},
        {"predictions": "none"},
        {"seed": 3},
        {"rate_scale": 2.0},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_input_has_its_own_key(cache: Path, change: dict[str, Any]) -> None:
    base: dict[str, Any] = {"workload": "qba:requests=60", "policy": "fcfs", "engine": "qba"}
    runs.run_job(Job(**base))
    runs.run_job(Job(**{**base, **change}))
    assert len(list(cache.glob("*.npz"))) == 2


def test_prune_drops_the_oldest(cache: Path) -> None:
    for n in (40, 50, 60):
        runs.run_job(Job(f"qba:requests={n}", "fcfs", "qba"))
    size = max(f.stat().st_size for f in cache.glob("*.npz"))
    store.prune(2 * size)
    assert len(list(cache.glob("*.npz"))) == 2


def test_seeds_are_means_of_each_runs_value(cache: Path) -> None:
    document, _ = runs.compare(Job("qba:requests=200", "fcfs", "qba"), ["fcfs"], seeds=(0, 1, 2), workers=1)
    single = [runs.run_job(Job("qba:requests=200", "fcfs", "qba", seed=s)).summary() for s in (0, 1, 2)]
    for statistic in ("mean", "p99"):
        values = [s["metrics"]["e2e_s"][statistic] for s in single]
        assert document["results"][0]["metrics"]["e2e_s"][statistic] == pytest.approx(np.mean(values))


def test_workers_give_what_one_process_gives(cache: Path) -> None:
    job = Job("qba:requests=100", "fcfs", "qba")
    one, _ = runs.compare(job, ["fcfs", "psf"], seeds=(0, 1), workers=1, cache=False)
    two, _ = runs.compare(job, ["fcfs", "psf"], seeds=(0, 1), workers=2, cache=False)
    assert one == two


def test_mistakes_surface_before_anything_runs(cache: Path) -> None:
    with pytest.raises(UserError, match="unknown parameter 'j'"):
        runs.compare(Job("qba:requests=60", "fcfs", "qba"), ["fcfs", "qba:j=3"], workers=1)
    with pytest.raises(UserError, match="names no device"):
        runs.compare(Job("qba:requests=60", "fcfs", "vllm_v1", "piecewise"), ["fcfs"], workers=1)
    assert list(cache.iterdir()) == []


@pytest.mark.slow
def test_the_azure_trace_runs_under_six_policies(azure_trace: Path, cache: Path) -> None:
    policies = ["fcfs", "psf", "aa", "qba", "sarathi", "srpt"]
    # A latency model that other tests use too: each policy is compiled once for them all.
    job = Job(str(azure_trace), "fcfs", "vllm_v1:kv_tokens=400000", "piecewise:constant_s=0.01,per_token_s=5e-5")
    document, _ = runs.compare(job, policies, workers=2)
    assert document["workload"]["requests"] == 19366
    for result in document["results"]:
        assert result["counts"]["completed"] == 19366, result["policy"]
        assert result["counts"]["rejected"] == 0
