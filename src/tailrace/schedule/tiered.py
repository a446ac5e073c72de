"""Named blocks on the device and host memory behind them: the rules ``prefix_cache`` and ``evict=swap`` together.

A preempted row's KV is copied to host memory whole, shared blocks too, so the copy needs no cache. Its device
blocks are given back as ever: those with a name can still be found. When the row resumes it takes over what
the cache has, as any row that starts, and only the rest is copied back. All of this is what `prefix` and `host`
do; a `Tiered` has the fields that their kernels read, and both traits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from .. import _jit
from .._jit import kernel
from .blocks import Blocks
from .host import HostKV, drop, host_copies
from .prefix import KERNELS, release

__all__ = ["Tiered", "build_tiered"]


class Tiered(NamedTuple):
    """The fields of `Blocks`, then those of `HostKV`."""

    nodes: Any
    holds: Any
    pool: Any
    owners: Any
    table: NDArray[Any]
    held: NDArray[Any]
    ids: NDArray[Any]
    offsets: NDArray[Any]
    memory: NDArray[Any]
    spare: NDArray[Any]
    spare_held: NDArray[Any]
    host: Any
    stored: Any
    lanes: Any


def build_tiered(named: Blocks, host: HostKV) -> Tiered:
    """Both as one; ``host`` has a row for each of ``named``'s."""
    return Tiered(*named, *host)


@kernel
def _give_back(b: Any, row: int) -> None:
    release(b, row)
    drop(b, row)


_jit.register(Tiered, {**KERNELS, "give_back": _give_back, "with_copies": host_copies}, traits=["prefix", "host"])
