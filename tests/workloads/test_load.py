from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tailrace.errors import UserError
from tailrace.params import describe
from tailrace.workloads import apply, canonical, formats, generate, load, long_class, write

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:47,1,2\n"
CANONICAL = "arrival_s,prompt_tokens,output_tokens\n0,1,2\n1,1,7\n"
Write = Callable[[str], Path]


def test_generator_with_and_without_parameters() -> None:
    assert load("qba").digest() == generate("qba").digest()
    assert load("qba:rate_rps=8,requests=20").digest() == generate("qba", {"rate_rps": 8, "requests": 20}).digest()


def test_the_argument_wins_over_the_seed_in_the_text() -> None:
    assert load("qba:seed=3", seed=4).digest() == generate("qba", {"seed": 4}).digest()
    assert load("qba:seed=3").description["seed"] == 3
    assert load("deterministic", seed=4).description["seed"] == 4


def test_format_is_found_from_the_content(file: Write, tmp_path: Path) -> None:
    assert load(str(file(AZURE))).description["format"] == "azure"
    assert load(str(file(CANONICAL))).description["format"] == "canonical"
    write(generate("qba", {"requests": 5}), tmp_path / "x.parquet")
    (tmp_path / "x.parquet").rename(tmp_path / "renamed.csv")
    assert load(str(tmp_path / "renamed.csv")).digest() == generate("qba", {"requests": 5}).digest()


def test_format_may_be_named(file: Write) -> None:
    path = str(file(AZURE))
    assert load(path, format="azure").digest() == load(path).digest()
    with pytest.raises(UserError, match="field arrival_s: no header"):
        load(path, format="canonical")
    with pytest.raises(UserError, match=r"unknown format 'azur' \(did you mean 'azure'\?\)"):
        load(path, format="azur")
    assert set(formats()) == {
        *("azure", "burstgpt", "canonical", "bailian", "mooncake", "timed", "sharegpt", "vllm_bench")
    }


@pytest.mark.parametrize("row", ["1.0", "1e3", " 7 "])
def test_whole_numbers_may_be_written_as_floats(file: Write, row: str) -> None:
    assert load(str(file(f"{CANONICAL}2,{row},1\n"))).prompt_tokens[-1] == float(row)


def test_format_with_parameters(file: Write) -> None:
    path = str(file("timestamp,input_length,output_length\n1,2,3\n3,2,3\n"))
    assert load(path, format="timed:unit=ms").arrival_s.tolist() == [0, 0.002]
    for format, message in {
        "azure:unit=ms": r"format azure: unknown parameter 'unit' \(it has none\)",
        "timed:unit": "'unit' is not key=value",
        "timeed": r"unknown format 'timeed' \(did you mean 'timed'\?\)",
    }.items():
        with pytest.raises(UserError, match=message):
            load(path, format=format)


def test_every_format_describes_itself_alike(file: Write) -> None:
    keys = {"source", "format", "parameters", "seed", "units", "rows", "dropped_rows", "dropped_by_reason"}
    keys |= {"reordered_rows", "ignored_columns", "notes", "estimates"}
    mooncake = '{"timestamp": 1, "input_length": 2, "output_length": 3, "hash_ids": [1]}'
    talk = '[{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}]'
    bench = '{"completed": 1, "request_throughput": 1, "input_lens": [1], "output_lens": [1]}'
    burst = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,a,4,1,5,c\n"
    for text in (AZURE, CANONICAL, mooncake, mooncake.replace(', "hash_ids": [1]', ""), talk, bench, burst):
        about = load(str(file(text))).description
        assert keys <= about.keys()
        assert json.loads(json.dumps(about)) == about
        assert describe(formats()[about["format"]].params) is not None


def shown(default: object) -> str:
    return f"{default:g}" if isinstance(default, float) else str(default).lower()


def test_every_format_and_setting_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "traces.md").read_text()
    for name, format in formats().items():
        assert f"\n| `{name}` | " in text
        for column in (*format.columns, *(canonical.OPTIONAL if name == "canonical" else ())):
            assert f"`{column}`" in text or name == "vllm_bench"
        settings = [f"`{item.name}` ({shown(item.default)}" for item in describe(format.params)]
        assert all(setting in text for setting in settings), settings


def test_seed_of_a_file_makes_independent_label_errors(file: Write) -> None:
    rows = "".join(f"{row},1,{row % 50 + 1}\n" for row in range(200))
    path = str(file(CANONICAL.splitlines()[0] + "\n" + rows))
    first, second = (apply(load(path, seed=seed), "label:eps_sl=0.5") for seed in (1, 2))
    assert (first.output_tokens == second.output_tokens).all()
    assert (first.predicted_class != second.predicted_class).any()


def test_limit_labels_what_is_left() -> None:
    workload = load("qba", limit=100)
    assert len(workload) == 100
    assert (workload.true_class == long_class(workload.output_tokens)).all()
    assert workload.digest() == load("qba:requests=100").digest()
    assert load("qba:requests=5", limit=100).digest() == load("qba:requests=5").digest()
    with pytest.raises(UserError, match="first 0 requests"):
        load("qba", limit=0)


def test_a_file_named_like_a_generator_is_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("poisson").mkdir()
    assert load("poisson:requests=3").name == "poisson"
    assert load("poisson").description["format"] == "synthetic"
    Path("qba").write_text(CANONICAL)
    assert load("qba").description["format"] == "canonical"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("qbaa", r"'qbaa' is neither a file nor a generator \(did you mean 'qba'\?\)"),
        ("qbaa:rate_rps=3", r"neither a file nor a generator \(did you mean 'qba'\?\)"),
        ("", r"'' is neither a file nor a generator \(known: deterministic, gamma, onoff, poisson, qba, spikes\)"),
        ("qba:rate_rp=3", r"workload qba: unknown parameter 'rate_rp' \(did you mean 'rate_rps'\?\)"),
        ("qba:rate_rps", "'rate_rps' is not key=value"),
        ("trace.csv", r"trace\.csv: no such file"),
        ("some/where", "some/where: no such file; its folder some does not exist"),
        ("qba:" + "rate_rps=1," * 100, "'rate_rps' is given twice"),
    ],
)
def test_mistakes_of_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=message):
        load(text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("name,age\nx,3\n", "row 1: no known header in 'name,age'; expected TIMESTAMP,.* or arrival_s,"),
        (AZURE.split("\n", 1)[1], "row 1: no known header in '2023-"),
        (AZURE.replace("ContextTokens", "ContextToken"), "field ContextTokens: no such column; rename 'ContextToken'"),
        (CANONICAL.replace("arrival_s", "arrival"), "field arrival_s: no such column; rename 'arrival' to it"),
    ],
)
def test_mistakes_of_content(file: Write, content: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load(str(file(content)))


def test_a_folder_is_not_a_trace(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a folder"):
        load(str(tmp_path))


def test_the_real_trace(azure_trace: Path) -> None:
    workload = load(str(azure_trace), limit=1000)
    assert len(workload) == 1000
    assert workload.true_class.sum() <= 150
    assert np.isfinite(workload.rate_rps)


def test_importing_does_not_pull_in_pyarrow() -> None:
    code = "import sys, tailrace.workloads; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
