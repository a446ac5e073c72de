"""``tailrace workload`` as a user meets it."""

from __future__ import annotations

import functools
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tailrace.workloads import generators, length_sources, load, settings
from tailrace.workloads.public import TRACES


@pytest.fixture
def workload(tailrace: Any) -> Any:
    """Call ``tailrace workload``, in an empty folder."""
    return functools.partial(tailrace, "workload")


MIX = "gamma:cv=3,requests=200,lengths=azure-conv@0.8 class=chat ttft_slo_s=1 + s1k-like@0.2 class=think"


@pytest.mark.parametrize("name", ["w.csv", "w.parquet"])
def test_made_files_give_the_workload_back(workload: Any, name: str) -> None:
    shown = workload("make", MIX, "--out", name, "--seed", "3")
    assert shown.code == 0, shown.err
    assert shown.out.startswith(f"{name}: 200 requests, ")
    assert "azure-conv: a quantile table" in shown.out
    back, made = load(name), load(MIX, seed=3)
    for field in ("arrival_s", "prompt_tokens", "output_tokens", "ttft_slo_s"):
        assert getattr(back, field).tolist() == getattr(made, field).tolist()
    classes = [[w.class_names[i] for i in w.class_id] for w in (back, made)]  # a file numbers them as they come
    assert classes[0] == classes[1]


def test_made_files_keep_classes_and_objectives_laid_over(workload: Any) -> None:
    over = ("--classes", "high weight=2 + low", "--slo", "high:chat", "--slo-scale", "2")
    assert workload("make", "poisson:requests=50", *over, "--out", "w.csv").code == 0
    back = load("w.csv")
    high = [back.class_names[i] == "high" for i in back.class_id]
    assert 10 < sum(high) < 40
    assert [slo == 2.0 for slo in back.ttft_slo_s.tolist()] == high
    assert {back.class_names[i]: back.class_weights[i] for i in (0, 1)} == {"high": 2.0, "low": 1.0}
    assert "0.1 s" in workload("inspect", "poisson:requests=50", *over).out


def test_make_json_limit_rate_and_the_prefix(workload: Any, tmp_path: Path) -> None:
    call = ("make", "qba:prefix_groups=2,prefix_tokens=16", "--out", "w.csv", "--limit", "50", "--rate-scale", "2")
    found = json.loads(workload(*call, "--json").out)
    assert (found["path"], found["requests"], found["workload"]) == ("w.csv", 50, "qba")
    assert found["bytes"] == (tmp_path / "w.csv").stat().st_size
    back, made = load("w.csv"), load("qba", limit=50)
    assert back.arrival_s.tolist() == (made.arrival_s / 2).tolist()
    assert found["description"]["rate_factor"] == 2
    # Whatever the format keeps, the answer says what it does not.
    assert back.prefix is not None
    assert workload(*call).err == ""


def test_same_seed_same_bytes(workload: Any, tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv", "a.parquet", "b.parquet"):
        workload("make", MIX, "--out", name)
    for suffix in ("csv", "parquet"):
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_inspect_prints_all_there_is(workload: Any) -> None:
    shown = workload("inspect", f"{MIX},tenants=a+b@3,prefix_groups=2,prefix_tokens=32")
    assert shown.code == 0, shown.err
    for text in ("gamma: 200 requests in", "P99", "output tail: ", "rank correlation", "variance / mean", "SCV"):
        assert text in shown.out
    for text in ("chat", "think", "TTFT SLO", "Tenants", "prefixes: 200 requests", "dropped rows", "notes"):
        assert text in shown.out
    assert "assumed: lognormals" in " ".join(shown.out.replace("│", " ").split())


def test_inspect_json_is_one_object_without_nan(workload: Any) -> None:
    found = json.loads(workload("inspect", "deterministic:requests=1", "--json").out)
    assert found["requests"] == 1
    assert found["rate_rps"] is None
    assert found["arrivals"]["scv"] is None
    assert found["output_tail"]["verdict"] == "unclear"
    found = json.loads(workload("inspect", MIX, "--json", "--limit", "100", "--seed", "2", "--rate-scale", "3").out)
    assert found["requests"] == 100
    assert found["description"]["seed"] == 2
    assert [item["name"] for item in found["classes"]["largest"]] == ["chat", "think"]


@pytest.mark.parametrize("name", ["lengths.png", "lengths.svg"])
def test_inspect_draws(workload: Any, tmp_path: Path, name: str) -> None:
    shown = workload("inspect", MIX, "--plot", name)
    assert shown.out.endswith(f"plot: {name}\n")
    assert (tmp_path / name).stat().st_size > 10_000
    assert json.loads(workload("inspect", MIX, "--plot", name, "--json").out)["plot"] == name


def test_inspect_says_what_a_trace_lost(workload: Any, tmp_path: Path) -> None:
    rows = "TIMESTAMP,ContextTokens,GeneratedTokens,Note\n2023-11-16 18:15:47,5,5,x\n2023-11-16 18:15:46,5,5,x\n"
    (tmp_path / "t.csv").write_text(rows + "2023-11-16 18:15:48,5,0,x\n")
    found = json.loads(workload("inspect", "t.csv", "--json").out)["description"]
    assert (found["dropped_rows"], found["reordered_rows"], found["ignored_columns"]) == (1, 1, ["Note"])
    shown = workload("inspect", "t.csv").out
    assert "dropped rows" in shown
    assert "Note" in shown


def test_a_workload_from_a_file(workload: Any, tmp_path: Path) -> None:
    (tmp_path / "mix.toml").write_text('generator = "onoff"\nrequests = 30\nlengths = [{name = "r1"}]\n')
    assert json.loads(workload("inspect", "mix.toml", "--json").out)["requests"] == 30


def test_fetch_lists(workload: Any) -> None:
    shown = workload("fetch")
    assert shown.code == 0
    for trace in TRACES.values():
        assert trace.url in shown.out
    found = json.loads(workload("fetch", "mooncake", "--json").out)
    assert [trace["name"] for trace in found["traces"]] == [name for name in TRACES if name.startswith("mooncake-")]
    assert set(found["traces"][0]) == {"name", "about", "url", "file", "size", "licence", "cite"}
    assert found["fetched"] == []
    assert "azure" not in workload("fetch", "burstgpt").out.lower().replace("chatgpt and gpt-4 on azure", "")


def test_fetch_runs(workload: Any, tmp_path: Path) -> None:
    # What is there is not fetched again, so no network is needed.
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "BurstGPT_1.csv").write_text("mine")
    found = json.loads(workload("fetch", "burstgpt", "--run", "traces", "--json").out)["fetched"]
    assert [(item["path"], item["bytes"], item["new"]) for item in found] == [("traces/BurstGPT_1.csv", 4, False)]
    assert "was there" in workload("fetch", "burstgpt", "--run", "traces").out


