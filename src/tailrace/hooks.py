"""The contract between a policy and whoever runs it.

A policy decides within one instance: the order of requests, what it remembers, who may
be preempted for whom, how large a step may be, and under which engine rules it wants to
run. It is a class with a ``Params`` NamedTuple and any of the hooks below as static
methods; the rest keep their defaults. The same methods run compiled in the simulator and
in vLLM's scheduler.

What every host promises
    * ``table`` is read only; ``state`` may be written by the ``on_*`` hooks and
      ``after_step`` only; ``scratch`` by ``prepare`` only. So planning a step twice gives
      the same plan.
    * ``now`` is the host's clock in seconds, the same one as ``arrival_s``.
    * Row columns are up to date before an ``on_*`` hook sees them; at the end of a step
      ``on_progress`` and ``on_prefill_done`` come before its output tokens are delivered.
    * The order of requests is (tier, key, arrival_s, seq), ascending: always total.
    * The predictions in the table are the only knowledge of the future.

What a policy promises about its keys (``keys``)
    ``STATIC``       a row's key never changes.
    ``ON_PROGRESS``  it changes only with the row's own columns (progress, preemption).
    ``LANES``        rows with the same ``lane`` run in order of arrival; only the first of
                     each lane needs an up-to-date key. ``prepare`` sees those first ones (all
                     the waiting if ``sees_all``).
    ``EVERY_STEP``   anything may change it; ``prepare`` sees all live rows.
"""

from __future__ import annotations

import collections
import inspect
import math
import os
import sys
from collections.abc import Callable
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import _jit
from .errors import nearest
from .registry import POLICIES

__all__ = ["ABORTED", "EVERY_STEP", "FINISHED", "LANES", "ON_PROGRESS", "REJECTED", "STATIC"]
__all__ += ["Policy", "policy"]

STATIC: Final = 0
ON_PROGRESS: Final = 1
LANES: Final = 2
EVERY_STEP: Final = 3
KEYS: Final = ("static", "on_progress", "lanes", "every_step")

FINISHED: Final = 0
ABORTED: Final = 1
REJECTED: Final = 2

NO_LIMIT: Final = 1 << 60
"""A step limit that limits nothing, in tokens or sequences."""

Rows = NDArray[np.int64]


class NoState(NamedTuple):
    """State of a policy that remembers nothing."""


# ── order ────────────────────────────────────────────────────────────────────────────


