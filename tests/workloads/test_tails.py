from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tailrace.table import F8
from tailrace.workloads import generate, load
from tailrace.workloads.tails import tail

Make = Callable[[np.random.Generator, int], F8]
LIGHT: dict[str, Make] = {
    "lognormal 0.3": lambda rng, n: rng.lognormal(7, 0.3, n),
    "lognormal 0.6": lambda rng, n: rng.lognormal(8.4, 0.6, n),
    "exponential": lambda rng, n: 1 + rng.exponential(300, n),
    "uniform": lambda rng, n: 1 + 1000 * rng.random(n),
    "normal": lambda rng, n: np.maximum(rng.normal(500, 100, n), 1),
}
HEAVY: dict[str, Make] = {
    "lognormal 1.3": lambda rng, n: rng.lognormal(5, 1.3, n),
    "lognormal 2": lambda rng, n: rng.lognormal(5, 2, n),
    "pareto 1.4": lambda rng, n: 40 * (1 + rng.pareto(1.4, n)),
    "pareto 2.5": lambda rng, n: 40 * (1 + rng.pareto(2.5, n)),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", [*LIGHT, *HEAVY])
def test_known_tails(name: str, seed: int) -> None:
    make = LIGHT.get(name) or HEAVY[name]
    found = tail(np.rint(make(np.random.default_rng(seed), 20_000)).clip(1))
    assert found.verdict == ("light" if name in LIGHT else "heavy"), found


@pytest.mark.parametrize("alpha", [1.4, 2.5, 4.0])
def test_the_index_of_a_pareto(alpha: float) -> None:
    found = tail(40 * (1 + np.random.default_rng(1).pareto(alpha, 100_000)))
    assert found.interval[0] - 0.01 < 1 / alpha < found.interval[1] + 0.01
    assert found.index_top_5 == pytest.approx(1 / alpha, abs=0.06)


def test_the_interval_holds_what_it_says() -> None:
    inside = 0
    for seed in range(200):
        low, high = tail(1 + np.random.default_rng(seed).pareto(2.0, 2000)).interval
        inside += low < 0.5 < high
    assert 0.88 < inside / 200 < 0.99


@pytest.mark.parametrize("name", [*LIGHT, *HEAVY])
def test_too_few_values_are_never_called_wrongly(name: str) -> None:
    wrong = "heavy" if name in LIGHT else "light"
    make = LIGHT.get(name) or HEAVY[name]
    for n in (1, 5, 50, 299):
        assert tail(make(np.random.default_rng(n), n)).verdict == "unclear"
    assert sum(tail(make(np.random.default_rng(s), 600)).verdict == wrong for s in range(40)) <= 2


def test_what_cannot_be_told_is_unclear() -> None:
    rng = np.random.default_rng(1)
    assert tail(rng.lognormal(5, 0.9, 3000)).verdict == "unclear"  # on the border
    both = np.where(rng.random(20_000) < 0.2, rng.lognormal(8.4, 0.6, 20_000), rng.lognormal(4.5, 0.6, 20_000))
    found = tail(both)  # P99 is far out, but the tail itself falls like an exponential's
    assert (found.verdict, found.p99_over_p50 > 50, found.index < 0.2) == ("unclear", True, True)


def test_a_cut_tail_is_unclear() -> None:
    found = tail(np.minimum(np.random.default_rng(1).lognormal(5, 1.5, 20_000), 1000))
    assert found.verdict == "unclear"
    assert "have exactly 1,000 tokens: the tail was cut there" in found.why
    # QBA's outputs are cut too, but fewer: a Pareto prompt to the power 0.75 shows.
    assert tail(generate("qba", {"requests": 20_000}).output_tokens).verdict == "heavy"


def test_constant_lengths_have_no_tail() -> None:
    assert tail([7] * 50).verdict == "light"
    assert tail([1] * 950 + list(range(2, 52))).verdict == "unclear"


def test_the_azure_trace_is_unclear(azure_trace: Path) -> None:
    found = tail(load(str(azure_trace)).output_tokens)
    assert found.verdict == "unclear"  # its top tenth is heavy, its top twentieth is not
    assert found.interval[0] > 0.2 > found.index_top_5
