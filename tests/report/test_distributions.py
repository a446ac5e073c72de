from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tailrace.errors import UserError
from tailrace.report.distributions import density, write_plot
from tailrace.workloads import Workload, generate


def test_density_counts_every_request_once() -> None:
    tokens = np.random.default_rng(1).lognormal(5, 1, 10_000).astype(np.int64) + 1
    edges, percent = density(tokens)
    assert np.sum(percent * np.diff(np.log2(edges))) == pytest.approx(100)
    assert (edges[0], edges[-1]) == (tokens.min() - 0.5, tokens.max() + 0.5)
    assert (np.diff(edges) >= 1).all()  # each bin holds a whole number
    # A lognormal of sigma 1 has density ln 2/√(2π) at its median, in shares a doubling.
    assert percent.max() == pytest.approx(100 * np.log(2) / np.sqrt(2 * np.pi), rel=0.1)


@pytest.mark.parametrize("tokens", [[7, 7], [1, 2], [1, 2**31]])
def test_odd_lengths_can_be_drawn(tokens: list[int], tmp_path: Path) -> None:
    edges, percent = density(np.array(tokens))
    assert np.sum(percent * np.diff(np.log2(edges))) == pytest.approx(100)
    write_plot(Workload.of([0, 1], tokens, tokens, name="x"), tmp_path / "x.svg")


def test_the_picture_says_what_it_shows(tmp_path: Path) -> None:
    workload = generate("gamma", {"lengths": "azure-conv", "requests": 5000})
    path = write_plot(workload, tmp_path / "x.svg")
    text = path.read_text()
    for label in ("gamma", "5,000 requests", "prompt tokens", "output tokens", "mean ", "P50 ", "P95 ", "P99 "):
        assert label in text
    assert f"mean {workload.output_tokens.mean():,.0f}" in text
    assert "%" in text


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_same_workload_same_bytes(tmp_path: Path, suffix: str) -> None:
    workload = generate("qba", {"requests": 500})
    first, second = (write_plot(workload, tmp_path / f"{name}.{suffix}").read_bytes() for name in "ab")
    assert first == second
    if suffix == "png":
        width, height = (int.from_bytes(first[at : at + 4], "big") for at in (16, 20))
        assert (width, height) == (2000, 1280)


def test_mistakes(tmp_path: Path) -> None:
    workload = generate("qba", {"requests": 5})
    with pytest.raises(UserError, match=r"a plot is written as \.png or \.svg"):
        write_plot(workload, tmp_path / "x.pdf")
    (tmp_path / "x.png").mkdir()
    with pytest.raises(UserError, match="is a folder"):
        write_plot(workload, tmp_path / "x.png")
