"""What a policy may know of a request: one row, each column with its unit.

The true output length is not here. It lives in the simulator's ``Truth``; a policy sees
``predicted_output_tokens`` and ``predicted_class``, and every result says where those
came from.
"""

from __future__ import annotations

import functools
from typing import Any, Final, get_type_hints

import numpy as np
from numpy.typing import NDArray

from . import _jit

__all__ = ["DECODE", "DONE", "FREE", "LONG", "PHASES", "PREFILL", "SHORT", "WAITING"]
__all__ += ["Columns", "RequestTable", "allocate", "dtype_of"]

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
I4 = NDArray[np.int32]

FREE: Final = 0
WAITING: Final = 1
PREFILL: Final = 2
DECODE: Final = 3
DONE: Final = 4
PHASES: Final = ("free", "waiting", "prefill", "decode", "done")
"""Phase of a row. Waiting includes preempted; done covers finished, aborted, rejected."""

SHORT: Final = 0
LONG: Final = 1


class Columns:
    """Base of a record layout: every annotation is a column, in order."""


class RequestTable(Columns):
    """One row a request. Hosts write it; policies only read it."""

    arrival_s: F8
    """Arrival, seconds on the host's clock."""
    seq: I8
    """Number given at arrival, never reused: the last word in every order."""
    phase: I8
    """One of FREE, WAITING, PREFILL, DECODE, DONE."""
    prompt_tokens: I8
    cached_tokens: I8
    """Prompt tokens found in the prefix cache at the last admission."""
    computed_tokens: I8
    """Tokens whose KV is present or planned in a step under way. Above 0 while it waits: its KV is kept."""
    attained_tokens: I8
    """Most tokens ever computed for it: service that recomputation does not count twice."""
    generated_tokens: I8
    """Output tokens delivered."""
    predicted_output_tokens: I8
    predicted_class: I8
    """SHORT or LONG."""
    class_id: I8
    weight: F8
    """The operator's weight of its class."""
    tenant: I8
    priority: I8
    """vLLM's convention: lower runs sooner."""
    ttft_slo_s: F8
    """Infinity when none is set."""
    tpot_slo_s: F8
    started_s: F8
    """Start of the first chunk; NaN before."""
    waiting_since_s: F8
    """Arrival or latest preemption."""
    first_token_s: F8
    """NaN before."""
    last_token_s: F8
    preemptions: I8
    kv_blocks: I8
    """Device KV blocks held."""


def dtype_of(layout: type[Columns]) -> np.dtype[Any]:
    """The record type of a layout, columns in the order they are declared."""
    key: Any = layout  # mypy doubts that a class can be hashed
    return _dtype(key)


@functools.cache  # reading annotations takes longer than all the rest of an engine's making
def _dtype(layout: Any) -> np.dtype[Any]:
    kinds = {F8: "f8", I8: "i8", I4: "i4"}
    hints = get_type_hints(layout)
    return np.dtype([(name, kinds[hints[name]]) for name in hints])


def allocate(layout: type[Columns], rows: int) -> tuple[np.ndarray[Any, Any], Any]:
    """``(records, view)``: a zeroed structured array and its view for kernels."""
    records = np.zeros(rows, dtype=dtype_of(layout))
    return records, _jit.columns(records)
