"""The command line as a user meets it: results, and one line for every mistake."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

SMALL = ("qba:requests=300", "--engine", "qba")


def test_simulate_prints_a_table_and_json(tailrace: Any) -> None:
    shown = tailrace("simulate", *SMALL)
    assert shown.code == 0
    assert "fcfs" in shown.out
    found = json.loads(tailrace("simulate", *SMALL, "--json").out)
    assert set(found) >= {"workload", "engine", "results"}
    (result,) = found["results"]
    assert result["policy"] == "fcfs"
    assert result["predictions"] == "oracle"
    assert result["counts"]["completed"] == 300
    assert set(result["metrics"]) == {"wait_s", "ttft_s", "tpot_s", "tbt_s", "e2e_s", "preempted_s"}
    assert set(result["metrics"]["wait_s"]) >= {"mean", "p50", "p90", "p95", "p99", "p999", "max"}
    assert set(result["by_true_class"]) == {"short", "long"}
    assert result["rules"]["order_scope"] == "waiting"


OBJECTIVES = "low:ttft_s=0.4,tpot_s=0.025+chat"
SERVED = ("--classes", "high@0.5 weight=2 + low@0.5", "--slo", OBJECTIVES, "--slo-scale", "0.03125")


@pytest.mark.plain
def test_objectives_can_be_laid_over_any_workload(tailrace: Any, tmp_path: Path) -> None:
    call = ("simulate", *SMALL, *SERVED, "--requests", "r.parquet")
    found = json.loads(tailrace(*call, "--json").out)
    assert found["workload"]["slo_scale"] == 0.03125
    (result,) = found["results"]
    assert set(result["by_class"]) == {"high", "low"}
    import pyarrow.parquet as pq

    rows = pq.read_table("r.parquet").to_pylist()
    assert {(row["class"], row["ttft_slo_s"], row["tpot_slo_s"]) for row in rows} == {
        ("high", 1 / 32, 0.05 / 32),
        ("low", 0.4 / 32, 0.025 / 32),
    }
    gained = ideal = 0.0
    for row in rows:
        weight = {"high": 2.0, "low": 1.0}[row["class"]]
        gained += weight * (3.0 * row["first_on_time"] + row["on_time_tokens"])
        ideal += weight * (3.0 + row["output_tokens"] - 1)
    ratio = sum(row["prompt_tokens"] for row in rows) / sum(row["output_tokens"] for row in rows)
    assert result["gain"]["first_token_weight"] == pytest.approx(ratio)
    found = json.loads(tailrace(*call, "--first-token-weight", "3", "--json").out)["results"][0]
    assert found["gain"]["tdg_ratio"] == pytest.approx(gained / ideal)
    assert 0.05 < found["gain"]["tdg_ratio"] < 0.99
    assert found["by_class"]["low"]["gain"]["first_token_weight"] == 3.0
    assert "token gain (%)" in tailrace(*call).out


def test_compare_writes_report_and_requests(tailrace: Any, tmp_path: Path) -> None:
    call = ("compare", *SMALL, "--policies", "fcfs,qba:k=3", "--jobs", "1", "--seeds", "2", "--requests", "r.parquet")
    shown = tailrace(*call)
    assert shown.code == 0, shown.err
    assert "report: tailrace-report.html" in shown.out
    page = (tmp_path / "tailrace-report.html").read_text()
    assert "tailrace compare qba:requests=300" in page
    import pyarrow.parquet as pq

    table = pq.read_table("r.parquet")
    assert table.num_rows == 600
    assert set(table["policy"].to_pylist()) == {"fcfs", "qba:k=3"}
    assert set(table.column_names) >= {"class", "wait_s", "ttft_s", "e2e_s"}
    found = json.loads(tailrace(*call, "--json").out)
    assert [r["label"] for r in found["results"]] == ["fcfs", "qba:k=3"]
    low, high = found["results"][0]["metrics"]["wait_s"]["ci"]["mean"]
    assert low <= found["results"][0]["metrics"]["wait_s"]["mean"] <= high
    assert found["seeds"] == [0, 1]


@pytest.mark.plain
def test_a_module_may_be_called_like_its_policy(tailrace: Any, tmp_path: Path) -> None:
    (tmp_path / "sameness.py").write_text(OWN.replace("NAME", "sameness").replace("BODY", "return 0, 0.0"))
    for text in ("sameness:Own", "sameness.py:Own", str(tmp_path / "sameness.py") + ":Own"):
        shown = tailrace("compare", *SMALL, "--policies", f"fcfs,{text}", "--jobs", "1", "--report", "")
        assert shown.code == 0, shown.err


OWN = """from typing import Any
import tailrace
from tailrace import hooks


