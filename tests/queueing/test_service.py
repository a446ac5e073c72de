"""Service times from tokens, eq. 1-4, and their fits."""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.errors import UserError
from tailrace.queueing import (
    DiscreteService,
    Moments,
    Service,
    decode_kv_tokens,
    effective_servers,
    safe_servers,
)


def tokens(n: int = 400, seed: int = 0) -> tuple[Any, Any]:
    """Lengths that go together, as the paper's do."""
    rng = np.random.default_rng(seed)
    prompt = np.ceil(rng.lognormal(4.5, 0.8, n))
    return prompt, np.ceil(np.exp(3 + 0.75 * np.log1p(prompt)) * rng.lognormal(0.0, 0.3, n))


@settings(deadline=None)
@given(st.floats(0, 1), st.floats(1e-6, 1e-2), st.floats(1e-6, 1e-2))
def test_the_moments_are_those_of_the_seconds(s0: float, alpha: float, beta: float) -> None:
    """Eq. 3 and 4, with E[PD], against the sample itself."""
    prompt, output = tokens(50)
    service = Service(s0, alpha, beta)
    by_equation, by_sample = service.moments(prompt, output), Moments.of(service.seconds(prompt, output))
    assert by_equation.mean == pytest.approx(by_sample.mean, rel=1e-12)
    assert by_equation.second == pytest.approx(by_sample.second, rel=1e-12)


def test_by_hand() -> None:
    assert Service(1.0, 0.5, 2.0).seconds([2, 4], [1, 3]).tolist() == [4.0, 9.0]
    service = DiscreteService(1.0, 0.5, 2.0, chunk_tokens=128, block_tokens=8)
    assert service.seconds([128, 129, 1], [8, 9, 1]).tolist() == [3.5, 6.0, 3.5]
    assert service.moments([128, 129], [8, 9]) == Moments(4.75, (3.5**2 + 6**2) / 2)


def test_a_fit_finds_the_line_it_was_drawn_from() -> None:
    prompt, output = tokens()
    seconds = Service(0.02, 3e-5, 4e-4).seconds(prompt, output)
    fitted = Service.fit(prompt, output, seconds)
    assert (fitted.s0_s, fitted.alpha_s, fitted.beta_s) == pytest.approx((0.02, 3e-5, 4e-4), rel=1e-9)
    assert Service.observe(prompt, output, seconds).r_squared == pytest.approx(1.0)


def test_a_fit_is_the_librarys_least_squares_and_keeps_the_mean() -> None:
    prompt, output = tokens()
    rng = np.random.default_rng(1)
    seconds = Service(0.02, 3e-5, 4e-4).seconds(prompt, output) * rng.uniform(0.5, 1.5, len(prompt))
    design = np.column_stack([np.ones(len(prompt)), prompt, output])
    expected, rest, _, _ = np.linalg.lstsq(design, seconds)
    fitted = Service.fit(prompt, output, seconds)
    assert [fitted.s0_s, fitted.alpha_s, fitted.beta_s] == pytest.approx(expected, rel=1e-9)
    assert fitted.moments(prompt, output).mean == pytest.approx(seconds.mean(), rel=1e-12)
    r_squared = 1 - rest[0] / ((seconds - seconds.mean()) ** 2).sum()
    assert Service.observe(prompt, output, seconds).r_squared == pytest.approx(r_squared)
    assert r_squared < 0.95


