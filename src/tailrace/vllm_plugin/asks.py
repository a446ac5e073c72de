"""What a request says of itself in ``vllm_xargs``: predictions, class and deadlines.

    {"tailrace_predicted_output_tokens": 120, "tailrace_predicted_class": "short",
     "tailrace_class": "gold", "tailrace_ttft_slo_ms": 500, "tailrace_tpot_slo_ms": 50}

Nothing a client sends may stop the engine: what cannot be used counts as absent, and the
first of its kind is logged.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any, Final

from ..errors import UserError, nearest
from ..table import LONG, SHORT

__all__ = ["Classes", "columns"]

log = logging.getLogger("vllm.tailrace")
LENGTHS: Final = {"short": SHORT, "long": LONG}
FIELDS: Final = {"weight": 1.0, "ttft_slo_ms": math.inf, "tpot_slo_ms": math.inf}
"""What a class may set, and what holds where it does not."""


class Classes:
    """The operator's classes: ``{"gold": {"weight": 4, "ttft_slo_ms": 500, "tpot_slo_ms": 50}}``.

    The first one named is that of requests that name none. Raises UserError for anything else.
    """

    def __init__(self, given: Any = None) -> None:
        if given is not None and (not isinstance(given, Mapping) or not given):
            raise UserError('--additional-config: tailrace.classes must be {"NAME": {"weight": 1, …}, …}')
        self.names = list(given or {"default": {}})
        self.values = [self._read(name, value) for name, value in (given or {"default": {}}).items()]
        self._said: set[str] = set()

    @staticmethod
    def _read(name: str, given: Any) -> dict[str, float]:
        where = f"--additional-config: tailrace.classes.{name}"
        if not isinstance(given, Mapping):
            raise UserError(f"{where} must be an object of {', '.join(FIELDS)}")
        for key, value in given.items():
            if key not in FIELDS:
                raise UserError(f"{where} has no setting {key!r}{nearest(str(key), FIELDS)}")
            if _positive(value) is None:
                raise UserError(f"{where}.{key}={value!r} must be a number above 0")
        return {key: float(given.get(key, default)) for key, default in FIELDS.items()}

    def find(self, name: Any) -> int:
        """Index of a class; that of the first for a name nobody has set up."""
        if name in self.names:
            return self.names.index(name)
        if name is not None:
            self.ignore("tailrace_class", name, f"known: {', '.join(self.names)}")
        return 0

    def ignore(self, field: str, value: Any, why: str) -> None:
        """Log once a field that its value is not used."""
        if field not in self._said:
            self._said.add(field)
            log.warning("tailrace: %s=%.80r in a request is ignored (%s)", field, value, why)


def _positive(value: Any) -> float | None:
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 2**53
    return float(value) if good else None


def columns(extra: Mapping[str, Any], longest: int, classes: Classes) -> dict[str, float]:
    """Table columns from a request's ``vllm_xargs``; without a prediction it is short, and as
    long as ``longest`` (its max_tokens)."""

    def number(field: str, otherwise: float) -> float:
        value = extra.get(field)
        if value is None:
            return otherwise
        found = _positive(value)
        if found is None:
            classes.ignore(field, value, "it must be a number above 0")
            return otherwise
        return found

    length = extra.get("tailrace_predicted_class", "short")
    if not isinstance(length, str) or length not in LENGTHS:
        classes.ignore("tailrace_predicted_class", length, "it must be short or long")
        length = "short"
    index = classes.find(extra.get("tailrace_class"))
    own = classes.values[index]
    return {
        "predicted_output_tokens": int(number("tailrace_predicted_output_tokens", longest)),
        "predicted_class": LENGTHS[length],
        "class_id": index,
        "weight": own["weight"],
        "ttft_slo_s": number("tailrace_ttft_slo_ms", own["ttft_slo_ms"]) / 1000,
        "tpot_slo_s": number("tailrace_tpot_slo_ms", own["tpot_slo_ms"]) / 1000,
    }
