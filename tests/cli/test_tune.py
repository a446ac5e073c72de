"""`tailrace tune` as a user meets it."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

import pytest

from tailrace.cli import main

SMALL = ("qba:requests=200,rate_rps=34", "--engine", "qba", "--policies", "fcfs,psf", "--jobs", "1")


def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["tailrace", "tune", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0), *capsys.readouterr()


def test_it_prints_the_front_and_what_to_paste(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("front.svg", "front.png"):
        code, out, err = call(capsys, monkeypatch, *SMALL, "--plot", str(tmp_path / name))
        assert (code, err) == (0, "")
        assert '--additional-config \'{"tailrace": ' in out
        assert "►" in out
    svg = (tmp_path / "front.svg").read_text()
    assert svg.count("<svg") == 1
    assert "psf" in svg
    width, height = struct.unpack(">II", (tmp_path / "front.png").read_bytes()[16:24])
    assert width >= 1000
    assert height > 0
    code, out, _ = call(capsys, monkeypatch, *SMALL, "--objective", "e2e.mean", "--plot", str(tmp_path / "one.svg"))
    assert code == 0
    assert "e2e.mean" in (tmp_path / "one.svg").read_text()


def test_json_is_one_object(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = call(capsys, monkeypatch, *SMALL, "--json", "--objective", "e2e.p99,output_tokens_per_s")
    found = json.loads(out)
    assert code == 0
    assert [o["better"] for o in found["objectives"]] == ["smaller", "larger"]
    assert {s["label"] for s in found["settings"]} == {"fcfs", "psf"}
    assert json.loads(found["best"]["additional_config"])["tailrace"]["policy"] == found["best"]["label"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--objective", "e2e.p98"), "no statistic 'p98'"),
        (("--objective", "class=gold.e2e.p99"), "there are default"),
        (("--policies", "fcfs,qba:k=0|2"), "k=0 is outside"),
        (("--plot", "front.pdf"), "written as .png or .svg"),
        (("--plot", "missing.txt/front.svg"), "missing.txt"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: tuple[str, str],
    why: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "missing.txt").touch()
    code, _, err = call(capsys, monkeypatch, *SMALL, *arguments)
    assert code == 2
    assert why in err
    assert len(err.strip().splitlines()) == 1