def test_traces_add_up() -> None:
    parts = []
    for seed in range(5):
        prompt, output = tokens(40 + seed, seed)
        parts.append((prompt, output, output * 1e-3 + np.random.default_rng(seed).uniform(0, 0.1, len(output))))
    whole = Service.fit(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    added = Service.solve(reduce(add, (Service.observe(*part) for part in parts)))
    assert [added.s0_s, added.alpha_s, added.beta_s] == pytest.approx([whole.s0_s, whole.alpha_s, whole.beta_s])
    assert reduce(add, (Service.observe(*part) for part in parts)).count == sum(len(p) for p, _, _ in parts)


def test_three_requests_are_enough_and_two_are_not() -> None:
    fitted = Service.fit([1, 2, 1], [1, 1, 2], [4.0, 5.0, 6.0])
    assert (fitted.s0_s, fitted.alpha_s, fitted.beta_s) == pytest.approx((1.0, 1.0, 2.0))
    with pytest.raises(UserError, match=r"^2 samples are too few to fit s0_s, alpha_s, beta_s: at least 3$"):
        Service.fit([1, 2], [1, 3], [4.0, 5.0])


@pytest.mark.parametrize(
    ("prompt", "output", "name"),
    [
        ([50] * 6, [1, 2, 3, 4, 5, 6], "alpha_s from s0_s"),
        ([1, 2, 3, 4, 5, 6], [7] * 6, "beta_s from s0_s, alpha_s"),
        ([1, 2, 3, 4, 5, 6], [13, 16, 19, 22, 25, 28], "beta_s from s0_s, alpha_s"),
        ([0] * 6, [1, 2, 3, 4, 5, 6], "alpha_s from s0_s"),
    ],
)
def test_lengths_that_do_not_vary_by_themselves(prompt: list[int], output: list[int], name: str) -> None:
    with pytest.raises(UserError, match=f"do not vary enough to tell {name};"):
        Service.fit(prompt, output, np.arange(1.0, 7.0))


def test_a_discrete_fit_finds_its_coefficients() -> None:
    prompt, output = tokens()
    truth = DiscreteService(0.01, 0.003, 0.004, 128, 8)
    given_ = truth.seconds(prompt, output)
    fitted = DiscreteService.fit(prompt, output, given_, chunk_tokens=128, block_tokens=8)
    assert (fitted.s0_s, fitted.chunk_s, fitted.block_s) == pytest.approx((0.01, 0.003, 0.004), rel=1e-9)
    with pytest.raises(UserError, match=r"to tell chunk_s from s0_s"):
        DiscreteService.fit(prompt, output, given_, chunk_tokens=1 << 20, block_tokens=8)


def test_effective_servers() -> None:
    """The paper's engine: B/q = 16, and 0.7·8192 tokens of KV."""
    assert effective_servers(128, 8, 100) == 16
    assert effective_servers(128, 8, 9) == 9
    assert effective_servers(4, 8, 9) == 1
    assert safe_servers(8192, 0.7, 612.0) == 9
    assert safe_servers(100, 0.7, 612.0) == 1


def test_kv_of_a_decoding_request() -> None:
    """Token by token: with P = 10 and D = 4 it holds 10.5, 11.5, 12.5, 13.5 on average."""
    assert decode_kv_tokens([10], [4]) == 12.0
    assert decode_kv_tokens([10, 100], [4, 400]) == pytest.approx((4 * 12 + 400 * 300) / 404)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UserError, match=r"^beta_s="):
        Service(0.0, 0.0, math.nan)
    with pytest.raises(UserError, match=r"^mean="):
        Service(-1.0, 0.0, 0.0).moments([1], [1])
    with pytest.raises(UserError, match=r"^output_tokens: 1 values for 2 of prompt_tokens"):
        Service(1.0, 0.0, 0.0).seconds([1, 2], [1])
    with pytest.raises(UserError, match=r"^prompt_tokens: must be a list of numbers"):
        Service(1.0, 0.0, 0.0).seconds(["many"], [1])
    with pytest.raises(UserError, match=r"^seconds: nan at position 1 .* did not finish"):
        Service.fit([1, 2, 3], [1, 3, 2], [1.0, math.nan, 1.0])
    with pytest.raises(UserError, match=r"^chunk_tokens=0"):
        DiscreteService(0.0, 1.0, 1.0, 0, 8)
    with pytest.raises(UserError, match=r"^safety=1.5"):
        safe_servers(8192, 1.5, 600)
    with pytest.raises(UserError, match=r"^output_tokens' sum=0.0"):
        decode_kv_tokens([10], [0])
