"""What a search is for: one number of a result, by a short name, and which way is better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..errors import UserError, nearest
from ..metrics import STATISTICS

__all__ = ["EXAMPLES", "Objective", "parse"]

TIMES: Final = ("wait", "ttft", "tpot", "tbt", "e2e")
OTHERS: Final[dict[str, tuple[tuple[str, ...], int, str]]] = {
    "output_tokens_per_s": (("throughput", "output_tokens_per_s"), 1, "tokens/s"),
    "total_tokens_per_s": (("throughput", "total_tokens_per_s"), 1, "tokens/s"),
    "attainment": (("slo", "attainment"), 1, ""),
    "goodput_rps": (("slo", "goodput_rps"), 1, "req/s"),
    "tdg_ratio": (("gain", "tdg_ratio"), 1, ""),
    "preemptions": (("counts", "preemptions"), -1, ""),
    "recomputed_tokens": (("counts", "recomputed_tokens"), -1, "tokens"),
}
GROUPS: Final = {"class": "by_class", "tenant": "by_tenant"}
UNSET: Final = {
    "slo": "; it sets no SLOs, so nothing can attain them; give --slo",
    "gain": "; it sets no TTFT SLOs, so no token is due; give --slo",
}
EXAMPLES: Final = "e2e.p99, short.ttft.p99, class=gold.tbt.p99, tenant=a.e2e.mean, goodput_rps"


@dataclass(frozen=True)
class Objective:
    """One number to make small or large."""

    text: str
    """As the user named it."""
    path: tuple[str, ...]
    """Keys that lead to it in a result."""
    better: int
    """-1: smaller is better; 1: larger."""
    unit: str

    def of(self, result: Mapping[str, Any]) -> float | None:
        """Its value in a result; None where nothing was measured. Raises UserError if the run has no such group."""
        found: Any = result
        for key in self.path:
            if not isinstance(found, Mapping) or key not in found:
                raise UserError(f"objective {self.text!r}: this workload has no {key!r}{_there(key, found)}")
            found = found[key]
        return None if found is None else float(found)

    @property
    def words(self) -> str:
        """For an axis."""
        return f"{self.text} ({self.unit})" if self.unit else self.text


def _there(key: str, found: Any) -> str:
    """What there is instead of ``key``, or why it is not there."""
    if key in UNSET:
        return UNSET[key]
    return f"; there are {', '.join(map(str, found))}" if isinstance(found, Mapping) and found else ""


def parse(text: str) -> list[Objective]:
    """One objective or two, comma separated: ``[GROUP.]METRIC.STATISTIC`` or a name of `OTHERS`.

    GROUP is ``short`` or ``long`` (by true length), ``class=NAME`` or ``tenant=NAME``.
    Raises UserError for a name that is none, more than two, or the same twice.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not 1 <= len(names) <= 2:
        raise UserError(f"--objective {text!r}: name one or two; e.g. {EXAMPLES}")
    if len(set(names)) < len(names):
        raise UserError(f"--objective {text!r}: the two are the same; name one, or another")
    return [_one(name) for name in names]


def _one(name: str) -> Objective:
    group, rest = _group(name)
    if rest in OTHERS:
        path, better, unit = OTHERS[rest]
        if group and path[0] == "throughput":
            raise UserError(f"objective {name!r}: throughput is not kept by group; ask for {rest!r}")
        return Objective(name, (*group, *path), better, unit)
    metric, dot, statistic = rest.rpartition(".")
    if not dot or metric not in TIMES:
        known = [*TIMES, *OTHERS]
        raise UserError(f"objective {name!r} is not known{nearest(metric or rest, known)}; e.g. {EXAMPLES}")
    if statistic not in STATISTICS:
        raise UserError(f"objective {name!r}: no statistic {statistic!r}{nearest(statistic, STATISTICS)}")
    return Objective(name, (*group, "metrics", f"{metric}_s", statistic), -1, "s")


def _group(name: str) -> tuple[tuple[str, ...], str]:
    """``(keys that lead to the group, the rest)``; a group's own name may hold dots."""
    for length in ("short", "long"):
        if name.startswith(f"{length}."):
            return ("by_true_class", length), name[len(length) + 1 :]
    kind, equals, rest = name.partition("=")
    if not equals:
        return (), name
    if kind not in GROUPS:
        known = "short, long, class=NAME and tenant=NAME"
        raise UserError(f"objective {name!r}: groups are {known}{nearest(kind, GROUPS)}")
    for tail in OTHERS:
        if rest.endswith(f".{tail}"):
            return (GROUPS[kind], rest[: -len(tail) - 1]), tail
    group, dot, metric = rest.rpartition(".")
    group, second, before = group.rpartition(".")
    if not dot or not second or not group:
        raise UserError(f"objective {name!r}: write {kind}=NAME.METRIC.STATISTIC; e.g. {EXAMPLES}")
    return (GROUPS[kind], group), f"{before}.{metric}"
