"""The production trace."""

from __future__ import annotations

from tailrace.report.reproduction.qba.trace import trace
from tailrace.report.reproduction.study import Study

from ..documents import document


def test_both_protocols_stand_beside_the_paper() -> None:
    text = trace(Study(document()))
    assert "**The paper's protocol** (100 windows, lengths × 0.44," in text
    assert "**Demand matched** (100 windows, lengths × 0.565," in text
    assert "between arrivals 1.06, in the paper 2.9)" in text
    assert "mean wait PSF 0.0738 s < QBA 0.0876 s < AA 0.107 s ≈ FCFS 0.107 s" in text
    assert "QBA keeps 59 % of PSF's gain. The order of the means is also the paper's." in text
    row = next(line for line in text.splitlines() if line.startswith("| mean wait (s)") and "| QBA" in line)
    assert [c.strip() for c in row.split("|")[3:-1]] == [
        "0.146",
        "0.0876 [0.0832, 0.0920]",
        "0.600",
        "0.161 [0.153, 0.169]",
        "1.10",
    ]


def test_an_order_that_is_not_the_papers_says_so() -> None:
    made = document()
    rows = [
        {**r, "measured": 0.01}
        if r["policy"] == "qba" and r["metric"] == "wait_mean_s" and "protocol" in r["at"]
        else r
        for r in made["rows"]
    ]
    text = trace(Study({**made, "rows": rows}))
    assert "The order of the means is not the paper's, which is PSF < QBA < AA < FCFS." in text


def test_one_protocol_alone_and_none() -> None:
    made = document()
    made["rows"] = [r for r in made["rows"] if r["at"].get("protocol") != "paper"]
    text = trace(Study(made))
    assert "The paper's protocol" not in text
    assert "**Demand matched**" in text
    assert trace(Study(document(quick=True))) == ""
