"""What is run for which figure, and which printed number belongs to it."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from tailrace.errors import UserError
from tailrace.studies import runs
from tailrace.studies.reproduce.qba import choices, plan, published
from tailrace.studies.reproduce.qba.plan import Scope, cells
from tailrace.studies.reproduce.qba.profiles import PROFILES, choose

FULL = Scope(plan.EXPERIMENTS, 100, False, "trace.csv", 0.565)


def test_the_papers_grids_are_complete() -> None:
    found = cells(PROFILES["paper"], FULL)
    count = Counter(cell.experiment for cell in found)
    assert count["fig2"] == 15 * 4
    assert count["fig3"] == 7 + 2 * 11 + 4
    assert count["fig4"] == count["fig5"] == 9 * 4
    assert count["table2"] == 2 * 4
    assert {cell.at["k"] for cell in found if "k" in cell.at} == {2, 4, 6, 8, 10, 12, 14}
    assert {cell.at["aging_quantile"] for cell in found if "aging_quantile" in cell.at} == {
        *(0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
    }
    for cell in found:
        runs.parse_policy(cell.point.policy)
        runs.parse_engine(cell.point.engine)


def test_settings_that_are_the_same_are_one_point() -> None:
    found = cells(PROFILES["paper"], FULL)
    base = {c.point for c in found if c.policy == "qba" and c.at.get("rate_rps", 32) == 32}
    shared = PROFILES["paper"].point("qba")
    same = [c for c in found if c.point == shared]
    assert {c.experiment for c in same} == {"fig2", "fig3", "fig4", "fig5", "choices"}
    assert shared in base
    assert {"aging_quantile": 0.8} in [dict(c.at) for c in same]
    assert PROFILES["paper"].point("qba", k=5) == shared


def test_every_printed_number_has_its_row() -> None:
    printed = {
        (c.experiment, c.policy, m, tuple(c.at.items())): number
        for c in cells(PROFILES["paper"], FULL)
        for m in c.metrics
        if (number := published.value(c.experiment, c.policy, m, c.at)) is not None
    }
    at_32 = {k: v for k, v in printed.items() if k[0] in ("fig4", "fig5")}
    # The six values without errors stand in both figures.
    assert len(at_32) == 15 + 6
    assert sum(map(len, published.AT_32_RPS.values())) == 15
    assert sorted(set(at_32.values())) == sorted({v for row in published.AT_32_RPS.values() for v in row.values()})
    table = {k: v for k, v in printed.items() if k[0] == "table2"}
    assert len(table) == 2 * 4 * 8  # beside both protocols
    assert printed["table2", "aa", "long_wait_p99_s", (("protocol", "paper"),)] == 0.491


def test_quick_leaves_out_points_and_choices_not_figures() -> None:
    quick = cells(PROFILES["paper"], dataclasses.replace(FULL, quick=True))
    full = {(c.experiment, c.policy, tuple(c.at.items())) for c in cells(PROFILES["paper"], FULL)}
    assert {(c.experiment, c.policy, tuple(c.at.items())) for c in quick} < full
    assert {c.experiment for c in quick} == {"fig2", "fig3", "fig4", "fig5", "table2"}
    assert len(quick) < len(full) / 2
    (window,) = {c.point.traffic for c in quick if c.at.get("protocol") == "paper"}
    assert getattr(window, "count", None) == 100  # the same windows, of which every fourth is run
    assert dataclasses.replace(FULL, quick=True).windows == 25


def test_without_the_trace_there_is_no_table() -> None:
    assert not [c for c in cells(PROFILES["paper"], dataclasses.replace(FULL, azure="")) if c.experiment == "table2"]


def test_profiles_differ_as_they_say() -> None:
    paper, enforced, history = (PROFILES[name].point("qba") for name in ("paper", "enforced", "all_history"))
    assert paper.engine == "qba"
    rules = runs.parse_engine(enforced.engine).rules
    assert (rules.kv_limit, rules.kv_short, rules.projection) == ("enforced", "stall", "live_prompt")
    assert "requests=2500" in enforced.traffic.key()
    assert history.policy == "qba:reference=history_all,window=0"
    assert PROFILES["all_history"].point("psf") == PROFILES["paper"].point("psf")
    shaken = PROFILES["enforced"].with_options(0.1, 1e-5).point("qba")
    assert runs.parse_engine(shaken.engine).step_jitter == 0.1
    assert shaken.latency == "piecewise:per_seq_s=1e-05"


def test_one_value_of_each_choice_is_the_profiles_own() -> None:
    found = choices.choices(PROFILES["paper"])
    default = choices.fit_points(PROFILES["paper"])
    by_choice: dict[str, list[bool]] = {}
    for choice in found:
        by_choice.setdefault(choice.choice, []).append(choice.default)
        assert (choice.points == default) == choice.default
    assert all(sum(flags) == 1 and len(flags) > 1 for flags in by_choice.values())


def test_a_profile_that_is_none_is_refused() -> None:
    with pytest.raises(UserError, match=r"unknown .* 'papr' .did you mean"):
        choose("papr")
    assert choose("all") == list(PROFILES.values())
