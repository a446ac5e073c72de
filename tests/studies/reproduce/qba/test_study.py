"""The study itself, small: its document, and the printed numbers."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tailrace.metrics.seeds import interval
from tailrace.studies.reproduce import points
from tailrace.studies.reproduce.measure import MEASURES
from tailrace.studies.reproduce.points import sample
from tailrace.studies.reproduce.qba import plan, rows, study, windows
from tailrace.studies.reproduce.qba.choices import fit_points
from tailrace.studies.reproduce.qba.plan import Scope
from tailrace.studies.reproduce.qba.profiles import PROFILES
from tailrace.studies.reproduce.qba.study import Study

SMALL = dataclasses.replace(PROFILES["paper"], requests=150)


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder of numbers."""
    monkeypatch.setattr(points, "folder", lambda: tmp_path)
    return tmp_path


@pytest.fixture
def quick_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few loads, so that the plain-Python run of this test ends."""
    monkeypatch.setattr(Scope, "loads", property(lambda self: (26, 32)))
    for module in ("calibration", "plan"):
        monkeypatch.setattr(f"tailrace.studies.reproduce.qba.{module}.PHI_RPS", (25, 33))


def _run(only: tuple[str, ...], azure: str = "", factor: float = 0.0) -> tuple[dict[str, Any], list[int]]:
    wanted = Study([SMALL], Scope(only, 3, True, azure, factor), workers=1)
    told: list[int] = []
    document = study.run(wanted, told.append)
    assert sum(told) == study.count(wanted)
    return document, told


@pytest.mark.usefixtures("quick_grid")
def test_the_document_of_the_load_sweep() -> None:
    document, _ = _run(("fig2",))
    assert json.loads(json.dumps(document)) == document
    assert document["settings"] == {"seeds": 3, "quick": True, "profiles": ["paper"], "only": ["fig2"]}
    found = {(r["policy"], r["metric"], r["at"]["rate_rps"]): r for r in document["rows"] if r["experiment"] == "fig2"}
    assert len(found) == 2 * 4 * (3 + 2)
    waits = sample([SMALL.point("qba", 32)], 3, workers=1)[SMALL.point("qba", 32)][:, MEASURES.index("wait_mean_s")]
    row = found["qba", "wait_mean_s", 32]
    assert row["measured"] == pytest.approx(float(waits.mean()))
    assert row["ci"] == interval(list(waits))
    assert (row["seeds"], row["paper"]) == (3, None)
    shown = document["calibration"]["paper"]
    assert shown["budget_servers"] == 16
    assert shown["servers"] == min(shown["n_safe"], 16)
    assert shown["mean_service_s"] > 0
    assert [p["rate_rps"] for p in shown["phi"]["qba"]] == [25.0, 33.0]
    assert all(0 <= p["phi"] <= 1 for curve in shown["phi"].values() for p in curve)
    formula = found["fcfs", "formula_wait_mean_s", 26]["measured"]
    response = found["fcfs", "formula_e2e_mean_s", 26]["measured"]
    assert response == pytest.approx(formula + shown["mean_service_s"])
    assert {r["at"]["n"] for r in document["rows"] if r["experiment"] == "servers"} == {"budget", "matched"}
    assert document["not_run"].keys() == {"fig3", "fig4", "fig5", "table2", "choices"}
    again, told = _run(("fig2",))
    assert again == document
    assert told == [sum(told)]  # all of it was kept


def test_the_document_of_the_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "WINDOW_REQUESTS", 60)
    trace = tmp_path / "trace.csv"
    rng = np.random.Generator(np.random.PCG64(0))
    times = np.cumsum(rng.exponential(0.2, 2000))
    lengths = rng.integers(5, 60, (2000, 2))
    lines = [f"{t:.6f},{p},{d}" for t, (p, d) in zip(times, lengths, strict=True)]
    trace.write_text("\n".join(["arrival_s,prompt_tokens,output_tokens", *lines]) + "\n")
    document, _ = _run(("table2",), azure=str(trace), factor=1.5)
    found = {(r["policy"], r["metric"], r["at"]["protocol"]): r for r in document["rows"]}
    cells = plan.cells(SMALL, Scope(("table2",), 3, True, str(trace), 1.5))
    for protocol, point in [(c.at["protocol"], c.point) for c in cells if c.policy == "aa"]:
        values = sample([point], 25, workers=1)[point]
        waits, counts = values[:, MEASURES.index("wait_mean_s")], values[:, MEASURES.index("started")]
        pooled, median = found["aa", "wait_mean_s", protocol], found["aa", "long_wait_p99_s", protocol]
        assert pooled["measured"] == pytest.approx(float((waits * counts).sum() / counts.sum()))
        assert median["measured"] == pytest.approx(float(np.median(values[:, MEASURES.index("long_wait_p99_s")])))
        assert pooled["seeds"] == median["seeds"] == 25
        assert (median["ci"] is None) == (protocol == "demand_matched")
    assert found["fcfs", "arrival_scv", "paper"]["measured"] == pytest.approx(1.0, abs=0.4)
    assert found["", "length_factor", "demand_matched"]["measured"] == 1.5


def test_the_demand_factor_brings_the_papers_tokens(azure_trace: Path) -> None:
    # Prototypes matched the same demand with 0.565.
    assert windows.demand_factor(str(azure_trace)) == pytest.approx(0.565, abs=0.003)


def test_what_is_not_run_says_why() -> None:
    scope = Scope(plan.EXPERIMENTS, 3, True)
    assert study._not_run(scope).keys() == {"table2", "choices"}
    assert "--azure" in study._not_run(scope)["table2"]
    assert study._not_run(Scope(plan.EXPERIMENTS, 3, False, "trace.csv")) == {}


@pytest.mark.slow
def test_the_printed_numbers_at_32_requests_a_second() -> None:
    """Twenty seeds, mean of each run's value: mean absolute log ratio at most 0.08."""
    chosen = fit_points(PROFILES["paper"])
    found = rows.fitted(chosen, sample([point for *_, point in chosen], 20, cache=False))
    assert found.values == 15
    assert found.plain.mean_abs_log_ratio <= 0.08
    assert found.adjusted is not None
    assert found.adjusted.mean_abs_log_ratio <= 0.07
