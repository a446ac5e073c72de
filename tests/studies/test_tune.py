"""The sweep: what is tried, who is on the front, what is recommended."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

from tailrace.errors import UserError
from tailrace.studies import runs
from tailrace.studies import tune as study
from tailrace.studies.objective import parse
from tailrace.studies.runs import Job
from tailrace.studies.tune import Setting, expand, front, tune


def _setting(*values: float | None, label: str = "x") -> Setting:
    return Setting("x", label, {}, values, (None,) * len(values), 0, "STABLE", "", [])


def test_alternatives_are_multiplied_out() -> None:
    assert expand("fcfs,qba:k=2|5,aging_quantile=0.5|0.9,psf") == [
        "fcfs",
        "qba:k=2,aging_quantile=0.5",
        "qba:k=2,aging_quantile=0.9",
        "qba:k=5,aging_quantile=0.5",
        "qba:k=5,aging_quantile=0.9",
        "psf",
    ]
    assert expand("qba:k=5|5|5.0,fcfs,fcfs,qba") == ["qba:k=5", "fcfs"]  # the default is a setting like any other
    assert len(expand(study.DEFAULT)) == 24
    named = "tailrace.policies.quota:QBA"
    assert expand(f"{named}:k=2|3,window=9,{named}") == [f"{named}:k=2,window=9", f"{named}:k=3,window=9", named]
    many = "|".join(map(str, range(1, 200)))
    with pytest.raises(UserError, match="more than 10,000 settings"):
        expand(f"qba:k={many},window={many}")
    with pytest.raises(UserError, match="k has an empty alternative"):
        expand("qba:k=1||2")
    with pytest.raises(UserError, match="unknown parameter"):
        expand("qba:q=1|2")


@pytest.mark.parametrize("better", list(itertools.product((-1, 1), repeat=2)))
def test_the_front_is_whom_nobody_beats(better: tuple[int, int]) -> None:
    """Against the definition, on points with many ties."""
    rng = random.Random(1)
    points = [_setting(float(rng.randrange(6)), float(rng.randrange(6))) for _ in range(40)]

    def beaten(by: Any, a: Any) -> bool:
        gains = [w * ((y or 0) - (x or 0)) for w, x, y in zip(better, a.values, by.values, strict=True)]
        return min(gains) >= 0 and max(gains) > 0

    edge = front(points, better)
    assert edge == [p for p in points if not any(beaten(q, p) for q in points)]
    assert edge


def test_the_start_is_where_the_product_of_ratios_is_smallest() -> None:
    objectives = parse("short.e2e.p99,long.e2e.p99")
    a, b, c = _setting(1.0, 10.0), _setting(1.5, 4.0), _setting(4.0, 3.9)
    assert study._start([a, b, c], objectives) is b
    assert study._start([], objectives) is None
    assert study._start([_setting(1.0, 2.0, label="qba:k=9"), plain := _setting(1.0, 2.0)], objectives) is plain
    larger = parse("e2e.p99,output_tokens_per_s")
    assert study._start([few := _setting(1.0, 50.0), _setting(1.0, 49.0)], larger) is few


def test_a_search_finds_the_tradeoff_and_says_what_to_paste() -> None:
    """At QBA's load psf is best for the short, and fcfs for the long."""
    job = Job("qba:requests=600,rate_rps=34", "fcfs", "qba")
    tuned = tune(job, "fcfs,psf,sarathi", parse("short.wait.p99,long.wait.p99"), workers=1)
    by_label = {setting.label: setting for setting in tuned.settings}
    assert set(by_label) == {"fcfs", "psf", "sarathi"}
    assert by_label["psf"].values[0] == min(setting.values[0] or 0.0 for setting in tuned.settings)
    assert by_label["psf"].on_front
    assert "engine rules alone" in by_label["sarathi"].refused
    assert tuned.settings[0].on_front
    assert tuned.best is not None
    assert not tuned.best.refused
    found = json.loads(tuned.additional_config or "")
    assert found == {"tailrace": {"policy": tuned.best.policy, "params": tuned.best.params}}


def test_a_setting_that_left_requests_behind_is_no_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    results = [
        _result("fcfs", 5.0, unfinished=0),
        _result("psf", 1.0, unfinished=3),
        _result("aa", None, unfinished=0),
    ]
    monkeypatch.setattr(runs, "compare", lambda *_: ({"results": results}, []))
    tuned = tune(Job("w", "fcfs"), "fcfs,psf,aa", parse("e2e.p99"))
    assert [(s.label, s.on_front) for s in tuned.settings] == [("fcfs", True), ("psf", False), ("aa", False)]
    assert tuned.best is not None
    assert tuned.best.label == "fcfs"


def _result(policy: str, p99: float | None, unfinished: int) -> dict[str, Any]:
    return {
        "policy": policy,
        "label": policy,
        "counts": {"unfinished": unfinished},
        "load_state": "STABLE",
        "metrics": {"e2e_s": {"p99": p99, "ci": {"p99": [1.0, 2.0]}}},
    }
