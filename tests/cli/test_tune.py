"""`tailrace tune` as a user meets it."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest

SMALL = ("qba:requests=200,rate_rps=34", "--engine", "qba", "--policies", "fcfs,psf", "--jobs", "1")


def test_it_prints_the_front_and_what_to_paste(tailrace: Any, tmp_path: Path) -> None:
    for name in ("front.svg", "front.png"):
        code, out, err = tailrace("tune", *SMALL, "--plot", name)
        assert (code, err) == (0, "")
        assert '--additional-config \'{"tailrace": ' in out
        assert "►" in out
    svg = (tmp_path / "front.svg").read_text()
    assert svg.count("<svg") == 1
    assert "psf" in svg
    width, height = struct.unpack(">II", (tmp_path / "front.png").read_bytes()[16:24])
    assert width >= 1000
    assert height > 0
    assert tailrace("tune", *SMALL, "--objective", "e2e.mean", "--plot", "one.svg").code == 0
    assert "e2e.mean" in (tmp_path / "one.svg").read_text()


def test_json_is_one_object(tailrace: Any) -> None:
    code, out, _ = tailrace("tune", *SMALL, "--json", "--objective", "e2e.p99,output_tokens_per_s")
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
        (("--plot", f"{os.devnull}/front.svg"), os.devnull),
    ],
)
def test_a_mistake_is_one_line(arguments: tuple[str, str], why: str, refused: Any) -> None:
    refused(("tune", *SMALL, *arguments), why)
