"""What a study runs on: a generator with a seed, or one of many windows cut from a trace."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ... import spec, workloads
from ...errors import UserError
from ...workloads.workload import Workload

__all__ = ["Generated", "Promised", "Traffic", "Windows"]


class Traffic(Protocol):
    """A family of workloads, one a number; equal ones are the same family."""

    def __hash__(self) -> int: ...

    def load(self, number: int) -> Workload:
        """Workload ``number``, without predictions."""

    def key(self) -> str:
        """A text that is another for other traffic."""


@dataclass(frozen=True)
class Generated:
    """A generator's workloads; the number is the seed."""

    text: str
    """As on the command line, without a seed."""

    def load(self, number: int) -> Workload:
        return workloads.load(self.text, seed=number)

    def key(self) -> str:
        return self.text


@dataclass(frozen=True)
class Promised:
    """Classes and objectives laid over other traffic; classes are drawn with the number as seed."""

    traffic: Generated | Windows
    service: workloads.Service

    def load(self, number: int) -> Workload:
        w = self.traffic.load(number)
        return workloads.promised(dataclasses.replace(w, description={**w.description, "seed": number}), self.service)

    def key(self) -> str:
        return f"{self.traffic.key()} {self.service}"


@dataclass(frozen=True)
class Windows:
    """``count`` windows of a trace, each brought to ``rate_rps`` with order and relative gaps kept.

    Without ``size`` they are as long as they can be without overlap; else they have ``size``
    requests and begin evenly spaced. Lengths are multiplied by ``factor``, rounded, at least 1.
    """

    file: str
    count: int
    rate_rps: float
    factor: float
    size: int = 0
    stride: int = 1
    """Every so many windows alone are used: number n is window n·stride."""

    def load(self, number: int) -> Workload:
        whole = _trace(self.file)
        size = self.size or len(whole) // self.count
        if size < 2 or size > len(whole):
            raise UserError(f"{self.file}: {len(whole):,} requests are too few for {self.count} windows")
        place, last = number * self.stride, len(whole) - size
        begin = place * size if not self.size else round(place * last / max(self.count - 1, 1))
        cut = slice(begin, begin + size)
        times = whole.arrival_s[cut] - whole.arrival_s[cut][0]
        if times[-1] <= 0:
            raise UserError(f"{self.file}: requests {begin} to {begin + size} arrive at once; no rate fits them")
        return Workload.of(
            times * (size - 1) / (self.rate_rps * times[-1]),
            self._scaled(whole.prompt_tokens[cut]),
            self._scaled(whole.output_tokens[cut]),
            name=f"{whole.name}, window {place}",
        )

    def key(self) -> str:
        name = spec.write("windows", {"count": self.count, "rate_rps": self.rate_rps, "factor": self.factor})
        return f"{name},size={self.size},stride={self.stride} {_digest(self.file)}"

    def _scaled(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        scaled: NDArray[np.int64] = np.maximum(np.rint(tokens * self.factor), 1).astype(np.int64)
        return scaled


@functools.lru_cache(maxsize=2)
def _trace(file: str) -> Workload:
    return workloads.load(file)


@functools.lru_cache(maxsize=2)
def _digest(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:32]
