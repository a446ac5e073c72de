"""The model as a whole: what it puts together, its order of policies, and its refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.errors import UserError
from tailrace.queueing import (
    Curve,
    Moments,
    Surrogate,
    allen_cunneen,
    predicted_moments,
    predicted_rates,
    promoted,
    two_class,
)

SHORT, LONG = Moments(0.25, 0.07), Moments(0.7, 0.5)
AGED, QUOTA = Curve.of([(0.5, 0.1), (0.9, 0.9)]), Curve((0.0,), (0.2,))
MODEL = Surrogate(SHORT, LONG, 0.15, 10, {"aa": AGED, "qba": QUOTA})


def test_each_policy_is_its_formula() -> None:
    rate, scv = 28.0, 2.9
    model = Surrogate(SHORT, LONG, 0.15, 10, MODEL.phi, scv)
    assert model.utilisation(rate) == pytest.approx(28 * (0.85 * 0.25 + 0.15 * 0.7) / 10)
    assert model.capacity_rps == pytest.approx(10 / 0.3175)
    classes = (0.85 * rate, SHORT, 0.15 * rate, LONG, 10)
    assert model.wait_s("fcfs", rate) == pytest.approx(allen_cunneen(rate, model.moments, 10, scv))
    assert model.waits("psf", rate) == pytest.approx(two_class(*classes, scv))
    assert model.waits("aa", rate) == pytest.approx(promoted(*classes, AGED.at(0.889), scv))
    assert model.waits("qba", rate) == pytest.approx(promoted(*classes, 0.2, scv))


def test_under_fcfs_classes_wait_alike() -> None:
    waits = MODEL.waits("fcfs", 28.0)
    assert waits is not None
    assert waits.short_s == waits.long_s == waits.mean_s > 0


def test_response_is_service_and_wait() -> None:
    wait = MODEL.wait_s("psf", 28.0)
    assert wait is not None
    assert MODEL.response_s("psf", 28.0) == pytest.approx(0.3175 + wait)
    assert MODEL.response_s("fcfs", 0.0) == pytest.approx(0.3175)


def test_no_value_past_capacity() -> None:
    for policy in ("fcfs", "psf", "aa", "qba"):
        assert MODEL.wait_s(policy, MODEL.capacity_rps * 0.999) is not None
        for rate in (MODEL.capacity_rps * 1.001, 99.0):
            assert MODEL.wait_s(policy, rate) is None
            assert MODEL.response_s(policy, rate) is None
            assert MODEL.waits(policy, rate) is None


@settings(deadline=None)
@given(st.floats(0.1, 31.0), st.floats(0, 1))
def test_the_papers_order(rate: float, phi: float) -> None:
    """§IV-B: every prediction-guided policy lies between psf and fcfs, and more promotion is nearer to fcfs."""
    model = Surrogate(SHORT, LONG, 0.15, 10, {"aa": Curve((0.0,), (phi,)), "qba": Curve((0.0,), (phi / 2,))})
    waits = [model.wait_s(policy, rate) for policy in ("psf", "qba", "aa", "fcfs")]
    known = [wait for wait in waits if wait is not None]
    assert len(known) == 4
    assert known == pytest.approx(sorted(known), rel=1e-9)


def test_from_a_trace() -> None:
    rng = np.random.default_rng(0)
    long = rng.random(500) < 0.2
    seconds = np.where(long, 2.0, 1.0) + rng.random(500)
    model = Surrogate.of(seconds, long, 4, {"qba": QUOTA})
    assert model.share_long == pytest.approx(long.mean())
    assert model.long == Moments.of(seconds[long])
    assert model.moments.second == pytest.approx((seconds**2).mean())
    assert model.phi["qba"] is QUOTA


def test_a_trace_of_one_class() -> None:
    model = Surrogate.of([1.0, 2.0, 3.0], [0, 0, 0], 4)
    assert model.share_long == 0
    assert model.wait_s("psf", 1.5) == pytest.approx(model.wait_s("fcfs", 1.5))


def test_label_errors_take_the_gain_of_short_first() -> None:
    """At ε_SL + ε_LS = 1 the labels say nothing: short first is then no better than fcfs."""
    waits = []
    for eps in (0.0, 0.2, 0.5):
        short, long = predicted_moments(0.15, eps, eps, SHORT, LONG)
        model = Surrogate(short, long, predicted_rates(1.0, 0.15, eps, eps).long, 10)
        assert model.moments.mean == pytest.approx(0.3175)
        waits.append(model.wait_s("psf", 30.0))
    assert waits[0] < waits[1] < waits[2]  # type: ignore[operator]
    assert waits[2] == pytest.approx(MODEL.wait_s("fcfs", 30.0))


def test_what_cannot_be_is_refused() -> None:
    for policy in ("aa", "qba"):
        with pytest.raises(UserError, match=f"^policy {policy}: phi has no curve for it; give Curve.of"):
            Surrogate(SHORT, LONG, 0.15, 10).wait_s(policy, 1.0)
    with pytest.raises(UserError, match=r"^unknown policy 'fcsf' \(did you mean 'fcfs'\?\)"):
        MODEL.wait_s("fcsf", 1.0)
    with pytest.raises(UserError, match=r"^phi: psf promotes nobody"):
        Surrogate(SHORT, LONG, 0.15, 10, {"psf": QUOTA})
    with pytest.raises(UserError, match=r"^share_long=2"):
        Surrogate(SHORT, LONG, 2, 10)
    with pytest.raises(UserError, match=r"^predicted_long: must be true or false"):
        Surrogate.of([1.0, 2.0], [0, 3], 4)
    with pytest.raises(UserError, match=r"^predicted_long: 1 values for 2 of seconds"):
        Surrogate.of([1.0, 2.0], [0], 4)