@tailrace.policy("NAME", source="a test")
class Own(tailrace.Policy):
    'One of ours.'
    keys = hooks.EVERY_STEP

    @staticmethod
    def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
        BODY
"""


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("column", "return 0, float(table.true_output[row])", "line 13: Unknown attribute 'true_output'"),
        ("kind", "return 'first'", "key must return an int and a float"),
        ("list", "return 0, float([row][0])", "hooks cannot allocate"),
        ("unknown", "return 0, undefined(row)", "name 'undefined' is not defined"),
    ],
)
def test_a_hook_that_does_not_compile_is_one_line(
    tailrace: Any, tmp_path: Path, name: str, body: str, message: str
) -> None:
    (tmp_path / f"broken_{name}.py").write_text(OWN.replace("NAME", f"broken_{name}").replace("BODY", body))
    shown = tailrace("simulate", *SMALL, "--policy", f"broken_{name}:Own")
    assert shown.code == 2
    assert message in shown.err
    assert shown.err.count("\n") == 1


def test_a_misspelt_hook_and_a_file_without_its_class(tailrace: Any, tmp_path: Path) -> None:
    (tmp_path / "misspelt.py").write_text(OWN.replace("NAME", "misspelt").replace("def key", "def kye"))
    assert "a policy has no 'kye' (did you mean 'key'?)" in tailrace("simulate", *SMALL, "--policy", "misspelt:Own").err
    assert "misspelt:ClassName" in tailrace("simulate", *SMALL, "--policy", "misspelt").err
    assert "call from the folder" in tailrace("simulate", *SMALL, "--policy", "elsewhere:Own").err


def test_what_the_table_does_not_say_is_said_below(tailrace: Any) -> None:
    small = ("--policies", "fcfs,qba", "--jobs", "1", "--report", "")
    shown = tailrace("compare", "qba:requests=100", "--engine", "vllm_v1:kv_tokens=64", *small)
    assert "rejected: 100 requests need more KV than the 64 tokens there are" in shown.out
    assert "cannot matter" not in shown.out
    calm = ("compare", "deterministic:gap_s=5,requests=20", *small)
    assert "the policy cannot matter here" in tailrace(*calm).out
    shown = tailrace(*calm, "--seeds", "3")
    assert "one seed run: nothing in this trace" in shown.err
    assert "derived from published figures, not measured" in " ".join(shown.out.split())


def test_same_inputs_same_bytes(tailrace: Any) -> None:
    call = ("compare", *SMALL, "--policies", "fcfs,psf", "--jobs", "1", "--no-cache", "--json", "--report", "")
    assert tailrace(*call).out == tailrace(*call).out


def test_policies_lists_everything(tailrace: Any) -> None:
    names = {p["name"] for p in json.loads(tailrace("policies", "--json").out)["policies"]}
    assert names >= {"fcfs", "priority", "vllm_fcfs", "vllm_priority", "sjf", "srpt", "sarathi", "psf", "aa", "qba"}
    assert names >= {"las", "mlfq", "spf", "ltr", "trail", "gamma_boost", "dist_boost", "uniboost_base", "memguard"}
    assert names >= {"uniboost", "uniboost_rekeyed", "prefill_first", "sarathi_priority", "edf", "fairbatching", "vtc"}
    assert "slide" in names
    shown = tailrace("policies").out
    assert "aging_quantile" in shown
    assert "llama-3-8b-a100-derived" in shown


def test_what_is_no_policy_is_not_listed(tailrace: Any) -> None:
    assert tailrace("simulate", *SMALL, "--policy", "json:JSONDecoder").code == 2
    listed = tailrace("policies", "--json")
    assert listed.code == 0
    assert "JSONDecoder" not in listed.out


MISTAKES = [
    (["simulate", *SMALL, "--policy", "qbb"], "unknown policy 'qbb' (did you mean 'qba'?)"),
    (["simulate", *SMALL, "--policy", "qba:kk=3"], "unknown parameter 'kk' (did you mean 'k'?)"),
    (["simulate", *SMALL, "--policy", "qba:k=0"], "k=0 is outside [1, inf) requests"),
    (["simulate", *SMALL, "--policy", "qba:k=two"], "k=two must be a whole number"),
    (["simulate", *SMALL, "--policy", "qba:k"], "'k' is not key=value"),
    (["simulate", *SMALL, "--policy", "fcfs:k=1"], "unknown parameter 'k' (it has none)"),
    (["simulate", *SMALL, "--policy", "no.such:Thing"], "cannot load policy 'no.such:Thing'"),
    (["simulate", *SMALL, "--policy", "json:JSONDecoder"], "is not a policy"),
    (["simulate", "qbb:requests=3"], "neither a file nor a generator (did you mean 'qba'?)"),
    (["simulate", "qba:rate=3"], "unknown parameter 'rate'"),
    (["simulate", "nowhere.csv"], "nowhere.csv"),
    (["simulate", "qba", "--engine", "vlm_v1"], "unknown engine 'vlm_v1' (did you mean 'vllm_v1'?)"),
    (["simulate", "qba", "--engine", "qba:token_budgt=3"], "(did you mean 'token_budget'?)"),
    (["simulate", "qba", "--engine", "qba:token_budget=0"], "token_budget=0 must be a whole number of at least 1"),
    (["simulate", "qba", "--engine", "qba:kv_tokens=many"], "kv_tokens='many' must be a whole number"),
    (["simulate", "qba", "--engine", "qba:watermark=1.5"], "watermark: 1.5 must be a share in [0, 1)"),
    (["simulate", "qba", "--engine", "qba:evict=swap"], "evict=swap needs host memory; give host_kv_tokens="),
    (["simulate", "qba", "--engine", "qba:swap_out=when_needed"], "swap_out=when_needed needs evict=swap"),
    (["simulate", "qba", "--engine", "missing.toml"], "missing.toml: No such file"),
    (["simulate", "qba", "--latency", "llama-3-8b"], "unknown latency model 'llama-3-8b'"),
    (["simulate", "qba", "--engine", "vllm_v1", "--latency", "piecewise:constant_s=0.01"], "give kv_tokens="),
    (["simulate", "qba", "--predictions", "label:eps=1"], "unknown parameter 'eps'"),
    (["simulate", "qba", "--rate-scale", "0"], "rate scale 0 must be above 0"),
    (["simulate", "qba", "--slo", "chta"], "no preset 'chta' (did you mean 'chat'?)"),
    (["simulate", "qba", "--slo-scale", "0.5"], "this workload sets no SLOs; give --slo"),
    (["simulate", "qba", "--classes", "a@2@3"], "workload qba: classes: a: share 2@3"),
    (["simulate", "qba", "--first-token-weight", "0"], "--first-token-weight 0 must be above 0"),
    (["simulate"], "Missing argument"),
    (["simulate", "qba", "--polcy", "fcfs"], "--polcy"),
    (["frobnicate"], "frobnicate"),
    (["compare", *SMALL, "--policies", "k=5,fcfs"], "comes before any name"),
    (["compare", *SMALL, "--policies", "fcfs,fcfs"], "policy 'fcfs' is named twice"),
    (["compare", *SMALL, "--policies", "fcfs", "--jobs", "1", "--report", "/proc/nowhere/r.html"], "cannot be written"),
    (["simulate", *SMALL, "--requests", "/proc/nowhere/r.parquet"], "cannot be written"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES, ids=[" ".join(m[0])[:60] for m in MISTAKES])
def test_a_mistake_is_one_line_and_status_2(refused: Any, arguments: list[str], message: str) -> None:
    refused(arguments, message)


def test_an_engine_from_a_file(tailrace: Any, tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text('engine = "qba"\ntoken_budget = 64\nwatermark = 0.5\n')
    found = json.loads(tailrace("simulate", "qba:requests=50", "--engine", "e.toml", "--json").out)
    assert found["engine"]["token_budget"] == 64
    assert found["results"][0]["rules"]["watermark"] == 0.5
    (tmp_path / "e.json").write_text('{"engine": "qba", "token_budget": 1.5}')
    assert "token_budget=1.5 must be a whole number" in tailrace("simulate", "qba", "--engine", "e.json").err
    (tmp_path / "bad.toml").write_text("token_budget = = 3")
    assert "bad.toml: " in tailrace("simulate", "qba", "--engine", "bad.toml").err
    (tmp_path / "list.yaml").write_text("- 1\n- 2\n")
    assert "must hold settings" in tailrace("simulate", "qba", "--engine", "list.yaml").err


def test_help_is_quick_and_light(imports: Any) -> None:
    shown, heavy = imports("--help")
    assert "compare" in shown
    assert heavy == []


def test_version(tailrace: Any) -> None:
    assert tailrace("--version") == (0, "tailrace 0.1.0\n", "")


def test_ctrl_c_exits_130() -> None:
    call = [sys.executable, "-c", "import sys; sys.argv[0] = 'tailrace'; from tailrace.cli import main; main()"]
    endless = "poisson:requests=1000000,rate_rps=100,prompt=10,output=2000"
    call += ["compare", endless, "--policies", "fcfs,srpt", "--report", "", "--no-cache"]
    process = subprocess.Popen(
        call,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell's background jobs, and their children, ignore the signal unless told.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        time.sleep(3)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=30)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130, err
    assert "interrupted" in err
    assert "Traceback" not in err
