"""Classes and objectives laid over a workload."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tailrace.errors import UserError
from tailrace.workloads import PRESETS, Service, Workload, generate, promised

INF = np.inf


def three() -> Workload:
    """Three requests of classes gold, basic, gold; the first two bring objectives."""
    return Workload.of(
        [0.0, 1.0, 2.0],
        [10, 10, 10],
        [5, 5, 5],
        name="three",
        class_names=("gold", "basic"),
        class_id=[0, 1, 0],
        ttft_slo_s=[3.0, 4.0, INF],
        tpot_slo_s=[0.3, INF, INF],
    )


@pytest.mark.parametrize(
    ("text", "ttft", "tpot"),
    [
        ("", [3, 4, INF], [0.3, INF, INF]),
        ("ttft_s=1,tpot_s=0.05", [1, 1, 1], [0.05] * 3),
        ("ttft_s=1", [1, 1, 1], [0.3, INF, INF]),
        ("tpot_s=none", [3, 4, INF], [INF] * 3),
        ("chat", [1, 1, 1], [0.05] * 3),
        ("none", [INF] * 3, [INF] * 3),
        ("basic:none", [3, INF, INF], [0.3, INF, INF]),
        ("gold:ttft_s=0.5,tpot_s=0.05 + basic:ttft_s=1e+1", [0.5, 10, 0.5], [0.05, INF, 0.05]),
        ("basic:mlperf-405b+chat", [1, 6, 1], [0.05, 0.175, 0.05]),
    ],
)
def test_objectives_replace_those_they_name(text: str, ttft: list[float], tpot: list[float]) -> None:
    found = promised(three(), Service(slo=text))
    assert found.ttft_slo_s.tolist() == ttft
    assert found.tpot_slo_s.tolist() == tpot
    assert found.description.get("slo", "") == text
    assert (found.digest() == three().digest()) == (text == "")


def test_a_scale_multiplies_the_workloads_own_too() -> None:
    found = promised(three(), Service(slo="basic:chat", slo_scale=0.5))
    assert found.ttft_slo_s.tolist() == [1.5, 0.5, INF]
    assert found.tpot_slo_s.tolist() == [0.15, 0.025, INF]
    assert found.description["slo_scale"] == 0.5
    assert promised(three(), Service(slo_scale=2.0)).ttft_slo_s.tolist() == [6, 8, INF]


def test_classes_are_drawn_by_the_workloads_seed_and_replace_its_own() -> None:
    mix = "high@0.5 weight=2 ttft_slo_s=0.5 + low@0.5"
    plain = generate("poisson", {"requests": 20_000, "seed": 4})
    found = promised(plain, Service(classes=mix))
    assert found.class_names == ("high", "low")
    assert found.class_weights == (2.0, 1.0)
    assert found.class_id.mean() == pytest.approx(0.5, abs=0.015)
    assert (found.ttft_slo_s == np.where(found.class_id == 0, 0.5, INF)).all()
    np.testing.assert_array_equal(found.prompt_tokens, plain.prompt_tokens)
    own = generate("poisson", {"requests": 20_000, "seed": 4, "classes": mix})
    assert found.digest() == own.digest()
    other = promised(generate("poisson", {"requests": 20_000, "seed": 5}), Service(classes=mix))
    assert 0.45 < (other.class_id == found.class_id).mean() < 0.55
    assert promised(three(), Service(classes="a+b")).class_weights == (1.0, 1.0)


def test_objectives_may_name_the_drawn_classes() -> None:
    found = promised(three(), Service("a@1 + b@0", "a:chat"))
    assert found.class_names == ("a", "b")
    assert found.ttft_slo_s.tolist() == [1.0] * 3


def test_the_weight_of_first_tokens_is_kept_for_results() -> None:
    found = promised(three(), Service(first_token_weight=5.6))
    assert found.description["first_token_weight"] == 5.6
    assert found.digest() == three().digest()


def test_presets_say_where_they_come_from() -> None:
    assert {"chat", "none"} < set(PRESETS)
    for preset in PRESETS.values():
        assert min(preset.ttft_s, preset.tpot_s) > 0
        assert preset.source


@pytest.mark.parametrize(
    ("service", "message"),
    [
        (Service(slo="chta"), "--slo 'chta': no preset 'chta' (did you mean 'chat'?); write ttft_s="),
        (Service(slo="glod:chat"), "--slo 'glod:chat': there is no class 'glod' (did you mean 'gold'?)"),
        (Service(slo="ttft=1"), "--slo 'ttft=1': no objective 'ttft' (did you mean 'ttft_s'?)"),
        (Service(slo="ttft_s=0"), "--slo 'ttft_s=0': ttft_s: 0 must be finite and above 0"),
        (Service(slo="gold:tpot_s=fast"), "tpot_s: 'fast' is not a number"),
        (Service(slo="ttft_s=1,0.05"), "--slo 'ttft_s=1,0.05': write ttft_s=1,tpot_s=0.05, a preset, or CLASS:… + …"),
        (Service(slo="ttft_s=1,ttft_s=2"), "'ttft_s' is given twice"),
        (Service(slo="chat+ttft_s=1"), "objectives of all classes are given twice"),
        (Service(slo="gold:chat+gold:none"), "objectives of class 'gold' are given twice"),
        (Service(slo="chat+"), "--slo '': no preset ''"),
        (Service(slo="none", slo_scale=0.5), "this workload sets no SLOs; give --slo"),
        (Service(slo_scale=0), "--slo-scale 0 must be above 0"),
        (Service(slo_scale=INF), "--slo-scale inf must be above 0 and finite"),
        (Service(first_token_weight=-1), "--first-token-weight -1 must be above 0"),
        (
            Service(classes="a@0.5 wieght=2 + b"),
            "workload three: classes: a: unknown setting 'wieght' (did you mean 'weight'?)",
        ),
    ],
)
def test_a_mistake_is_one_line(service: Service, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as error:
        promised(three(), service)
    assert "\n" not in str(error.value)