@_jit.generic(on="params")
def prepare(table: Any, live: Any, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> None:
    """Before a step is ranked: compute in ``scratch`` what keys need of the whole queue.

    ``live``: row numbers, int64, in no particular order: all live rows for EVERY_STEP, the
    first waiting ones of each lane for LANES, empty otherwise. Write ``scratch`` only.
    """


@_jit.generic(on="params")
def key(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[int, float]:
    """``(tier, key)`` of a live row; lower runs sooner. Default: order of arrival."""
    return 0, 0.0


@_jit.generic(on="params")
def lane(table: Any, row: int, state: Any, params: Any) -> int:
    """Lane of a waiting row, in [0, ``Policy.lanes``); asked when it starts to wait."""
    return 0


@_jit.generic(on="params")
def step_limits(
    table: Any, live: Any, now: float, state: Any, scratch: Any, cost: Any, params: Any
) -> tuple[int, int, float]:
    """``(tokens, sequences, seconds)``: the most that the next step may hold."""
    return NO_LIMIT, NO_LIMIT, math.inf


# ── preemption ───────────────────────────────────────────────────────────────────────


@_jit.generic(on="params")
def may_preempt(
    table: Any, waiting_row: int, running_row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any
) -> bool:
    """May the waiting row take the place of the running one? Hosts ask only where the
    waiting row's (tier, key) is strictly lower: never between equals."""
    return False


@_jit.generic(on="params")
def victim(table: Any, row: int, now: float, state: Any, scratch: Any, cost: Any, params: Any) -> tuple[bool, float]:
    """``(protected, cost)`` of taking a running row's KV, under the rule ``victim="hook"``.

    The unprotected row of least cost yields; ties: the latest arrival. If all are
    protected the cheapest yields all the same and the host counts an escape.
    """
    return False, -table.arrival_s[row]


# ── memory ───────────────────────────────────────────────────────────────────────────


@_jit.generic(on="params")
def on_arrival(table: Any, row: int, now: float, state: Any, params: Any) -> None:
    """A request came in."""


@_jit.generic(on="params")
def on_admit(table: Any, row: int, first: bool, tier: int, now: float, state: Any, params: Any) -> None:
    """A waiting row starts (``first``) or resumes; ``tier`` is the one it was ranked with."""


@_jit.generic(on="params")
def on_progress(table: Any, row: int, tokens: int, now: float, state: Any, params: Any) -> None:
    """A step computed ``tokens`` tokens of it (prefill or decode)."""


@_jit.generic(on="params")
def on_prefill_done(table: Any, row: int, now: float, state: Any, params: Any) -> None:
    """All known tokens of it are computed: decode begins (again after a recompute). With two steps in
    flight it may have been swapped out meanwhile."""


@_jit.generic(on="params")
def on_preempt(table: Any, row: int, now: float, state: Any, params: Any) -> None:
    """It lost its place and waits again: its KV is lost, or in host memory if ``computed_tokens`` is above 0."""


@_jit.generic(on="params")
def on_remove(table: Any, row: int, reason: int, now: float, state: Any, params: Any) -> None:
    """It leaves for good: FINISHED, ABORTED or REJECTED. The row may be used again.

    A request refused before `on_arrival` was called for it never reaches the policy.
    """


@_jit.generic(on="params")
def after_step(table: Any, planned: Any, step_s: float, now: float, state: Any, params: Any) -> None:
    """A step over the rows ``planned`` took ``step_s`` seconds."""


# ── time, from the host's latency model ──────────────────────────────────────────────


@_jit.generic(on="cost")
def chunk_s(tokens: int, kv_tokens: int, cost: Any) -> float:
    """Marginal seconds of a prefill chunk of ``tokens`` on ``kv_tokens`` cached ones."""
    return 0.0


@_jit.generic(on="cost")
def decode_s(tokens: int, kv_tokens: int, cost: Any) -> float:
    """Marginal seconds of a decode of ``tokens`` tokens on ``kv_tokens`` cached ones."""
    return 0.0


@_jit.generic(on="cost")
def constant_s(cost: Any) -> float:
    """Seconds of a step that depend on nothing in it."""
    return 0.0


@_jit.generic(on="cost")
def remaining_s(prompt_left: int, output_left: int, kv_tokens: int, cost: Any) -> float:
    """Marginal seconds of ``prompt_left`` prefill and then ``output_left`` decode tokens."""
    prefill = chunk_s(prompt_left, kv_tokens, cost)
    middle = kv_tokens + prompt_left + output_left // 2
    return prefill + output_left * decode_s(1, middle, cost)


# ── the class a policy is ────────────────────────────────────────────────────────────

HOOKS: Final = (
    *("prepare", "key", "lane", "step_limits", "may_preempt", "victim", "on_arrival", "on_admit"),
    *("on_progress", "on_prefill_done", "on_preempt", "on_remove", "after_step"),
)


class Policy:
    """Base of all policies. Subclass it, add hooks as static methods, decorate with `policy`."""

    name: ClassVar[str] = ""
    source: ClassVar[str] = ""
    """Paper and equation."""
    keys: ClassVar[int] = EVERY_STEP
    lanes: ClassVar[int] = 1
    Params: ClassVar[type[Any] | None] = None
    """A NamedTuple of ``Annotated[type, P(...)]`` fields; None for a policy without parameters."""
    rules_alone: ClassVar[bool] = False
    """The policy is its engine rules and nothing else, so a host without them refuses it."""

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        """The `EngineRules` fields this policy insists on, and no others."""
        return {}

    @staticmethod
    def sees_all(params: Any) -> bool:
        """With LANES: whether ``prepare`` must see all waiting rows, not the first ones."""
        return False

    @staticmethod
    def make_state(params: Any, capacity: int) -> Any:
        """A NamedTuple of arrays; ``capacity`` rows. Scalars are one-element arrays."""
        return NoState()

    @staticmethod
    def make_scratch(params: Any, capacity: int) -> Any:
        """As `make_state`, for what `prepare` computes."""
        return NoState()

    @staticmethod
    def tallies(state: Any) -> dict[str, float]:
        """What a run's result should say of the policy's own doings: names and totals."""
        return {}

    @staticmethod
    def findings(scratch: Any) -> dict[str, float]:
        """As `tallies`, of what ``prepare`` found in the steps so far; a step planned twice must count once."""
        return {}

    @staticmethod
    def paths(state: Any) -> dict[str, tuple[Any, Any]]:
        """Values that changed over the run, and when: ``{name: (times, values)}``, two lists of one length.

        Times in seconds on the host's clock, in order; names with units, as columns have them.
        """
        return {}


P = TypeVar("P", bound=type[Policy])


def policy(name: str, source: str = "") -> Callable[[P], P]:
    """Class decorator: name a policy and register its hooks."""

    def wrap(cls: P) -> P:
        cls.name, cls.source = name, source or cls.source
        _register(cls)
        POLICIES.add(name, cls)
        return cls

    return wrap


def _register(cls: type[Policy]) -> None:
    if cls.Params is None:
        cls.Params = collections.namedtuple("Params", (), module=cls.__module__)  # type: ignore[misc]
        cls.Params.__qualname__ = f"{cls.__qualname__}.Params"
    hooks = {hook: getattr(cls, hook) for hook in HOOKS if hasattr(cls, hook)}
    for name in vars(cls):
        if not name.startswith("_") and name not in HOOKS and not hasattr(Policy, name):
            raise ValueError(f"{cls.__qualname__}: a policy has no {name!r}{nearest(name, (*HOOKS, *_SETTINGS))}")
    _jit.register(cls.Params, hooks, _foreign_sources(cls), [KEYS[cls.keys]], cls.__qualname__)


_SETTINGS: Final = (
    "rules",
    "make_state",
    "make_scratch",
    "sees_all",
    "tallies",
    "findings",
    "paths",
    "keys",
    "lanes",
    "Params",
    "rules_alone",
)


def _foreign_sources(cls: type) -> list[str]:
    """The policy's file, and every module loaded from its folder: hooks may use kernels and
    constants of theirs, and an edit there must compile the policy again."""
    file = inspect.getsourcefile(cls)
    if file is None or cls.__module__.startswith("tailrace."):
        return []
    folder = os.path.dirname(os.path.abspath(file)) + os.sep
    loaded = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return sorted({file, *(f for f in loaded if f and os.path.abspath(f).startswith(folder) and f.endswith(".py"))})
