"""The fit finds the coefficients that made the samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tailrace.errors import UserError
from tailrace.latency import (
    ProfiledParams,
    StepShape,
    fit_features,
    fit_profiled,
    mape,
    preset,
    step_features,
    step_seconds,
    step_shape,
)

TRUE = ProfiledParams(0.009, 2e-9, 4e-9, 1e-4, 1e-7, 7e-8, 2e-5)
Sample = tuple[StepShape, float]


def _samples(cost: Any, count: int, noise: float, seed: int = 1, m: int = 1) -> list[Sample]:
    rng = np.random.default_rng(seed)
    samples = []
    for _ in range(count):
        chunks = [(int(rng.integers(1, 2048)), int(rng.integers(0, 16_384))) for _ in range(rng.integers(0, 3))]
        decodes = [(m, int(rng.integers(1, 16_384))) for _ in range(rng.integers(1, 128))]
        shape = step_shape(chunks, decodes)
        samples.append((shape, step_seconds(shape, cost) * float(np.exp(noise * rng.standard_normal()))))
    return samples


@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("m", [1, 4])
def test_exact_samples_give_the_exact_coefficients(relative: bool, m: int) -> None:
    samples = _samples(TRUE, 200, 0.0, m=m)
    found = fit_profiled(samples, relative=relative)
    assert found == pytest.approx(TRUE, rel=1e-6)
    assert mape(samples, found) < 1e-9


def test_noisy_samples_give_nearly_the_coefficients() -> None:
    found = fit_profiled(_samples(TRUE, 3000, 0.05))
    for name in ("constant_s", "prefill_cross_s", "prefill_token_s", "decode_kv_s"):
        assert getattr(found, name) == pytest.approx(getattr(TRUE, name), rel=0.1), name
    # Mean |N(0, 0.05)| is 0.04: no model can do better on fresh samples, this one hardly worse.
    assert mape(_samples(TRUE, 1000, 0.05, seed=2), found) == pytest.approx(0.04, abs=0.005)


def test_times_that_vary_are_estimated_in_the_mean() -> None:
    spread = float(np.sqrt(np.log1p(0.15**2)))  # a factor of mean 1 and a coefficient of variation of 15 %
    noisy = [(shape, seconds * float(np.exp(-spread * spread / 2))) for shape, seconds in _samples(TRUE, 4000, spread)]
    found, true = fit_profiled(noisy), [(shape, step_seconds(shape, TRUE)) for shape, _ in noisy]
    # Relative to the measured times alone it would be 4.4 % too low.
    assert np.mean([step_seconds(shape, found) / seconds for shape, seconds in true]) == pytest.approx(1, abs=0.01)


def test_relative_errors_serve_short_steps_better() -> None:
    samples = _samples(TRUE, 300, 0.2)
    assert mape(samples, fit_profiled(samples)) < mape(samples, fit_profiled(samples, relative=False)) + 1e-3


def test_a_derived_preset_survives_the_fit() -> None:
    cost = preset("llama-3-8b-a100-derived").cost
    assert fit_profiled(_samples(cost, 200, 0.0)) == pytest.approx(cost, rel=1e-5, abs=1e-15)


def test_what_no_sample_has_gets_zero() -> None:
    shapes = [step_shape(decodes=[(1, 100 * kv)] * n) for n in (1, 5, 20) for kv in (1, 7, 30)]
    found = fit_profiled([(shape, step_seconds(shape, TRUE)) for shape in shapes])
    assert found == pytest.approx(ProfiledParams(0.009, decode_kv_s=7e-8, decode_seq_s=2e-5), rel=1e-6)


def test_no_coefficient_is_negative() -> None:
    rng = np.random.default_rng(3)
    samples = [(shape, float(rng.uniform(0.01, 0.02))) for shape, _ in _samples(TRUE, 60, 0.0)]
    assert min(fit_profiled(samples)) >= 0.0


SHAPE = step_shape([(10, 5)], [(1, 7)])


@pytest.mark.parametrize(
    ("samples", "says"),
    [
        ([], "0 samples are too few"),
        ([(SHAPE, 0.01)] * 5, "5 samples are too few to fit 7"),
        ([(SHAPE, 0.01)] * 20, "do not vary enough to tell prefill_sq_s"),
        ([(SHAPE, 0.0)], "sample 1: seconds=0.0 must be positive"),
        ([(SHAPE, 0.1), (SHAPE, float("nan"))], "sample 2: seconds=nan"),
        ([(SHAPE._replace(decode_kv=-1), 0.1)], "decode_kv=-1 must be at least 0"),
        ([(SHAPE._replace(tokens=99), 0.1)], "tokens=99 must be prefill_tokens"),
        ([(SHAPE._replace(seqs=9), 0.1)], "seqs=9 must be prefill_seqs"),
        ([(SHAPE._replace(seqs=1, decode_seqs=0), 0.1)], "decode_seqs=0 cannot make"),
        ([(step_shape(), 0.1)], "tokens=0 must be"),
        ([((1, 2), 0.1)], "must be (StepShape of 10 numbers, seconds)"),
        ([3], "must be (StepShape of 10 numbers, seconds)"),
        ([(SHAPE, "soon")], "must be (StepShape of 10 numbers, seconds)"),
    ],
)
def test_bad_samples_are_one_clear_line(samples: Any, says: str) -> None:
    with pytest.raises(UserError) as caught:
        fit_profiled(samples)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_mape_by_hand() -> None:
    cost = ProfiledParams(0.011)
    assert mape([(SHAPE, 0.01), (SHAPE, 0.011)], cost) == pytest.approx(0.05)
    with pytest.raises(UserError, match="no samples"):
        mape([], cost)


def _fit_features(shapes: list[StepShape], true: ProfiledParams) -> ProfiledParams:
    seconds = np.array([step_seconds(shape, true) for shape in shapes])
    return fit_features(np.array([step_features(shape) for shape in shapes], dtype=float), seconds, 1.0 / seconds)


def test_what_steps_cannot_tell_apart_goes_to_the_plainer_coefficient() -> None:
    """Chunks of one size: squared or not, the constant and the tokens explain all."""
    true = ProfiledParams(1e-3, prefill_sq_s=1e-6, decode_kv_s=1e-6, decode_seq_s=1e-5)
    shapes = [step_shape([(64, 0)] * (i % 3), [(1, 10 * (i % 7 + 1))] * (i % 5 + 1)) for i in range(40)]
    found = _fit_features(shapes, true)
    assert found.prefill_sq_s == 0
    np.testing.assert_allclose(found.prefill_token_s, 64e-6, rtol=1e-6)
    assert mape([(shape, step_seconds(shape, true)) for shape in shapes], found) < 1e-6


def test_one_step_is_a_constant() -> None:
    assert _fit_features([step_shape([], [(1, 5)])], ProfiledParams(0.25)) == ProfiledParams(0.25)
