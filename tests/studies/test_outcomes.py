"""The comparison with vLLM goes on where it stopped, and its table. Without vLLM: outcomes are made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tailrace.errors import UserError
from tailrace.registry import POLICIES
from tailrace.studies import outcomes, parity
from tailrace.studies.outcomes import Task
from tailrace.studies.parity import Outcome
from tailrace.vllm_plugin import TESTED

DIFFERS = {"step": 3, "field": "tokens", "ours": "{0: 1}", "vllm": "{}"}


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder of outcomes (compiled code stays where it is)."""
    monkeypatch.setattr(outcomes, "folder", lambda: tmp_path / "parity")
    return tmp_path / "parity"


@pytest.fixture
def ran(cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Policies compared, with made-up outcomes; sjf differs and srpt is interrupted."""
    policies: list[str] = []

    def compare(text: str, policy: str, case: str, steps: int) -> Outcome:
        policies.append(policy)
        if policy == "srpt":
            raise KeyboardInterrupt
        wrong = policy == "sjf"
        return Outcome(TESTED[0], policy, case, steps, 7, int(wrong), DIFFERS if wrong else None)

    monkeypatch.setattr(parity, "compare", compare)
    return policies


def _tasks(*policies: str) -> list[Task]:
    return [Task(TESTED[0], policy, "base", 20) for policy in policies]


def _quiet(outcome: Outcome, kept: bool) -> None:
    pass


def test_it_goes_on_where_it_was_interrupted(cache: Path, ran: list[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        outcomes.run(_tasks("sjf", "qba", "srpt", "psf"), True, 1, _quiet)
    assert len(list(cache.iterdir())) == 2
    notes: list[tuple[str, bool]] = []
    found = outcomes.run(_tasks("psf", "qba", "sjf"), True, 1, lambda o, kept: notes.append((o.policy, kept)))
    assert ran == ["sjf", "qba", "srpt", "psf"]
    assert sorted(notes) == [("psf", False), ("qba", True), ("sjf", True)]
    assert [o.policy for o in found] == ["psf", "qba", "sjf"]
    assert [o.first_mismatch for o in found] == [None, None, DIFFERS]


def test_without_resume_everything_runs_again(cache: Path, ran: list[str]) -> None:
    for _ in range(2):
        outcomes.run(_tasks("qba", "psf"), False, 1, _quiet)
    assert ran == ["qba", "psf"] * 2
    assert len(list(cache.iterdir())) == 2


def test_a_damaged_outcome_is_made_again(cache: Path, ran: list[str]) -> None:
    outcomes.run(_tasks("qba"), True, 1, _quiet)
    (kept,) = cache.iterdir()
    whole = kept.read_text()
    for damaged in ("", whole[:40], "[]", json.dumps({"vllm": "0"})):
        kept.write_text(damaged)
        outcomes.run(_tasks("qba"), True, 1, _quiet)
        assert kept.read_text() == whole
    assert ran == ["qba"] * 5


@pytest.mark.parametrize(
    "change",
    [
        {"vllm": "0.1.0"},
        {"policy": "psf"},
        {"case": "async"},
        {"steps": 21},
        {"workload": "poisson:requests=9"},
        {"code": b"edited"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_input_has_its_own_key(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    base: dict[str, Any] = {"vllm": TESTED[0], "policy": "qba", "case": "base", "steps": 20}
    key = outcomes.key_of(Task(**base))
    assert outcomes.key_of(Task(**base)) == key
    code = change.pop("code", None)
    if code is not None:
        monkeypatch.setattr(outcomes, "_code", lambda: code)
    assert outcomes.key_of(Task(**{**base, **change})) != key


def test_a_trace_counts_by_its_content(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    keys = set()
    for prompt in (5, 6):
        trace.write_text(f"arrival_s,prompt_tokens,output_tokens\n0,{prompt},3\n1,4,4\n")
        outcomes._digest.cache_clear()
        keys.add(outcomes.key_of(Task(TESTED[0], "qba", "base", 20, str(trace))))
    assert len(keys) == 2


def test_a_full_disk_loses_the_outcome_and_nothing_else(cache: Path, ran: list[str]) -> None:
    cache.parent.joinpath("parity").write_text("in the way")
    (found,) = outcomes.run(_tasks("qba"), True, 1, _quiet)
    assert found.policy == "qba"


def test_the_plan_has_every_case_for_some_policies_and_the_base_case_for_all() -> None:
    newest = parity.plan(TESTED[0])
    assert len(set(newest)) == len(newest)
    assert {case for policy, case in newest if policy == "qba"} == set(parity.CASES)
    assert {case for policy, case in newest if policy == "psf"} < set(parity.CASES)
    for policy in parity.LATER:
        left_out = {"prefix cache"} if policy in ("slide", "fairbatching") else set()  # they limit seconds
        assert {case for name, case in newest if name == policy} == {*parity.MAIN_CASES, "little memory"} - left_out
    assert parity.plan(TESTED[1]) == [(policy, "base") for policy, case in newest if case == "base"]


def test_every_policy_with_an_order_of_its_own_is_compared() -> None:
    """Only those that are nothing but an engine's rules are not: vLLM has its own."""
    compared = {parity.registered(policy)[0] for policy, _ in parity.plan(TESTED[0])}
    ours = [name for name in POLICIES.names() if POLICIES.get(name).__module__.startswith("tailrace.policies")]
    assert {name for name in ours if not POLICIES.get(name).rules_alone} == compared


def test_the_table_shows_what_is_kept_and_what_is_missing(cache: Path, ran: list[str]) -> None:
    tasks = _tasks("qba", "sjf", "psf")
    outcomes.run(tasks[:2], True, 1, _quiet)
    head, *rows = outcomes.markdown(tasks).split("|--:|\n")
    assert "2 of 3 comparisons: 40 steps, 14 preemptions; 1 steps differ." in head
    assert "`make parity`" in head
    assert rows == [
        f"| {TESTED[0]} | qba | base | 20 | 7 | 0 |\n"
        f"| {TESTED[0]} | sjf | base | 20 | 7 | 1 |\n"
        f"| {TESTED[0]} | psf | base | not run |  |  |\n"
    ]


def test_planned_tasks_cover_every_tested_version() -> None:
    assert {task.vllm for task in outcomes.planned(TESTED, 20)} == set(TESTED)


def test_mistakes_surface_before_anything_runs(cache: Path) -> None:
    with pytest.raises(UserError, match="did you mean 'qba'"):
        outcomes.run(_tasks("qbaa"), True, 1, _quiet)
