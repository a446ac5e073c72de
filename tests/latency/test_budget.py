"""The budget found is the largest that meets the SLO."""

from __future__ import annotations

import pytest

from tailrace.errors import UserError
from tailrace.latency import PiecewiseParams, ProfiledParams, build, preset, step_seconds, step_shape, token_budget
from tailrace.latency.budget import MOST_TOKENS, budget_step

pytestmark = pytest.mark.plain

LINEAR = ProfiledParams(0.01, prefill_token_s=1e-4, decode_kv_s=1e-7, decode_seq_s=1e-5)


def test_by_hand() -> None:
    assert token_budget(LINEAR, 0.05005) == 400
    # 100 decodes on 2,000 tokens take 0.02 + 0.001 s: 190 tokens are left, with the decodes 290.
    assert token_budget(LINEAR, 0.05005, 100, 2000) == 100 + 190


@pytest.mark.parametrize("text", ["qwen2-7b-a100-derived", "roofline:model=qwen2-7b,device=a100-80gb", "piecewise"])
@pytest.mark.parametrize(("decodes", "kv"), [(0, 0.0), (60, 1234.5), (120, 3000.0)])
@pytest.mark.parametrize("cached", [0, 5000])
def test_one_token_more_misses_the_slo(text: str, decodes: int, kv: float, cached: int) -> None:
    cost, slo = build(text).cost, 0.05
    found = token_budget(cost, slo, decodes, kv, cached)
    assert found > decodes
    assert step_seconds(budget_step(found - decodes, decodes, kv, cached), cost) < slo
    assert step_seconds(budget_step(found - decodes + 1, decodes, kv, cached), cost) >= slo


def test_decodes_and_their_kv_leave_less_for_the_chunk() -> None:
    cost = preset("qwen2-7b-a100-derived").cost
    lone = token_budget(cost, 0.05)
    assert token_budget(cost, 0.05, 100, 5000) < token_budget(cost, 0.05, 100, 0) < lone + 100
    assert token_budget(cost, 0.05, 100, 5000) < lone  # a decode on much KV takes longer than a prefill token
    assert token_budget(cost, 0.05, 0, 0, 20_000) < lone


def test_the_ends() -> None:
    assert token_budget(LINEAR, 0.005) == 0  # not one token
    assert token_budget(LINEAR, 0.03, 100, 3000) == 0  # the decodes alone take 0.041 s
    assert token_budget(LINEAR, 0.04105, 100, 3000) == 100  # and leave no room for a chunk
    assert token_budget(PiecewiseParams(0.01, 0.0), 0.05, 10, 5) == MOST_TOKENS


def test_the_step_is_what_step_shape_makes() -> None:
    assert budget_step(300, 3, 200.0, 700) == step_shape([(300, 700)], [(1, 100), (1, 200), (1, 300)])
    assert budget_step(0, 2, 200.0, 700) == step_shape([], [(1, 150), (1, 250)])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((0.0,), "tpot_slo_s=0.0"),
        ((float("inf"),), "tpot_slo_s=inf"),
        ((0.1, -1), "decodes=-1"),
        ((0.1, 1, float("nan")), "decode_kv_tokens=nan"),
        ((0.1, 1, 1.0, -5), "prefill_kv_tokens=-5"),
    ],
)
def test_what_cannot_be_is_refused(given: tuple[float, ...], says: str) -> None:
    with pytest.raises(UserError, match=says):
        token_budget(LINEAR, *given)  # type: ignore[arg-type]
