"""The check of a policy's hooks leaves none of them out."""

from __future__ import annotations

import inspect
from typing import Any

from tailrace import hooks
from tailrace.hooks import Policy
from tailrace.latency import PiecewiseParams
from tailrace.rules import EngineRules
from tailrace.schedule.each import each
from tailrace.schedule.engine import Limits, build

CALLED: list[str] = []
ANSWERS = {"key": (0, 1.0), "lane": 0, "step_limits": (9, 9, 1.0), "may_preempt": True, "victim": (False, 1.0)}


def _hook(name: str) -> Any:
    def noted(*args: Any) -> Any:
        CALLED.append(name)
        return ANSWERS.get(name)

    noted.__signature__ = inspect.signature(getattr(hooks, name))  # type: ignore[attr-defined]
    return staticmethod(noted)


Noting = type("Noting", (Policy,), {name: _hook(name) for name in hooks.HOOKS})
hooks._register(Noting)


def test_every_hook_is_called_once() -> None:
    cls: Any = Noting
    e, _ = build(2, Limits(64, 0, 1000), EngineRules(), cls, cls.Params(), PiecewiseParams())
    CALLED.clear()
    each.py_func(e, 0, 1.0)
    assert sorted(CALLED) == sorted(hooks.HOOKS)
