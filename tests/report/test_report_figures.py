from __future__ import annotations

import dataclasses
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from tailrace.report import facts
from tailrace.report.figures import Figure, figures, percentile_curve
from tailrace.report.marks import spread
from tailrace.report.style import KNOWN, SPARE, style_of, styles
from tailrace.report.timeline import highest_of
from tailrace.sim.run import Result

from .report_documents import document, result, run


@pytest.fixture(scope="module")
def drawn() -> list[Figure]:
    runs = [("fcfs", run()), ("qba", run(scale=3.0)), ("qba k=10", run(scale=2.0, seed=5))]
    return figures(document(result("fcfs", 1.0), result("qba", 2.0), result("qba k=10", 1.5)), runs)


def test_known_policies_look_different() -> None:
    looks = [(s.color, s.marker) for s in [*KNOWN.values(), *SPARE]]
    assert len(set(looks)) == len(looks)
    assert len({s.color for s in KNOWN.values()}) == len(KNOWN)


def test_a_policy_looks_the_same_in_every_company() -> None:
    alone = styles([result("mine:Own", 1.0)])["mine:Own"]
    among = styles([result("qba", 1.0), result("mine:Own", 1.0), result("fcfs", 1.0)])
    assert among["mine:Own"] == alone == style_of("mine:Own", "oracle")
    assert among["fcfs"] == KNOWN["fcfs"]


def test_many_foreign_policies_share_nothing() -> None:
    looks = styles([result(f"other{i}", 1.0) for i in range(len(SPARE))])
    assert len({(s.color, s.marker) for s in looks.values()}) == len(SPARE)


def test_variants_of_a_policy_differ() -> None:
    looks = styles([result("qba", 1.0), result("qba k=3", 1.0), result("qba k=9", 1.0)])
    assert looks["qba"].color == KNOWN["qba"].color
    assert len({s.color for s in looks.values()}) == 3
    assert looks["qba k=3"].hollow


def test_oracles_are_dashed_and_nobody_else() -> None:
    assert style_of("srpt", "oracle").dashed
    assert style_of("trail", "oracle").dashed
    assert style_of("gamma_boost", "oracle", {"signal": "size"}).dashed
    assert not style_of("gamma_boost", "oracle", {"signal": "attained"}).dashed
    assert not style_of("srpt", "noise:cv=0.5").dashed
    assert not style_of("fcfs", "oracle").dashed


def test_all_figures_are_drawn_with_unique_ids(drawn: list[Figure]) -> None:
    assert [f.name for f in drawn] == [
        *(f"fig-{name}{kind}" for name in ("e2e", "ttft", "tpot", "wait") for kind in ("", "-cdf")),
        *("fig-classes", "fig-timeline"),
    ]
    ids = [found for f in drawn for found in re.findall(r'\bid="([^"]*)"', f.svg)]
    assert len(set(ids)) == len(ids)
    for f in drawn:
        used = set(re.findall(r'(?:href="|url\()#([^")]*)', f.svg))
        assert used <= set(re.findall(r'\bid="([^"]*)"', f.svg))


def test_figures_take_the_colour_of_their_surroundings(drawn: list[Figure]) -> None:
    for f in drawn:
        ET.fromstring(f.svg)
        assert "currentColor" in f.svg
        assert not re.search(r"(fill|stroke): ?(#000000|#ffffff|black|white)", f.svg)
        assert "font-family:" not in f.svg
        assert "<metadata>" not in f.svg
        assert set(re.findall(r"https?://[^\"'< )]*", f.svg)) <= {
            "http://www.w3.org/2000/svg",
            "http://www.w3.org/1999/xlink",
        }


def test_figures_are_the_same_every_time() -> None:
    doc, runs = document(result("fcfs", 1.0)), [("fcfs", run())]
    assert figures(doc, runs) == figures(doc, runs)


def test_hostile_labels_stay_text() -> None:
    label = 'x <script>$\\frac{$ "&\x07'
    svgs = figures(document(result(label, 1.0)), [(label, run())])
    for f in svgs:
        ET.fromstring(f.svg)
        assert "<script" not in f.svg


def test_figures_without_runs_or_numbers() -> None:
    assert [f.name for f in figures(document(result("fcfs", 1.0)), [])] == ["fig-classes"]
    assert figures(document(result("fcfs", None)), []) == []
    nothing = run(5)
    for values in (nothing.requests.started_s, nothing.requests.first_token_s, nothing.requests.finish_s):
        values[:] = np.nan
    nothing.timeline.update({name: values[:0] for name, values in nothing.timeline.items()})
    assert figures(document(result("fcfs", None)), [("fcfs", nothing)]) == []


def test_no_waits_at_all_can_be_drawn() -> None:
    quiet = run(50, scale=0.0)
    assert len(figures(document(result("fcfs", 0.0)), [("fcfs", quiet)])) == 10


def test_curve_ends_where_the_sample_does() -> None:
    percents, values = percentile_curve(np.arange(200.0))
    assert percents[0] == 50
    assert percents[-1] == pytest.approx(99.5)
    assert values[-1] == pytest.approx(np.quantile(np.arange(200.0), 0.995))
    assert percentile_curve(np.arange(5000.0))[0][-1] == 99.9
    assert len(percentile_curve(np.array([1.0, np.nan]))[0]) == 1


