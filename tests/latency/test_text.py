"""Presets, what they are derived from, and texts of the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tailrace import hooks
from tailrace.errors import UserError
from tailrace.latency import (
    DEGREES,
    DEVICES,
    MODELS,
    PRESETS,
    DeviceFigures,
    ModelFigures,
    PiecewiseParams,
    ProfiledParams,
    RooflineParams,
    build,
    derive,
    preset,
    step_seconds,
    step_shape,
)

MODEL = ModelFigures(1_000_000_000, layers=10, heads=8, kv_heads=2, head_dim=100)
DEVICE = DeviceFigures(1e12, 1e11, 10e9, mfu=0.5, mbu=0.8, overhead_s=0.001, per_seq_s=1e-5)


def test_llama_is_where_published_profiles_are() -> None:
    cost = preset("llama-3-8b-a100-derived").cost
    assert isinstance(cost, ProfiledParams)
    assert cost.constant_s == pytest.approx(9e-3, rel=0.02)
    assert cost.prefill_token_s == pytest.approx(103e-6, rel=0.01)
    assert cost.decode_seq_s == pytest.approx(20e-6, rel=0.01)
    assert cost.decode_kv_s == pytest.approx(65.5e-9, rel=0.1)


def test_derive_by_hand() -> None:
    found = derive(MODEL, DEVICE)
    assert found.roofline == pytest.approx(
        (2e9, 4.0 * 10 * 8 * 100, 2e9, 2.0 * 10 * 2 * 100 * 2, 5e11, 8e10, 1e-3, 1e-5)
    )
    assert found.kv_tokens == int((10e9 * 0.9 - 2e9 - 2e9) / 8000)
    pair = 32_000 / 5e11
    kv = 8000 / 8e10
    assert found.profiled == pytest.approx((1e-3 + 2e9 / 8e10, pair / 2, pair, 2e9 / 5e11, 0.0, kv, 1e-5 + kv))


def test_tensor_parallelism_shares_flops_bytes_and_kv() -> None:
    one, two, four = (derive(MODEL, DEVICE, tp) for tp in (1, 2, 4))
    for field in ("flops_per_token", "flops_per_pair", "weight_bytes", "kv_bytes_per_token"):
        assert getattr(two.roofline, field) == getattr(one.roofline, field) / 2
    assert four.roofline.weight_bytes == one.roofline.weight_bytes / 4
    assert four.roofline.kv_bytes_per_token == two.roofline.kv_bytes_per_token  # two KV heads on four devices
    assert one.kv_tokens < two.kv_tokens < four.kv_tokens


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_profile_has_the_roofline_s_margins(name: str) -> None:
    found = derive(MODELS[name], DEVICES["a100-80gb"], DEGREES.get(name, 1))
    assert hooks.constant_s(found.profiled) == pytest.approx(hooks.constant_s(found.roofline))
    for q, kv in ((1, 0), (512, 0), (300, 4000)):
        assert hooks.chunk_s(q, kv, found.profiled) == pytest.approx(hooks.chunk_s(q, kv, found.roofline))
        assert hooks.decode_s(1, kv, found.profiled) == pytest.approx(hooks.decode_s(1, kv, found.roofline))
    decodes = step_shape(decodes=[(1, 1000)] * 64)
    assert step_seconds(decodes, found.profiled) == pytest.approx(step_seconds(decodes, found.roofline))
    mixed = step_shape([(448, 500)], [(1, 1000)] * 64)
    assert step_seconds(mixed, found.profiled) >= step_seconds(mixed, found.roofline)


def test_derive_refuses_what_cannot_be() -> None:
    with pytest.raises(UserError, match="tp=3 does not divide"):
        derive(MODEL, DEVICE, 3)
    with pytest.raises(UserError, match="leave no room for KV"):
        derive(MODEL._replace(params=5_000_000_000), DEVICE)


def test_presets_say_what_they_are() -> None:
    for name, latency in PRESETS.items():
        assert latency.name == name
        assert latency.kv_tokens is not None
        assert latency.kv_tokens > 0
        if name != "qba":
            assert name.endswith("-derived")
            assert "derived from published figures, not measured" in latency.summary
        assert build(name) == latency
        assert json.loads(json.dumps(latency.show())) == latency.show()
    assert preset("qba").cost == PiecewiseParams(0.003, 2e-5, 64)
    assert preset("qba").kv_tokens == 8192


def test_override_of_a_preset() -> None:
    base, changed = preset("qwen2-7b-a100-derived"), build("qwen2-7b-a100-derived:constant_s=0.01")
    assert isinstance(base.cost, ProfiledParams)
    assert changed.cost == base.cost._replace(constant_s=0.01)
    assert changed.kv_tokens == base.kv_tokens
    assert changed.name == "qwen2-7b-a100-derived:constant_s=0.01"
    assert changed.summary.endswith("changed: constant_s=0.01")


def test_models_by_text() -> None:
    assert build("piecewise").cost == PiecewiseParams()
    assert build(" piecewise: knee_tokens=32 , constant_s=0.004 ").cost == PiecewiseParams(0.004, 2e-5, 32)
    profiled = build("profiled:constant_s=0.01,prefill_token_s=1e-4")
    assert profiled.cost == ProfiledParams(0.01, prefill_token_s=1e-4)
    assert profiled.kv_tokens is None


def test_roofline_by_text() -> None:
    plain = build("roofline:model=llama-3-8b,device=a100-80gb")
    expected = derive(MODELS["llama-3-8b"], DEVICES["a100-80gb"])
    assert plain.cost == expected.roofline
    assert plain.kv_tokens == expected.kv_tokens
    assert plain.show()["kind"] == "roofline"
    tuned = build("roofline:model=llama-3-8b,device=a100-80gb,tp=2,mfu=0.4,mbu=0.8,overhead_s=0.002,per_seq_s=0").cost
    assert isinstance(tuned, RooflineParams)
    assert isinstance(plain.cost, RooflineParams)
    assert tuned.flops_per_s == pytest.approx(312e12 * 0.4)
    assert tuned.bytes_per_s == pytest.approx(2.039e12 * 0.8)
    assert (tuned.overhead_s, tuned.per_seq_s) == (0.002, 0.0)
    assert tuned.weight_bytes == plain.cost.weight_bytes / 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "unknown latency model ''"),
        ("qbaa", "did you mean 'qba'"),
        ("llama-3-8b-a100", "did you mean 'llama-3-8b-a100-derived'"),
        ("qba:constant=0.1", "did you mean 'constant_s'"),
        ("qba:constant_s", "is not key=value"),
        ("qba:constant_s=0.1,constant_s=0.2", "given twice"),
        ("qba:constant_s=-1", "outside [0, inf)"),
        ("qba:constant_s=inf", "outside [0, inf)"),
        ("qba:constant_s=nan", "outside [0, inf)"),
        ("qba:knee_tokens=1.5", "whole number"),
        ("profiled", "'constant_s' must be given"),
        ("roofline", "'model' must be given"),
        ("roofline:model=llama-3-8b", "'device' must be given"),
        ("roofline:model=llama-3-9b,device=a100-80gb", "did you mean 'llama-3-8b'"),
        ("roofline:model=llama-3-8b,device=a100", "did you mean 'a100-80gb'"),
        ("roofline:model=llama-3-8b,device=a100-80gb,mfu=2", "mfu=2 is outside (0, 1]"),
        ("roofline:model=llama-3-8b,device=a100-80gb,tp=0", "tp=0 is outside"),
        ("roofline:model=llama-3-8b,device=a100-80gb,tp=5", "does not divide"),
    ],
)
def test_bad_texts_are_one_clear_line(text: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        build(text)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_preset() -> None:
    with pytest.raises(UserError, match="did you mean 'qwen2-7b-a100-derived'"):
        preset("qwen2-7b-a100")


def test_a_file_of_settings(tmp_path: Path) -> None:
    path = tmp_path / "fitted.toml"
    path.write_text('latency = "profiled"\nkv_tokens = 5000\nconstant_s = 0.01\nprefill_token_s = 1e-4\n')
    found = build(str(path))
    assert found.cost == ProfiledParams(0.01, prefill_token_s=1e-4)
    assert (found.name, found.kv_tokens, found.summary) == (str(path), 5000, "as given")
    roofline = {"latency": "roofline", "model": "llama-3-8b", "device": "a100-80gb", "tp": 2, "summary": "two"}
    (path := tmp_path / "two.json").write_text(json.dumps(roofline))
    assert build(str(path)).cost == build("roofline:model=llama-3-8b,device=a100-80gb,tp=2").cost
    assert build(str(path)).kv_tokens == build("roofline:model=llama-3-8b,device=a100-80gb,tp=2").kv_tokens
    assert build(str(path)).summary == "two"
    path.write_text('{"latency": "qba", "constant_s": 0.005}')
    assert build(str(path)).cost == PiecewiseParams(0.005)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"constant_s": 0.1}, "latency=None must name a model"),
        ({"latency": "profile"}, "did you mean 'profiled'"),
        ({"latency": "profiled", "constant": 0.1}, "did you mean 'constant_s'"),
        ({"latency": "profiled", "constant_s": -0.1}, "constant_s=-0.1 is outside"),
        ({"latency": "profiled", "constant_s": "much"}, "constant_s=much must be a number"),
        ({"latency": "profiled", "constant_s": 0.1, "kv_tokens": 0.5}, "kv_tokens=0.5 must be a whole number"),
        ({"latency": "roofline", "model": ["a"], "device": "a100-80gb"}, "model=['a'] is not one of"),
    ],
)
def test_a_bad_file_is_one_clear_line(settings: dict[str, object], says: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(settings))
    with pytest.raises(UserError) as caught:
        build(str(path))
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
