"""`tailrace calibrate` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tailrace.latency import build, step_seconds, step_shape

pytestmark = pytest.mark.plain

MODEL = "profiled:constant_s=0.009,prefill_token_s=9e-5,decode_kv_s=4e-8,decode_seq_s=4e-5"


def _profile(folder: Path) -> None:
    rows = ["seconds,chunk_tokens,chunk_kv_tokens,decode_kv_tokens"]
    for index in range(60):
        chunks = [(37 * index % 500 + 1, 0)] if index % 3 else []
        kvs = [(index * 13 + other * 101) % 3000 for other in range(index % 17 + (not chunks))]
        seconds = step_seconds(step_shape(chunks, [(1, kv) for kv in kvs]), build(MODEL).cost)
        cells = (" ".join(map(str, cell)) for cell in ([q for q, _ in chunks], [kv for _, kv in chunks], kvs))
        rows.append(",".join([repr(seconds), *cells]))
    (folder / "steps.csv").write_text("\n".join(rows) + "\n")


@pytest.mark.parametrize("name", ["fitted.toml", "fitted.json"])
def test_fit_prints_errors_and_writes_what_latency_takes(name: str, tailrace: Any, tmp_path: Path) -> None:
    _profile(tmp_path)
    code, out, err = tailrace("calibrate", "fit", "steps.csv", "--output", name, "--kv-tokens", "9000")
    assert (code, err) == (0, "")
    assert "held out: MAPE" in out
    assert "decode only" in out
    text = next(line for line in out.splitlines() if line.startswith("--latency ")).removeprefix("--latency ")
    found = build(name)
    assert found.cost == pytest.approx(build(MODEL).cost, rel=1e-5, abs=1e-12)
    assert build(text).cost == pytest.approx(found.cost, rel=1e-14)
    assert found.kv_tokens == 9000
    assert "steps.csv" in found.summary
    run = tailrace("simulate", "deterministic:requests=3", "--latency", name, "--json", "--no-cache")
    assert json.loads(run.out)["engine"]["kv_tokens"] == 9000


def test_fit_as_json_is_one_object(tailrace: Any, tmp_path: Path) -> None:
    _profile(tmp_path)
    code, out, _ = tailrace("calibrate", "fit", "steps.csv", "--json", "--holdout", "0.5", "--seed", "3")
    found = json.loads(out)
    assert code == 0
    assert found["fitted"]["all"]["steps"] == found["held_out"]["all"]["steps"] == 30
    assert found["held_out"]["all"]["mape"] < 1e-6
    assert build(found["latency"]).cost == pytest.approx(build(MODEL).cost, rel=1e-5, abs=1e-12)
    assert tailrace("calibrate", "fit", "steps.csv", "--json", "--holdout", "0.5", "--seed", "3").out == out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("fit", "nothing.csv"), "nothing.csv"),
        (("fit", "nothing.csv", "--output", "model.yaml"), "written as .toml or .json"),
    ],
)
def test_a_mistake_is_one_line(arguments: tuple[str, ...], why: str, refused: Any) -> None:
    refused(("calibrate", *arguments), why)


def test_a_bad_row_is_named(tailrace: Any, tmp_path: Path) -> None:
    _profile(tmp_path)
    text = (tmp_path / "steps.csv").read_text().splitlines()
    text[4] = "-1" + text[4][text[4].index(",") :]
    (tmp_path / "steps.csv").write_text("\n".join(text))
    code, out, err = tailrace("calibrate", "fit", "steps.csv")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "steps.csv: row 5: field seconds: '-1' must be a number of seconds above 0" in err


SLOW = "profiled:constant_s=0.01,prefill_token_s=1e-4,decode_kv_s=1.5e-7"
RUN = ("--workload", "poisson:requests=15,rate_rps=6,prompt=2000,output=100", "--engine", "sarathi:kv_tokens=200000")


def test_budget_of_a_workload(tailrace: Any) -> None:
    code, out, err = tailrace("calibrate", "budget", *RUN, "--latency", SLOW)
    assert (code, err) == (0, "")
    assert [word for word in ("a prefill", "the mean step", "a heavy step", "P99 TPOT") if word not in out] == []
    code, out, _ = tailrace("calibrate", "budget", *RUN, "--latency", SLOW, "--json", "--tpot-slo", "0.04")
    found = json.loads(out)
    assert found["tpot_slo_s"] == 0.04
    assert [each["tokens"] > 0 for each in found["budgets"]] == [True, True, True]
    assert found["budgets"][0]["check"]["over_share"] > found["budgets"][2]["check"]["over_share"]


def test_budget_of_decodes_that_are_given(tailrace: Any) -> None:
    given = ("--decodes", "20", "--kv", "2000", "--prefill-kv", "100", "--latency", SLOW)
    code, out, err = tailrace("calibrate", "budget", *given)
    assert (code, err) == (0, "")
    assert "the mix given" in out
    found = json.loads(tailrace("calibrate", "budget", *given, "--json").out)
    assert found["budgets"][1]["mix"] == {"decodes": 20, "kv_tokens": 2000.0, "prefill_kv_tokens": 100}
    assert found["budgets"][1]["check"] is None


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "give --workload, or --decodes with --kv"),
        (("--decodes", "5"), "--decodes and --kv belong together"),
        ((*RUN, "--kv", "5"), "--decodes and --kv belong together"),
        ((*RUN, "--decodes", "5", "--kv", "5"), "give --workload, or --decodes with --kv"),
        (("--decodes", "5", "--kv", "5", "--tpot-slo", "0"), "tpot_slo_s=0.0 must be positive"),
        (("--decodes", "5", "--kv", "5", "--latency", "qb"), "did you mean 'qba'"),
    ],
)
def test_a_budget_needs_a_mix(arguments: tuple[str, ...], why: str, refused: Any) -> None:
    refused(("calibrate", "budget", *arguments), why)


def test_error_by_jitter(tailrace: Any) -> None:
    small = ("calibrate", "error", "poisson:requests=15,rate_rps=4", "--jitter", "0,0.1", "--elsewhere")
    code, out, err = tailrace(*small, "poisson:requests=9,rate_rps=9")
    assert (code, err) == (0, "")
    assert out.count("held-out steps, jitter") == 2
    assert "elsewhere" in out
    found = json.loads(tailrace(*small, "", "--json").out)
    assert [each["jitter"] for each in found["errors"]] == [0.0, 0.1]
    assert found["errors"][0]["floor"]["all"]["mape"] == 0 < found["errors"][1]["floor"]["all"]["mape"]


def test_jitters_are_numbers(refused: Any) -> None:
    refused(("calibrate", "error", "poisson", "--jitter", "0;1"), "--jitter '0;1': must be numbers")
    refused(("calibrate", "error", "poisson:requests=2", "--jitter", "-1"), "step_jitter=-1.0 must be")