def test_labels_are_spread_and_stay_inside() -> None:
    placed = spread([100.0, 100.0, 101.0, 10.0], 15, 0, 105)
    assert sorted(placed) == pytest.approx([10, 75, 90, 105])


def test_thinning_keeps_peaks() -> None:
    clock = np.linspace(0, 10, 1000)
    line = np.zeros(1000)
    line[617] = 9.0
    assert highest_of(clock, line, np.linspace(0, 10, 11)).tolist() == [0, 0, 0, 0, 0, 0, 9, 0, 0, 0]


def test_readings_state_facts(drawn: list[Figure]) -> None:
    reading = {f.name: f.reading for f in drawn}
    assert reading["fig-e2e"].startswith("P99 end-to-end latency is lowest under fcfs (")
    assert "highest under qba (10.0 s)" in reading["fig-classes"]
    assert all(text.endswith(".") for text in reading.values())
    several = figures(document(result("fcfs", 1.0), seeds=2), [("fcfs", run())])
    assert several[0].reading.startswith("With seed 0, P99")


def kept(values: list[float], **paths: list[float]) -> Result:
    every = {"gamma_per_s": values, **paths}
    given = {name: (np.linspace(10, 100, len(v)), np.array(v)) for name, v in every.items()}
    return dataclasses.replace(run(), paths=given)


def test_what_policies_kept_over_time_is_drawn() -> None:
    doc = document(result("fcfs", 1.0), result("uniboost", 1.0), result("uniboost k", 1.0))
    runs = [("fcfs", run()), ("uniboost", kept([0.005, 0.002, 0.004])), ("uniboost k", kept([0.003], other=[7.0]))]
    gamma, other = figures(doc, runs)[-2:]
    assert (gamma.name, gamma.title) == ("fig-path-gamma_per_s", "gamma (1/s) over time")
    assert gamma.reading == (
        "Gamma (1/s) ends at 0.004 under uniboost (from 0.002 to 0.005), "
        "at 0.003 under uniboost k (from 0.003 to 0.003)."
    )
    assert "fcfs" not in gamma.svg
    assert other.name == "fig-path-other"
    assert other.reading == "Other ends at 7 under uniboost k (from 7 to 7)."
    ET.fromstring(gamma.svg)


def test_a_path_of_decades_has_a_log_axis_and_one_without_numbers_none() -> None:
    doc = document(result("uniboost", 1.0))
    scales = [
        figures(doc, [("uniboost", kept(values))])[-1].canvas.figure.axes[0].get_yscale()
        for values in ([0.001, 0.1], [0.001, 0.01], [0.0, 1.0])
    ]
    assert scales == ["log", "linear", "linear"]
    assert figures(doc, [("uniboost", kept([np.nan]))])[-1].name == "fig-timeline"


def test_extremes_names_everybody_who_ties() -> None:
    assert facts.extremes({"a": 1.0, "b": 1.0001, "c": 2.0, "d": None}, "P99") == (
        "P99 is lowest under a and b (1.00 s) and highest under c (2.00 s)"
    )
    assert facts.extremes({"a": 1.0, "b": 1.0}, "P99") == "P99 is 1.00 s under all policies"
    assert facts.extremes({"a": None}, "P99") == "P99 is not known for any policy"


def test_what_a_policy_counted() -> None:
    tallies = {"gamma_fits": 12, "gamma_per_s": 0.00512, "early_evictions": 0, "key_revisions": 90}
    assert facts.tallied(result("uniboost", 1.0, tallies=tallies)) == [
        "fitted γ to the tail of response times 12 times, to 0.00512 per second at last"
    ]
    means = {"starvation_promotions": 4.5, "by_seed": {"starvation_promotions": [4, 5]}}
    assert facts.tallied(result("a", 1.0, tallies=means)) == [
        "put requests first that had starved, 4.50 times a seed on average"
    ]
    early = {"early_evictions": 1200}
    (text,) = facts.tallied(result("memguard", 1.0, tallies=early))
    assert text.endswith("as nobody else could yield, 1,200 times")
    assert facts.tallied(result("a", 1.0)) == []
    notes = facts.load_notes(document(result("uniboost", 1.0, tallies=tallies)))
    assert any(note.startswith("uniboost: fitted γ") for note in notes)


def test_load_notes() -> None:
    assert facts.load_notes(document(result("a", 1.0))) == []
    quiet = document(result("a", 1e-5), result("b", 1e-5))
    assert facts.load_notes(quiet)[0].startswith("No queueing: policy cannot matter")
    loaded = document(result("a", 1.0, load_state="OVERLOADED"), result("b", 1.0, load_state="BACKLOGGED"))
    assert [text.split(".")[0] for text in facts.load_notes(loaded)] == ["a: OVERLOADED", "b: BACKLOGGED"]
    partly = document(result("a", 1.0, counts={"submitted": 10, "completed": 9}))
    assert facts.load_notes(partly)[0].startswith("a completed 90.0 % of its requests")
    assert facts.load_notes(document(result("a", None))) == []
