"""Sentences on load, and on the formula."""

from __future__ import annotations

from typing import Any

from tailrace.report.reproduction.qba.performance import kept, model, performance
from tailrace.report.reproduction.study import Study, Value

from ..documents import document


def swapped(made: dict[str, Any], a: str, b: str) -> dict[str, Any]:
    """The document with two policies' numbers exchanged."""
    other = {a: b, b: a}
    rows = [{**r, "policy": other.get(r["policy"], r["policy"])} for r in made["rows"]]
    return {**made, "rows": rows}


def test_sentences_flip_with_the_numbers() -> None:
    made = document()
    text = performance(Study(made), "")
    assert "The mean wait is lowest under PSF at all 15 loads." in text
    assert "QBA's mean wait is below FCFS's at 26 to 40 req/s." in text
    assert "AA's mean wait is nowhere told apart from FCFS's." in text
    assert "QBA keeps 50 % of PSF's gain" in text
    text = performance(Study(swapped(made, "psf", "qba")), "")
    assert "The mean wait is lowest under QBA at all 15 loads." in text
    assert "QBA keeps 200 % of PSF's gain" in text
    text = performance(Study(swapped(made, "fcfs", "qba")), "")
    assert "QBA's mean wait is above FCFS's at 26 to 40 req/s." in text
    assert "QBA keeps none of PSF's gain" in text


def test_the_gain_is_told_only_where_there_is_one() -> None:
    def told(fcfs: float, psf: float, qba: float) -> str:
        return kept({"FCFS": Value(fcfs), "PSF": Value(psf), "QBA": Value(qba)})

    assert told(1.0, 1.2, 1.1).endswith("+20 % under PSF and by +10 % under QBA.")
    assert told(0.179, 0.123, 0.146) == (
        "Against FCFS the mean wait changes by −31 % under PSF and by −18 % under QBA: QBA keeps 59 % of PSF's gain."
    )
    assert kept({"FCFS": Value(1.0), "PSF": Value(0.5)}) == told(0.0, 0.0, 0.0) == ""
    close = {name: Value(1.0 + i / 100, (0.9, 1.1)) for i, name in enumerate(("FCFS", "PSF", "QBA"))}
    assert kept(close) == ""  # no gain that could be kept


def test_the_load_nearest_the_reference_is_in_the_table() -> None:
    assert "At 32 req/s the mean waits are PSF 0.800 s < QBA 1.40 s < AA 1.98 s ≈ FCFS" in performance(
        Study(document()), ""
    )
    assert "At 33 req/s the mean waits are" in performance(Study(document(quick=True)), "")


def test_the_model_says_where_it_ends_and_what_bounds_it() -> None:
    made = document()
    text = model(Study(made), "")
    assert "n = 16 servers, set by the token budget, with a mean service time of 0.464 s" in text
    assert "reaches 1 at 34.5 req/s" in text
    assert "PSF < QBA < FCFS ≈ AA at all 9 loads where it has a value." in text
    assert "| β      | an output token (1)" in text
    assert "600 µs" in text
    made["calibration"]["paper"] |= {"n_safe": 12, "servers": 12}
    assert "n = 12 servers, set by KV memory" in model(Study(made), "")


def test_without_calibration_or_formula_there_is_no_model() -> None:
    made = document(calibration={})
    assert "Calibrated" not in model(Study(made), "")
    assert "The formula's mean wait has the order" in model(Study(made), "")
    made["rows"] = [r for r in made["rows"] if not r["metric"].startswith("formula")]
    assert model(Study(made), "") == ""
    assert "formula" not in performance(Study(made), "")


def test_a_formula_without_any_value_is_not_compared() -> None:
    made = document(calibration={})
    made["rows"] = [
        {**r, "measured": None, "ci": None} if r["metric"].startswith("formula") else r for r in made["rows"]
    ]
    text = model(Study(made), "")
    assert "The formula's mean wait" not in text
    assert "The simulator's mean wait has the order" in text


def test_other_readings_of_n_have_a_table_of_their_own() -> None:
    made = document()
    base = {"profile": "paper", "experiment": "servers", "metric": "formula_wait_mean_s", "paper": None, "ci": None}
    for n, servers, wait in (("budget", 16, 0.0123), ("matched", 10, None)):
        at = {"rate_rps": 32, "servers": servers, "n": n}
        made["rows"] += [{**base, "policy": p, "at": at, "measured": wait, "seeds": 0} for p in ("fcfs", "psf")]
    text = model(Study(made), "")
    (row,) = [line for line in text.splitlines() if line.startswith("| 16: B/q")]
    assert row.count("0.0123") == 2
    assert "| 10:" not in text  # a reading without a value says nothing
