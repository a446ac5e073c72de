"""The live study without vLLM: its burst, its claims, and what a user may get wrong."""

from __future__ import annotations

import pytest

from tailrace.errors import UserError
from tailrace.studies import live
from tailrace.vllm_plugin.online import Served

SMALL = live.Burst(longs=2, shorts=4, over_steps=10)


def _served(short_s: float, long_s: float, order: list[int]) -> Served:
    e2e = [long_s if ask.long else short_s for ask in live.plan(SMALL)]
    return Served(e2e, [round(100 * value) for value in e2e], order, 50, 300, 2.0)


def test_the_burst_is_the_same_every_time() -> None:
    asks = live.plan(live.BURST)
    assert asks == live.plan(live.BURST)
    assert asks == sorted(asks, key=lambda ask: ask.step)
    assert sum(ask.long for ask in asks) == 40
    assert len(asks) == 200
    assert all(100 <= ask.output_tokens <= 500 for ask in asks if ask.long)
    assert {ask.step for ask in live.plan(live.Burst(over_steps=0))} == {0}


def test_claims_hold_or_do_not() -> None:
    forwards, backwards = [0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0]
    good = {
        "stock": _served(4.0, 5.0, forwards),
        "fcfs": _served(4.0, 5.0, forwards),
        "sjf": _served(1.0, 9.0, forwards),
        "qba:k=3": _served(2.0, 6.0, backwards),
    }
    assert [claim["holds"] for claim in live.claims(SMALL, good)] == [True, True, True]
    bad = {**good, "fcfs": _served(4.0, 5.0, backwards), "qba:k=3": _served(2.1, 9.0, forwards)}
    found = live.claims(SMALL, bad)
    assert [claim["holds"] for claim in found] == [False, False, False]
    assert "first 0" in found[0]["why"]
    assert len(live.claims(SMALL, {"stock": good["stock"], "sjf": good["sjf"]})) == 0


def test_rows_have_seconds_steps_and_tokens() -> None:
    rows = {row["metric"]: row["measured"] for row in live.rows(SMALL, "qba", _served(2.0, 6.0, []))}
    assert rows["short e2e p99 s"] == pytest.approx(2.0)
    assert rows["long e2e p50 steps"] == pytest.approx(600)
    assert rows["output tokens/s"] == pytest.approx(150)


def test_policies_as_the_plugin_takes_them() -> None:
    found = live.plugin("stock, qba:k=3,min_samples=4, sjf")
    assert list(found) == ["stock", "qba:k=3,min_samples=4", "sjf"]
    assert found["stock"] is None
    settings = found["qba:k=3,min_samples=4"]
    assert settings is not None
    assert settings["policy"] == "qba"
    assert settings["params"]["k"] == 3
    with pytest.raises(UserError, match="engine rules alone"):
        live.plugin("stock,sarathi")
    with pytest.raises(UserError, match="no policy is named"):
        live.plugin(",")
