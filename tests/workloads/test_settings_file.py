from __future__ import annotations

import json
from pathlib import Path

import pytest

from tailrace.errors import UserError
from tailrace.workloads import load
from tailrace.workloads.settings_file import expanded

TOML = """generator = "gamma"
cv = 3
rate_rps = 2.5
requests = 50
classes = "high@0.5 weight=2 + low@0.5"
[[lengths]]
name = "azure-conv"
share = 0.8
tenant = "chat"
ttft_slo_s = 1.5
[[lengths]]
name = "r1"
share = "drift:0.2:0.9:600"
tenant = "think"
"""
TEXT = "gamma:cv=3,rate_rps=2.5,requests=50,classes=high@0.5 weight=2 + low@0.5,"
TEXT += "lengths=azure-conv@0.8 tenant=chat ttft_slo_s=1.5 + r1@drift:0.2:0.9:600 tenant=think"


def test_a_file_says_what_the_text_says(tmp_path: Path) -> None:
    path = tmp_path / "mix.toml"
    path.write_text(TOML)
    assert expanded(str(path)) == TEXT
    workload = load(str(path))
    assert workload.digest() == load(TEXT).digest()
    assert workload.description == load(TEXT).description
    assert load(str(path), seed=4).digest() == load(TEXT, seed=4).digest() != workload.digest()
    assert len(load(str(path), limit=7)) == 7


def test_json_and_yaml_alike(tmp_path: Path) -> None:
    parts = [{"name": "constant:10:2", "share": 3}, {"name": "constant:20:2"}]
    settings = {"generator": "onoff", "requests": 20, "lengths": parts}
    (tmp_path / "mix.json").write_text(json.dumps(settings, indent=1))
    (tmp_path / "mix.yaml").write_text(json.dumps(settings))  # JSON is YAML
    for name in ("mix.json", "mix.yaml"):
        assert expanded(str(tmp_path / name)) == "onoff:requests=20,lengths=constant:10:2@3 + constant:20:2"


def test_what_is_no_settings_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text('[{"conversations": "generator"}]')
    assert expanded(str(path)) == str(path)
    path.write_text('{"input_lens": [1]}')
    assert expanded(str(path)) == str(path)
    for text in ("gamma:cv=3", "nowhere.toml", "trace.csv"):
        assert expanded(text) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cv = 3", "field generator: give the generator's name"),
        ('generator = "gamma"\ncv = [3]', r"field cv: \[3\] is neither a number nor a text"),
        ('generator = "gamma"\ncv = true', "field cv: True is neither"),
        ('generator = "gamma"\nlengths = "r1,r1"', "field lengths: 'r1,r1' must not be empty or hold a comma"),
        ('generator = "gamma"\nclasses = ""', "field classes: '' must not be empty"),
        ('generator = "gamma"\nlengths = ["r1"]', r"lengths\[0\]: must be a table with a name"),
        ('generator = "gamma"\nlengths = [{share = 1}]', r"lengths\[0\]: must be a table with a name"),
        ('generator = "gamma"\nclasses = [{name = "a+b"}]', r"classes\[0\]: field name: 'a\+b' must not hold '\+'"),
        ('generator = "gamma"\nclasses = [{name = "a b"}]', r"classes\[0\]: field name: 'a b' must be one word"),
        ('generator = "gamma"\nlengths = [{name = "r1", share = []}]', r"lengths\[0\]: field share: \[\] is neither"),
        ("generator = ", "mix.toml: "),
    ],
)
def test_mistakes_in_the_file(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mix.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        expanded(str(path))
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_mistakes_in_values_are_the_generators(tmp_path: Path) -> None:
    path = tmp_path / "mix.toml"
    path.write_text('generator = "gama"\n')
    with pytest.raises(UserError, match="'gamma'"):
        load(str(path))
    path.write_text('generator = "gamma"\nlengths = [{name = "r2"}]\n')
    with pytest.raises(UserError, match="unknown lengths 'r2'"):
        load(str(path))
