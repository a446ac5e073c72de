"""Parameters, rules, engines, names: what a user may say and what is refused."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

import pytest

from tailrace import params, rules
from tailrace.config import ENGINES, engine
from tailrace.errors import UserError
from tailrace.hooks import Policy, policy
from tailrace.params import P
from tailrace.registry import POLICIES
from tailrace.rules import EngineRules


class Example(NamedTuple):
    half_life_s: Annotated[float, P("half-life", unit="s", low=0, open_low=True)]
    repeats: Annotated[int, P("how many", low=1, high=9)] = 3
    mode: Annotated[int, P("which", choices=("left", "right"))] = 1
    on: Annotated[bool, P("whether")] = False


def test_values_are_coerced() -> None:
    assert params.build(Example, {"half_life_s": "2", "repeats": "4", "mode": "left", "on": "true"}, "x") == (
        2.0,
        4,
        0,
        True,
    )
    assert params.build(Example, {"half_life_s": 1}, "x") == (1.0, 3, 1, False)
    assert params.show(Example(1.0, 3, 0, True)) == {"half_life_s": 1.0, "repeats": 3, "mode": "left", "on": True}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "'half_life_s' must be given"),
        ({"half_life_s": 0}, r"half_life_s=0 is outside \(0, inf\) s"),
        ({"half_life_s": "nan"}, "half_life_s=nan is outside"),
        ({"half_life_s": 1, "repeats": 2.5}, "repeats=2.5 must be a whole number"),
        ({"half_life_s": 1, "repeats": 10}, r"repeats=10 is outside \[1, 9\]"),
        ({"half_life_s": 1, "mode": "lefft"}, r"did you mean 'left'"),
        ({"half_life_s": 1, "on": "maybe"}, "on=maybe must be true or false"),
        ({"half_lif_s": 1}, r"unknown parameter 'half_lif_s' \(did you mean 'half_life_s'\?\)"),
    ],
)
def test_what_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        params.build(Example, given, "x")


def test_rule_codes_are_the_positions_of_their_names() -> None:
    named = {
        "order_scope": ("ORDER_WAITING", "ORDER_ALL"),
        "phase_order": ("RANKED", "RUNNING_FIRST", "DECODE_FIRST", "PREFILL_FIRST", "PREFILL_ALONE"),
        "admit": ("ADMIT_CHUNK", "ADMIT_PROMPT", "ADMIT_PROJECTED"),
        "blocked_head": ("STOP", "SKIP"),
        "misfit": ("STOP", "SKIP"),
        "seconds_as": ("AS_WORK", "AS_TOKENS"),
        "victim": ("VICTIM_TAIL", "VICTIM_HOOK"),
        "evict": ("RECOMPUTE", "SWAP"),
        "swap_out": ("AT_ONCE", "WHEN_NEEDED", "AHEAD"),
        "reload": ("RELOAD_BLOCKING", "RELOAD_LAYERWISE"),
        "copy_budget": ("COPY_ALL", "COPY_ADAPTIVE"),
        "projection": ("PROJECT_CHUNK", "PROJECT_LIVE", "PROJECT_GROWTH"),
        "kv_short": ("KV_PREEMPT", "KV_STALL"),
        "kv_limit": ("KV_ENFORCED", "KV_REPORTED"),
    }
    hints = get_type_hints(EngineRules)
    assert set(named) == {name for name, kind in hints.items() if get_args(kind)}
    for rule, constants in named.items():
        assert len(get_args(hints[rule])) == len(constants)
        for index, constant in enumerate(constants):
            assert getattr(rules, constant) == index
    for name, value in dataclasses.asdict(EngineRules()).items():
        coded = rules.codes(EngineRules())[name][0]
        kind = get_args(hints[name])
        assert (kind[coded] if kind else coded) == value


def test_a_policy_wins_over_the_engine_but_not_everywhere() -> None:
    merged = rules.merge(EngineRules(watermark=0.5), {"watermark": 0.1, "victim": "tail"}, "x")
    assert merged.watermark == 0.1
    with pytest.raises(UserError, match="no engine rule is called 'watermrk'"):
        rules.merge(EngineRules(), {"watermrk": 0.1}, "x")
    for name in rules.ENGINE_ONLY:
        with pytest.raises(UserError, match="is the engine's"):
            rules.merge(EngineRules(), {name: getattr(EngineRules(), name)}, "x")


@pytest.mark.parametrize(
    "change", [{"watermark": 1.0}, {"block_tokens": 0}, {"steps_in_flight": 3}, {"victim": "head"}]
)
def test_rules_outside_their_range_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=next(iter(change))):
        EngineRules(**change)


def test_engines_take_texts() -> None:
    changed = engine("qba", {"token_budget": "64", "watermark": "0.25", "admit": "prompt", "prefill_emits": "true"})
    assert (changed.token_budget, changed.rules.watermark, changed.rules.admit) == (64, 0.25, "prompt")
    assert changed.rules.prefill_emits is True
    assert set(ENGINES) == {"qba", "sarathi", "vllm_v1"}


def test_every_policy_is_documented_and_declares_known_rules() -> None:
    for name in POLICIES.names():
        cls = POLICIES.get(name)
        assert cls.__doc__, name
        assert cls.source, name
        defaults = params.build(cls.Params, {}, name)
        rules.merge(EngineRules(), cls.rules(defaults), name)
        assert all(item.spec.doc for item in params.describe(cls.Params)), name


def test_a_hook_with_other_arguments_or_a_taken_name_is_refused() -> None:
    with pytest.raises(ValueError, match="must take"):

        @policy("badly_made")
        class Bad(Policy):
            @staticmethod
            def key(table: Any, row: int) -> tuple[int, float]:
                return 0, 0.0

    with pytest.raises(ValueError, match="registered already"):

        @policy("fcfs")
        class Twice(Policy):
            pass

    with pytest.raises(ValueError, match="all hooks of a class come in one call"):

        @policy("child")
        class Child(POLICIES.get("qba")):  # type: ignore[misc]
            """Shares its parent's parameter class."""


def test_settings_that_could_never_work_are_refused() -> None:
    with pytest.raises(UserError, match="chunk_cap=10 must be above min_last_chunk=10"):
        EngineRules(chunk_cap=10, min_last_chunk=10)
    for given in ({"evict": "swap"}, {"min_last_chunk": 8}):
        with pytest.raises(UserError, match="rule seconds_as=tokens needs evict=recompute and min_last_chunk=0"):
            EngineRules(seconds_as="tokens", **given)
    with pytest.raises(UserError, match="token_budget must be above"):
        engine("qba", {"min_last_chunk": "128"})
    qba = POLICIES.get("qba")
    with pytest.raises(UserError, match="nobody would ever be aged"):
        qba.make_state(params.build(qba.Params, {"window": 10}, "qba"), 5)
