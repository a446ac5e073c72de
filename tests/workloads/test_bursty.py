from __future__ import annotations

import numpy as np
import pytest

from tailrace.workloads import generate


def test_gamma_of_cv_1_is_poisson() -> None:
    assert generate("gamma").digest() == generate("poisson").digest()


@pytest.mark.parametrize(
    ("name", "given", "rates"),
    [
        ("gamma", {"cv": 3}, {"rate_rps": 4}),
        ("onoff", {}, {"on_rps": 16, "off_rps": 1, "on_s": 1 / 10, "off_s": 1 / 30}),
        ("spikes", {}, {"base_rps": 2, "spike_rps": 50, "spike_s": 1 / 2, "gap_s": 1 / 60}),
    ],
)
def test_rates_stretch_arrivals_and_leave_lengths(name: str, given: dict[str, float], rates: dict[str, float]) -> None:
    slow = generate(name, given)
    scaled = {key: (1 / (2 * value) if key.endswith("_s") else 2 * value) for key, value in rates.items()}
    fast = generate(name, {**given, **scaled})
    np.testing.assert_allclose(slow.arrival_s, 2 * fast.arrival_s, rtol=1e-9)
    assert (slow.prompt_tokens == fast.prompt_tokens).all()
    np.testing.assert_allclose(slow.scaled(2.0).arrival_s, fast.arrival_s, rtol=1e-9)


@pytest.mark.parametrize("name", ["gamma", "onoff", "spikes"])
def test_fewer_requests_are_the_first_of_more(name: str) -> None:
    mixed = {"lengths": "azure-conv@drift:1:0:60+r1", "classes": "a+b", "tenants": "x+y@3"}
    few, many = (generate(name, {**mixed, "requests": n}) for n in (50, 500))
    for field in ("arrival_s", "prompt_tokens", "output_tokens", "class_id", "tenant"):
        assert (getattr(few, field) == getattr(many, field)[:50]).all()


def test_prefixes_come_with_every_generator() -> None:
    workload = generate("spikes", {"requests": 20, "prefix_groups": 2, "prefix_tokens": 32, "lengths": "constant:5:1"})
    assert workload.prefix is not None
    assert set(workload.prompt_tokens) == {37}
