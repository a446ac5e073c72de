"""The canonical trace: what arrives, when, how long it is, and what a policy is told of it."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ..errors import UserError
from ..table import F8, I8, LONG, SHORT
from .prefix import Prefix, checked

__all__ = ["LONG_QUANTILE", "MAX_TOKENS", "OptionalColumns", "Workload", "frozen", "long_class"]

LONG_QUANTILE: Final = 0.85
"""A request is long iff its output exceeds this quantile (QBA, arXiv 2610.17795, section IV-A)."""
MAX_TOKENS: Final = 2**31
"""Largest prompt or output accepted, tokens."""
TOLD: Final = frozenset({"predicted_output_tokens", "predicted_class"})


class OptionalColumns(TypedDict, total=False):
    """What `Workload.of` fills when it is left out."""

    class_id: ArrayLike
    tenant: ArrayLike
    session: ArrayLike
    priority: ArrayLike
    ttft_slo_s: ArrayLike
    tpot_slo_s: ArrayLike
    predicted_output_tokens: ArrayLike
    predicted_class: ArrayLike
    true_class: ArrayLike


@dataclass(frozen=True, eq=False)
class Workload:
    """``n`` requests sorted by arrival; arrays of length ``n`` that cannot be written to.

    Build one with `Workload.of`, which fills defaults and checks. Two workloads are
    the same when their `digest` is.
    """

    name: str
    arrival_s: F8
    """Seconds since the start of the trace; the first may be above 0."""
    prompt_tokens: I8
    output_tokens: I8
    """The true output length. Hosts keep it from policies."""
    class_id: I8
    """The operator's class, an index into ``class_names`` and ``class_weights``."""
    tenant: I8
    """An index into ``tenant_names``."""
    session: I8
    """Which conversation, numbered by first appearance; -1 = none. Its requests are its turns, in order."""
    priority: I8
    """vLLM's convention: lower runs sooner."""
    ttft_slo_s: F8
    """Seconds; infinite when none is set."""
    tpot_slo_s: F8
    predicted_output_tokens: I8
    predicted_class: I8
    """SHORT or LONG, as a policy is told."""
    true_class: I8
    """SHORT or LONG, by the cutoff of the prediction setting."""
    class_names: tuple[str, ...]
    class_weights: tuple[float, ...]
    tenant_names: tuple[str, ...]
    description: dict[str, Any]
    """Where it came from, for people and JSON: source, format, parameters, seed, rows, dropped_rows."""
    predictions: str
    """The prediction setting, as `tailrace.workloads.apply` writes it."""
    prefix: Prefix | None = None
    """Which prompts begin alike; None = none do."""

    @classmethod
    def of(
        cls,
        arrival_s: ArrayLike,
        prompt_tokens: ArrayLike,
        output_tokens: ArrayLike,
        *,
        name: str,
        description: dict[str, Any] | None = None,
        class_names: Sequence[str] = ("default",),
        class_weights: Sequence[float] | None = None,
        tenant_names: Sequence[str] = ("default",),
        predictions: str | None = None,
        prefix: Prefix | None = None,
        **columns: Unpack[OptionalColumns],
    ) -> Workload:
        """A workload from arrays in any order; other columns are keywords, a scalar fills one.

        Left out: class, tenant and priority 0, session none, SLOs infinite, true_class by `LONG_QUANTILE`, predictions
        an oracle's. Rows are sorted stably by arrival, sessions renumbered. Raises UserError for no rows, unequal
        lengths, tokens not whole or outside [1, 2**31], arrivals, SLOs or weights out of range, an index without a
        name, a prefix that does not fit.
        """
        check, names, tenants = _Checker(name, arrival_s), tuple(class_names), tuple(tenant_names)
        arrival = check.real("arrival_s", arrival_s, low=0.0)
        given = {**columns, "prompt_tokens": prompt_tokens, "output_tokens": output_tokens}
        values, order = check.columns(given, len(names), len(tenants)), np.argsort(arrival, kind="stable")
        values["session"][order] = _numbered(values["session"][order])
        return cls(
            name=name,
            arrival_s=frozen(arrival[order] + 0.0),  # + 0.0: no negative zero in the digest
            class_names=names,
            class_weights=check.weights(class_weights, names),
            tenant_names=tenants,
            description={"rows": check.rows, "dropped_rows": 0, **(description or {})},
            predictions=predictions or ("given" if columns.keys() & TOLD else "oracle"),
            prefix=None if prefix is None else checked(prefix, name, values["prompt_tokens"]).take(order),
            **{key: frozen(column[order]) for key, column in values.items()},
        )

    def __len__(self) -> int:
        return len(self.arrival_s)

    @property
    def span_s(self) -> float:
        """Seconds from the first arrival to the last."""
        return float(self.arrival_s[-1] - self.arrival_s[0])

    @property
    def rate_rps(self) -> float:
        """Mean arrival rate over the span, requests/s; NaN when all arrive at once."""
        return (len(self) - 1) / self.span_s if self.span_s > 0 else math.nan

    def digest(self) -> str:
        """SHA-256 in hex of what a simulation can depend on, the same on every machine.

        That is every array, class names and weights, tenant names, the prediction setting,
        and sessions and prefix, if there are any; ``name`` and ``description`` are left out.
        """
        hasher = hashlib.sha256(repr((self.class_names, self.class_weights, self.tenant_names)).encode())
        hasher.update(self.predictions.encode())
        arrays = self._arrays()
        session = arrays.pop("session")
        if (session >= 0).any():
            arrays["session"] = session
        if self.prefix is not None:
            hasher.update(f"\nprefix {self.prefix.block_tokens}".encode())
            arrays |= {"ids": self.prefix.ids, "offsets": self.prefix.offsets}
        for field, values in arrays.items():
            portable = values.astype(values.dtype.newbyteorder("<"), copy=False)
            hasher.update(f"\n{field} {portable.dtype.str} {len(values)}\n".encode())
            hasher.update(np.ascontiguousarray(portable).tobytes())
        return hasher.hexdigest()

    def head(self, n: int) -> Workload:
        """The first ``n`` requests (all if fewer), classes and predictions as they are.

        Raises UserError when ``n`` is below 1.
        """
        if n < 1:
            raise UserError(f"workload {self.name!r}: the first {n} requests are none; ask for 1 or more")
        if n >= len(self):
            return self
        kept: dict[str, Any] = {field: values[:n] for field, values in self._arrays().items()}
        if self.prefix is not None:
            kept["prefix"] = self.prefix.take(np.arange(n))
        return dataclasses.replace(self, **kept, description={**self.description, "rows": n, "limit": n})

    def scaled(self, rate_factor: float) -> Workload:
        """The same requests arriving ``rate_factor`` times as fast; SLOs stay.

        Raises UserError when ``rate_factor`` is not positive and finite.
        """
        if not 0 < rate_factor < math.inf:
            raise UserError(f"workload {self.name!r}: rate factor {rate_factor} must be positive and finite")
        total = rate_factor * self.description.get("rate_factor", 1.0)
        arrival = frozen(self.arrival_s / rate_factor)
        return dataclasses.replace(self, arrival_s=arrival, description={**self.description, "rate_factor": total})

    def _arrays(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {field: value for field, value in values.items() if isinstance(value, np.ndarray)}


def long_class(output_tokens: I8, quantile: float = LONG_QUANTILE) -> I8:
    """LONG where the output exceeds its own empirical quantile (linear interpolation), else SHORT."""
    return (output_tokens > np.quantile(output_tokens, quantile)).astype(np.int64)


def frozen(values: Any) -> Any:
    """``values``, from now on read-only: one workload serves many runs."""
    values.flags.writeable = False
    return values


def _numbered(session: I8) -> I8:
    """Sessions numbered by first appearance; -1 stays."""
    names, first, which = np.unique(session, return_index=True, return_inverse=True)
    number = np.empty(len(names), dtype=np.int64)
    number[np.argsort(np.where(names < 0, -1, first), kind="stable")] = np.arange(len(names))
    return number[which] - int(names[0] < 0)


class _Checker:
    """Turns what a caller gave into checked columns of one length."""

    def __init__(self, name: str, arrival_s: ArrayLike) -> None:
        self.name, self.rows = name, np.size(np.asarray(arrival_s))
        if self.rows == 0:
            raise UserError(f"workload {name!r} has no requests")

    def columns(self, given: Mapping[str, Any], classes: int, tenants: int) -> dict[str, Any]:
        """Every column but the arrival; a default may build on the columns before it."""
        out: dict[str, Any] = {}

        def whole(field: str, default: Any, low: int, high: int) -> None:
            out[field] = self.whole(field, given.get(field, default), low, high)

        whole("prompt_tokens", None, 1, MAX_TOKENS)
        whole("output_tokens", None, 1, MAX_TOKENS)
        whole("class_id", 0, 0, classes - 1)
        whole("tenant", 0, 0, tenants - 1)
        whole("session", -1, -1, 2**53)
        whole("priority", 0, -(2**31), 2**31 - 1)
        whole("true_class", long_class(out["output_tokens"]), SHORT, LONG)
        whole("predicted_output_tokens", out["output_tokens"], 1, MAX_TOKENS)
        whole("predicted_class", out["true_class"], SHORT, LONG)
        for field in ("ttft_slo_s", "tpot_slo_s"):
            out[field] = self.slo(field, given.get(field, math.inf))
        if unknown := given.keys() - out.keys():
            raise TypeError(f"Workload.of has no column {sorted(unknown)}")
        return out

    def array(self, field: str, given: ArrayLike) -> Any:
        values = np.asarray(given)
        if values.dtype.kind not in "iuf" or values.ndim > 1:
            raise UserError(f"workload {self.name!r}: {field} must be a list of numbers")
        if values.ndim and len(values) != self.rows:
            raise UserError(f"workload {self.name!r}: {field} has {len(values)} rows, arrival_s has {self.rows}")
        return np.broadcast_to(values, self.rows)

    def real(self, field: str, given: ArrayLike, low: float) -> F8:
        values: F8 = self.array(field, given).astype(np.float64)
        self.refuse(field, values, ~(np.isfinite(values) & (values >= low)), f"must be finite and {low:g} or more")
        return values

    def slo(self, field: str, given: ArrayLike) -> F8:
        values: F8 = self.array(field, given).astype(np.float64)
        self.refuse(field, values, ~(values > 0), "must be above 0 (inf for none)")
        return values

    def whole(self, field: str, given: ArrayLike, low: float, high: float) -> I8:
        values = self.array(field, given)
        good = (values >= low) & (values <= high)
        if values.dtype.kind == "f":
            good &= values == np.floor(values)
        self.refuse(field, values, ~good, f"must be a whole number in [{low:.0f}, {high:.0f}]")
        whole: I8 = values.astype(np.int64)
        return whole

    def refuse(self, field: str, values: Any, bad: Any, wanted: str) -> None:
        if bad.any():
            index = int(np.argmax(bad))
            raise UserError(f"workload {self.name!r}: {field}[{index}]={values[index]} {wanted}")

    def weights(self, given: Sequence[float] | None, names: tuple[str, ...]) -> tuple[float, ...]:
        weights = tuple(float(weight) for weight in given) if given is not None else (1.0,) * len(names)
        if len(weights) != len(names):
            raise UserError(f"workload {self.name!r}: {len(weights)} class weights for {len(names)} class names")
        for name, weight in zip(names, weights, strict=True):
            if not 0 < weight < math.inf:
                raise UserError(f"workload {self.name!r}: weight {weight} of class {name!r} is not above 0 and finite")
        return weights
