"""How long a live engine's steps take, learned while it serves.

Measured steps go into a window that keeps the latest few of each kind and size, so that decodes, which
most steps are, do not push out the prefills. From time to time the profiled model (ProServe,
arXiv 2512.12928) is fitted to it anew. No vllm and no torch here.
"""

from __future__ import annotations

import importlib
import logging
import math
import time
from collections import deque
from statistics import fmean, median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .._jit import entry
from ..errors import UserError
from ..latency import ProfiledParams, StepShape, fit_features, step_features, step_seconds
from ..params import show
from ..schedule.engine import STEADY

__all__ = ["FIRST", "UNKNOWN", "StepTimes", "measure"]

log = logging.getLogger("vllm.tailrace")

UNKNOWN: Final = ProfiledParams(0.0)
"""Before the first fit: nothing takes any time, so no seconds bind."""
FIRST: Final = 64
"""Steps before the first fit."""
GROWTH: Final = 1.25
LEAST_STEPS: Final = 32
MOST_STEPS: Final = 1024
"""The next fit comes when there are so many times as many steps, at least and at most so many later."""
SAME: Final = 32
"""Steps kept of one kind and size."""
WINDOW: Final = 1024
"""Steps kept in all; those of the kind and size not seen for longest go first."""
FEW: Final = 3
APART: Final = 2.0
"""A step this many times longer or shorter than its like usually take (held up; its result came together with
another's) counts as so long and no more."""
JUDGED: Final = 256
"""Latest steps over which the error is taken."""


@entry
def measure(e: Any, items: Any, count: int, sums: Any) -> None:
    """The step that was just committed, as `StepShape` has it, into ``sums``. ``items``: as `mirror.commit` left
    the first ``count``."""
    for i in range(sums.shape[0]):
        sums[i] = 0
    for i in range(count):
        q = items[1, i]
        kv = e.table.computed_tokens[items[0, i]] - q
        sums[0] += q
        sums[1] += 1
        if items[2, i] == STEADY:
            sums[7] += 1
            sums[8] += q
            sums[9] += kv
        else:
            sums[2] += 1
            sums[3] += q
            sums[4] += q * q
            sums[5] += q * kv
            sums[6] += kv


class StepTimes:
    """The window and the model."""

    def __init__(self) -> None:
        importlib.import_module("scipy.optimize")  # now: while serving its 0.1 s would hold up a step
        self.cost = UNKNOWN
        self.steps = self.fits = self.failures = 0
        """Steps measured; fits made, and those that came to nothing: the model before stays."""
        self.fit_s = 0.0
        """What the slowest fit took."""
        self._due = FIRST
        self._errors: deque[float] = deque(maxlen=JUDGED)
        self._table = np.zeros((WINDOW, len(ProfiledParams._fields) + 1))
        """Features and seconds of each step kept."""
        self._free = list(range(WINDOW))
        self._kept: dict[tuple[int, ...], deque[int]] = {}
        """Rows of the table by kind and size, the one seen last at the end."""

    @property
    def mape(self) -> float:
        """Mean absolute relative error on the latest steps, each predicted before it was learned from, and
        counted as 1 where it is more; nan: none yet."""
        return fmean(self._errors) if self._errors else math.nan

    def figures(self) -> dict[str, float]:
        """All of these by name."""
        return {name: getattr(self, name) for name in ("steps", "fits", "failures", "fit_s", "mape")}

    def add(self, sums: list[int], seconds: float) -> bool:
        """A step of the shape ``sums`` took ``seconds``. Whether the model changed."""
        shape = StepShape(*sums)
        if shape.tokens == 0 or not 0 < seconds < math.inf:  # nothing was measured, or the clock was set
            return False
        if self.fits:
            self._errors.append(min(abs(step_seconds(shape, self.cost) / seconds - 1.0), 1.0))
        self._table[self._row(shape)] = (*step_features(shape), seconds)
        self.steps += 1
        return self.steps >= self._due and self._refit()

    def _row(self, shape: StepShape) -> int:
        """Where the step goes: in place of the oldest of its like, or of those not seen for longest."""
        like = (
            shape.prefill_tokens.bit_length(),
            shape.decode_seqs.bit_length(),
            (shape.prefill_kv + shape.decode_kv).bit_length() // 2,
        )
        rows = self._kept.pop(like, None) or deque()
        if len(rows) == SAME:
            row = rows.popleft()
        else:
            if not self._free:
                self._free += self._kept.pop(next(iter(self._kept)))
            row = self._free.pop()
        rows.append(row)
        self._kept[like] = rows
        return row

    def _refit(self) -> bool:
        later = min(max(int(self.steps * (GROWTH - 1.0)), LEAST_STEPS), MOST_STEPS)
        self._due, began = self.steps + later, time.perf_counter()
        done = self._fit()
        self.fit_s = max(self.fit_s, time.perf_counter() - began)
        if done and self.fits & (self.fits - 1) == 0:  # 1, 2, 4, …
            error = f"; off by {self.mape:.1%} on the {len(self._errors)} before" if self._errors else ""
            log.info("tailrace: step times learned from %d steps: %s%s", self.steps, show(self.cost), error)
        return done

    def _fit(self) -> bool:
        usual = self._usual()
        found = self._try(self._table[list(usual)], np.array(list(usual.values())))
        if found is None:
            self.failures += 1
            if self.failures & (self.failures - 1) == 0:
                log.warning("tailrace: %d of %d fits of step times failed", self.failures, self.failures + self.fits)
            return False
        self.cost, self.fits = found, self.fits + 1
        return True

    def _usual(self) -> dict[int, float]:
        """By row of the table, what steps of that kind and size usually take: their median; of very few, no less
        than half of what the model says, as one of them alone could have been measured far too short."""
        seconds, least = self._table[:, -1].tolist(), (self._table[:, :-1] @ np.array(self.cost) / APART).tolist()
        found = {}
        for rows in self._kept.values():
            middle = median([seconds[row] for row in rows])
            found.update(dict.fromkeys(rows, middle))
            if len(rows) < FEW:
                found.update({row: max(middle, least[row]) for row in rows})
        return found

    @staticmethod
    def _try(steps: NDArray[np.float64], usual: NDArray[np.float64]) -> ProfiledParams | None:
        """The model, or None: whatever goes wrong in a fit must not stop the engine.

        Errors are relative to the usual time, not to the measured one: the least of those squares lies far
        below the middle of times that vary much.
        """
        seconds = np.clip(steps[:, -1], usual / APART, usual * APART)
        try:
            cost = fit_features(steps[:, :-1], seconds, 1.0 / usual)
        except (ArithmeticError, RuntimeError, UserError, ValueError):  # LinAlgError is a ValueError
            return None
        return cost if all(0 <= value < math.inf for value in cost) and any(cost) else None