MISTAKES = [
    (["make", "qba"], "Missing option '--out'"),
    (["make", "qba", "--out", "w.txt"], "w.txt: a trace is written as .csv or .parquet"),
    (["make", "qba", "--out", "nowhere/w.csv"], "nowhere/w.csv: its folder does not exist"),
    (["make", "qbb", "--out", "w.csv"], "(did you mean 'qba'?)"),
    (["make", "qba", "--out", "w.csv", "--rate-scale", "0"], "rate scale 0 must be above 0"),
    (["make", "gamma:lengths=r2", "--out", "w.csv"], "lengths: unknown lengths 'r2'"),
    (["make", "gamma:lengths=r1@x", "--out", "w.csv"], "lengths: r1: share x: 'x' is not a number"),
    (["inspect", "nowhere.csv"], "nowhere.csv: no such file"),
    (["inspect", "qba", "--plot", "x.pdf"], "x.pdf: a plot is written as .png or .svg"),
    (["inspect", "qba", "--plot", "/proc/nowhere/x.png"], "cannot be written"),
    (["inspect", "qba", "--format", "azur"], "unknown format 'azur'"),
    (["fetch", "burst"], "unknown trace 'burst'"),
    (["fetch", "--run", "here"], "fetch --run downloads what you name"),
    (["fitch"], "No such command 'fitch'"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES, ids=[" ".join(m[0]) for m in MISTAKES])
def test_a_mistake_is_one_line_and_status_2(refused: Any, arguments: list[str], message: str) -> None:
    refused(["workload", *arguments], message)


def test_help_is_light(imports: Any) -> None:
    shown, heavy = imports("workload", "inspect", "--help")
    assert "--plot" in shown
    assert heavy == []


DOCS = Path(__file__).parents[2] / "docs" / "workloads.md"


def test_the_examples_in_the_docs_run(workload: Any, tmp_path: Path) -> None:
    text = DOCS.read_text()
    (settings,) = re.findall(r"```toml\n(.*?)```", text, re.S)
    (tmp_path / "mix.toml").write_text(settings)
    lines = "".join(re.findall(r"```sh\n(.*?)```", text, re.S)).splitlines()
    calls = [call for line in lines if (call := shlex.split(line))[1] == "workload"]  # the others compare policies
    assert (len(calls), len(lines)) == (7, 9)
    for call in calls:
        assert call[:2] == ["tailrace", "workload"]
        shown = workload(*call[2:])
        assert (shown.code, shown.err) == (0, ""), call
    assert len(load("mix.csv")) == 2000
    assert (tmp_path / "lengths.png").exists()


def test_the_docs_name_what_there_is() -> None:
    text = DOCS.read_text()
    for name in (*generators(), *length_sources(), *settings()):
        assert f"`{name}" in text, name


def test_policies_lists_generators_and_lengths(tailrace: Any) -> None:
    found = json.loads(tailrace("policies", "--json").out)
    assert {item["name"] for item in found["workloads"]} == set(generators())
    assert {item["name"] for item in found["lengths"]} == set(length_sources())
    shown = " ".join(tailrace("policies").out.split())
    assert "NAME@SHARE key=value" in shown
    assert "constant:PROMPT:OUTPUT" in shown
