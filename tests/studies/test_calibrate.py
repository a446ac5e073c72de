"""A fit knows its error on what it has not seen."""

from __future__ import annotations

import numpy as np
import pytest

from tailrace.errors import UserError
from tailrace.latency import ProfiledParams, Sample, build, mape, split, step_seconds, step_shape
from tailrace.studies import calibrate

pytestmark = pytest.mark.plain

TRUE = ProfiledParams(0.009, 2e-9, 4e-9, 1e-4, 1e-7, 7e-8, 2e-5)


def _samples(noise: float, count: int = 400) -> list[Sample]:
    rng, samples = np.random.default_rng(1), []
    for _ in range(count):
        chunks = [(int(rng.integers(1, 2048)), int(rng.integers(0, 9000))) for _ in range(rng.integers(0, 3))]
        shape = step_shape(chunks, [(1, int(rng.integers(1, 9000))) for _ in range(rng.integers(1, 99))])
        samples.append((shape, step_seconds(shape, TRUE) * float(np.exp(noise * rng.standard_normal()))))
    return samples


def test_coefficients_come_back_and_the_text_makes_the_model() -> None:
    found = calibrate.fit(_samples(0.0))
    assert found.cost == pytest.approx(TRUE, rel=1e-6)
    assert found.held_out["all"].mape < 1e-9
    assert build(found.text).cost == pytest.approx(found.cost, rel=1e-14)
    assert set(found.show()) == {"latency", "coefficients", "fitted", "held_out"}


def test_held_out_steps_are_not_fitted_to() -> None:
    samples = _samples(0.1)
    kept, held = split(samples, 0.4, 7)
    found = calibrate.fit(samples, 0.4, 7)
    assert found.held_out["all"].steps == 160
    assert found.held_out["all"].mape == pytest.approx(mape(held, found.cost))
    other = [(shape, seconds * 3) for shape, seconds in held]  # what is held out does not change the fit
    again = calibrate.fit([dict(zip(map(id, held), other, strict=True)).get(id(s), s) for s in samples], 0.4, 7)
    assert again.cost == found.cost
    assert again.fitted == found.fitted
    assert again.held_out["all"].mape > 0.5
    assert len(kept) == found.fitted["all"].steps


def test_too_few_steps_are_refused() -> None:
    with pytest.raises(UserError, match="too few to fit"):
        calibrate.fit(_samples(0.0, 8))
