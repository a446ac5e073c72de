"""Hyperparameters, prediction errors, choices."""

from __future__ import annotations

from typing import Any

from tailrace.report.reproduction.qba.sensitivity import errors, hyperparameters, open_choices, side_by_side
from tailrace.report.reproduction.study import Study

from ..documents import document


def changed(made: dict[str, Any], **wanted: Any) -> dict[str, Any]:
    """The document with ``measured`` set, and no interval, in the rows that match all else."""
    measured = wanted.pop("measured")
    rows = [
        {**r, "measured": measured, "ci": None} if all(r[k] == v for k, v in wanted.items()) else r
        for r in made["rows"]
    ]
    return {**made, "rows": rows}


def test_the_best_k_follows_the_numbers() -> None:
    made = document()
    text = hyperparameters(Study(made), "")
    assert "QBA's P99 wait over k is lowest at k = 4 (6.00 s; not told apart from that at k = 2, 5 and 6)" in text
    assert "highest at k = 14 (11.0 s)." in text
    made = changed(made, experiment="fig3", metric="wait_p99_s", policy="qba", at={"k": 12.0}, measured=2.0)
    assert "QBA's P99 wait over k is lowest at k = 12 (2.00 s) and" in hyperparameters(Study(made), "")


def test_gamma_is_flat_and_then_jumps() -> None:
    text = hyperparameters(Study(document(("flat", "x"))), "")
    assert "Below γ = 1 QBA's P99 wait varies by a factor of 1.12; at γ = 1 it is 1.55 times that at γ = 0.95." in text
    assert "With the defaults the P99 waits are FCFS 4.20 s < AA 5.00 s < QBA 6.10 s < PSF 9.80 s." in text


def test_error_sentences_follow_the_numbers() -> None:
    text = errors(Study(document()), {})
    assert "The true-short P99 wait is lowest under PSF at ε_SL = 0; under FCFS at ε_SL = 0.05 to 0.4." in text
    assert "At ε_LS = 0.4 QBA's true-long P99 wait is 70 % below PSF's." in text
    assert "| PSF    | 0.800 → 1.12 (+40 %) |" in text
    last = {"eps_ls": 0.4}
    made = changed(document(), experiment="fig5", policy="qba", metric="long_wait_p99_s", at=last, measured=30.8)
    assert "At ε_LS = 0.4 QBA's true-long P99 wait is 100 % above PSF's." in errors(Study(made), {})


def test_one_direction_of_errors_alone() -> None:
    made = document()
    made["rows"] = [r for r in made["rows"] if r["experiment"] != "fig4"]
    text = errors(Study(made), {"fig5": "PICTURE"})
    assert "### Long-to-short errors\n\nPICTURE" in text
    assert "Short-to-long" not in text


def test_the_choice_that_moves_most_and_those_that_do_better_are_named() -> None:
    made = document()
    text = open_choices(Study(made), "")
    assert "most is KV projection: from 0.0500 (live, growth and prompt) to 0.300 (prompt alone)." in text
    assert "No alternative is nearer" in text
    at = {"choice": "history", "value": "unbounded", "default": False}
    text = open_choices(Study(changed(made, metric="mean_abs_log_ratio", at=at, measured=0.01)), "")
    assert "Nearer to the paper than the default: history: unbounded (0.0100 against 0.0500)." in text


def test_a_number_that_is_printed_twice_counts_once() -> None:
    rows = [line for line in side_by_side(Study(document()), "").splitlines() if line.startswith(("| PSF", "| QBA"))]
    assert len(rows) == 15
    assert sum("ε = 0 " in row for row in rows) == 6


def test_nothing_without_rows() -> None:
    study = Study(document(rows=[]))
    assert hyperparameters(study, "") == errors(study, {}) == open_choices(study, "") == side_by_side(study, "") == ""
