"""Files that ``simulate`` and ``compare`` write, and places that cannot be written."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tailrace.cli import main

SMALL = ("qba:requests=60", "--engine", "qba")


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Call the command line in this process, in an empty folder: ``(status, out, err)``."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tailrace", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        return (int(left.value.code or 0), *capsys.readouterr())

    return run


def test_simulate_writes_every_file_and_json_stays_alone(call: Any, tmp_path: Path) -> None:
    files = ("--trace", "t.json", "--save-bench", "b.json", "--requests", "r.parquet", "--figures", "figs")
    code, out, err = call("simulate", *SMALL, "--policy", "qba:k=3", *files, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert json.loads((tmp_path / "b.json").read_text())["tailrace"] == document | {
        "results": [{"label": "qba:k=3"} | {k: v for k, v in document["results"][0].items() if k != "label"}]
    }
    assert json.loads((tmp_path / "t.json").read_text())["otherData"]["params"]["k"] == 3
    assert (tmp_path / "r.parquet").exists()
    assert (tmp_path / "figs" / "timeline.png").exists()
    code, out, _ = call("simulate", *SMALL, *files)
    assert "trace: t.json (open it at ui.perfetto.dev)" in out
    assert "figures: 20 files in figs" in out


def test_compare_writes_a_benchmark_file_a_policy(call: Any, tmp_path: Path) -> None:
    code, out, _ = call(
        "compare",
        *SMALL,
        "--policies",
        "fcfs,qba:k=3",
        "--seeds",
        "2",
        "--jobs",
        "1",
        "--report",
        "",
        "--save-bench",
        "b.json",
    )
    assert code == 0
    assert "benchmark: b-fcfs.json" in out
    for name, label in (("b-fcfs", "fcfs"), ("b-qba_k=3", "qba:k=3")):
        found = json.loads((tmp_path / f"{name}.json").read_text())
        assert found["label"] == label
        assert found["tailrace"]["seeds"] == [0]
    assert not (tmp_path / "b.json").exists()


def test_seeds_are_paired_with_the_first_policy(call: Any) -> None:
    arguments = ("compare", *SMALL, "--policies", "fcfs,psf", "--seeds", "3", "--jobs", "1", "--json")
    found = json.loads(call(*arguments)[1])["results"]
    assert "vs" not in found[0]
    assert found[1]["vs"]["policy"] == "fcfs"
    pair = found[1]["vs"]["differences"]["metrics"]["wait_s"]["mean"]
    values = [r["metrics"]["wait_s"]["by_seed"]["mean"] for r in found]
    assert pair["difference"] == pytest.approx(sum(b - a for a, b in zip(*values, strict=True)) / 3)
    assert pair["ci"][0] <= pair["difference"] <= pair["ci"][1]
    single = json.loads(call(*arguments[:-5], "--jobs", "1", "--json")[1])
    assert all("vs" not in r for r in single["results"])


def test_queueing_is_a_field(call: Any) -> None:
    calm = json.loads(call("simulate", "deterministic:gap_s=5,requests=20", "--json")[1])["results"][0]
    assert calm["queueing"] is False
    assert json.loads(call("simulate", *SMALL, "--json")[1])["results"][0]["queueing"] is True


@pytest.mark.parametrize(
    ("workload", "engine"),
    [("qba:requests=3", "vllm_v1:kv_tokens=64"), ("deterministic:requests=1,output=1", "qba")],
    ids=["all rejected", "one token"],
)
def test_runs_in_which_little_happens_can_be_written(call: Any, tmp_path: Path, workload: str, engine: str) -> None:
    files = ("--trace", "t.json", "--save-bench", "b.json", "--requests", "r.parquet", "--figures", "figs")
    code, out, err = call("simulate", workload, "--engine", engine, *files, "--json")
    assert (code, err) == (0, "")
    counts = json.loads(out)["results"][0]["counts"]
    found = json.loads((tmp_path / "b.json").read_text(), parse_constant=lambda name: pytest.fail(name))
    assert (found["completed"], found["failed"]) == (counts["completed"], counts["rejected"])
    assert found["mean_itl_ms"] == 0.0
    assert found["itls"] == [[]] * counts["submitted"]
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert sum(e["name"].startswith("request ") for e in events) == counts["completed"]


@pytest.mark.parametrize("option", ["--trace", "--save-bench", "--requests", "--figures"])
def test_a_place_that_cannot_be_written_is_one_line_before_anything_runs(
    call: Any, tmp_path: Path, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tailrace.studies import runs

    (tmp_path / "file").write_text("")
    monkeypatch.setattr(runs, "run_all", lambda *_: pytest.fail("it ran"))
    code, out, err = call("simulate", *SMALL, option, "file/below/x.json")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "file is not a folder" in err
    if option != "--figures":
        assert "is a folder; give a file name" in call("simulate", *SMALL, option, str(tmp_path))[2]


@pytest.mark.parametrize("option", ["--trace", "--save-bench", "--requests", "--figures"])
def test_a_disk_that_fills_up_is_one_line_and_leaves_nothing(call: Any, tmp_path: Path, option: str) -> None:
    resource = pytest.importorskip("resource", reason="no file size limits here")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, hard))  # writes beyond it fail, as on a full disk
    try:
        code, out, err = call("simulate", *SMALL, "--no-cache", option, "new/x")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "cannot be written" in err
    assert "File too large" in err
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []
