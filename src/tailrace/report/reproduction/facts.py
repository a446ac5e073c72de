"""Sentences that say what curves and numbers show; each is empty where the numbers cannot tell."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..facts import join
from ..values import number, plain
from .study import Curve, Value

__all__ = [
    "Axis",
    "against",
    "change",
    "crossing",
    "known",
    "leader",
    "lowest_at",
    "percent",
    "ranked",
    "ranking",
    "span",
    "spans",
]


@dataclass(frozen=True)
class Axis:
    """How places on an axis are named, such as ``32 req/s`` or ``k = 4``."""

    before: str = ""
    after: str = ""
    many: str = "points"
    """The places in the plural."""

    def at(self, x: float) -> str:
        """One place."""
        return f"{self.before}{plain(float(f'{x:.9g}'))}{self.after}"

    def among(self, xs: Sequence[float], places: Sequence[float]) -> str:
        """Several of ``places``; three and more neighbours as ``26 to 28``."""
        bare, runs = Axis(), list[list[float]]()
        for x in xs:
            if runs and places.index(x) == places.index(runs[-1][-1]) + 1:
                runs[-1].append(x)
            else:
                runs.append([x])
        parts = [
            text
            for run in runs
            for text in ([f"{bare.at(run[0])} to {bare.at(run[-1])}"] if len(run) > 2 else map(bare.at, run))
        ]
        return f"{self.before}{join(parts)}{self.after}"


def known(values: Mapping[str, Value | None]) -> dict[str, Value]:
    """Those that were measured."""
    return {label: v for label, v in values.items() if v is not None and v.measured is not None}


def ranked(values: Mapping[str, Value | None], unit: str = "s") -> str:
    """``a 1 s < b 2 s ≈ c 2.1 s``, ascending; ``≈`` where two neighbours are not told apart."""
    order = sorted(known(values).items(), key=lambda item: _number(item[1]))
    text = ""
    for place, (label, value) in enumerate(order):
        if place:
            before = order[place - 1][1]
            text += " ≈ " if value.tied(before) or value.measured == before.measured else " < "
        text += f"{label} {number(value.measured)} {unit}".rstrip()
    return text


def leader(curves: Mapping[str, Curve], what: str, axis: Axis) -> str:
    """Whose ``what`` is lowest at which of the places where several are known; two that are not told apart together."""
    lowest: dict[str, list[float]] = {}
    shared = [x for x in _places(curves.values()) if len(_at(curves, x)) > 1]
    for x in shared:
        first, second, *_ = sorted(_at(curves, x).items(), key=lambda item: _number(item[1]))
        tie = first[1].tied(second[1])
        lowest.setdefault(" and ".join(sorted((first[0], second[0]))) if tie else first[0], []).append(x)
    if not shared:
        return ""
    if len(lowest) == 1:
        where = f"at all {len(shared)} {axis.many}" if len(shared) > 1 else f"at {axis.at(shared[0])}"
        text = f"The {what} is lowest under {next(iter(lowest))} {where}"
    else:
        parts = [f"{label} at {axis.among(xs, shared)}" for label, xs in lowest.items()]
        text = f"The {what} is lowest under {'; under '.join(parts)}"
    return f"{text}."


def ranking(curves: Mapping[str, Curve], what: str, axis: Axis) -> str:
    """The order that most places show, and where another holds."""
    shared = [x for x in _places(curves.values()) if len(_at(curves, x)) == len(curves) > 1]
    orders = {x: _order({label: curve[x] for label, curve in curves.items()}) for x in shared}
    if not orders:
        return ""
    (usual, times), *others = Counter(orders.values()).most_common()
    if not others:
        where = f"at all {times} {axis.many}" if times > 1 else f"at {axis.at(shared[0])}"
        return f"The {what} has the order {usual} {where}."
    rest = [f"{order} at {axis.among([x for x in shared if orders[x] == order], shared)}" for order, _ in others]
    return f"The {what} has the order {usual} at {times} of {len(shared)} {axis.many}; {'; '.join(rest)}."


def _order(values: Mapping[str, Value]) -> str:
    """``a < b ≈ c``, ascending."""
    order = sorted(values.items(), key=lambda item: _number(item[1]))
    text = order[0][0]
    for (_, before), (label, value) in itertools.pairwise(order):
        text += f" {'≈' if value.tied(before) else '<'} {label}"
    return text


def crossing(curves: Mapping[str, Curve], a: str, b: str, what: str, axis: Axis) -> str:
    """Where ``what`` of ``a`` lies below that of ``b`` and where above."""
    if a not in curves or b not in curves:
        return ""
    pairs = {x: _at({a: curves[a], b: curves[b]}, x) for x in _places([curves[a], curves[b]])}
    both = {x: pair for x, pair in pairs.items() if len(pair) == 2}
    tied = [x for x, pair in both.items() if pair[a].tied(pair[b]) or pair[a].measured == pair[b].measured]
    signs = {x: _number(pair[a]) < _number(pair[b]) for x, pair in both.items() if x not in tied}
    xs, every = list(signs), list(both)
    if not xs:
        return f"{a}'s {what} is nowhere told apart from {b}'s." if tied else ""
    close = f"; not told apart at {axis.among(tied, every)}" if tied else ""
    side = {True: "below", False: "above"}
    places = {want: axis.among([x for x in xs if signs[x] is want], every) for want in set(signs.values())}
    first, *others = [signs[xs[0]], *(set(signs.values()) - {signs[xs[0]]})]
    text = f"{a}'s {what} is {side[first]} {b}'s at {places[first]}"
    return text + "".join(f", {side[other]} it at {places[other]}" for other in others) + f"{close}."


def against(curves: Mapping[str, Curve], a: str, b: str, what: str, axis: Axis) -> str:
    """How far ``what`` of ``a`` is from that of ``b`` at the last place where both are known."""
    if a not in curves or b not in curves:
        return ""
    pair = {a: curves[a], b: curves[b]}
    shared = [x for x in _places(pair.values()) if len(_at(pair, x)) == 2 and curves[b][x].measured]
    if not shared:
        return ""
    if curves[a][shared[-1]].tied(curves[b][shared[-1]]):
        return f"At {axis.at(shared[-1])} the two are not told apart."
    by = 100 * (_number(curves[a][shared[-1]]) / _number(curves[b][shared[-1]]) - 1)
    return f"At {axis.at(shared[-1])} {a}'s {what} is {abs(by):.0f} % {'below' if by < 0 else 'above'} {b}'s."


def change(curve: Curve) -> str:
    """``1 → 1.5 (+50 %)``: the ends of a curve, where two places are known."""
    known_ones = [_number(v) for v in curve.values() if v.measured is not None]
    if len(known_ones) < 2:
        return ""
    first, last = known_ones[0], known_ones[-1]
    by = f" ({percent(last / first - 1)})" if first else ""
    return f"{number(first)} → {number(last)}{by}"


def percent(share: float) -> str:
    """``+5 %`` or ``−5 %``."""
    return f"{100 * share:+.0f} %".replace("-", "−")


def lowest_at(curve: Curve, what: str, axis: Axis, unit: str = "s") -> str:
    """Where ``what`` is lowest and where highest."""
    points = {x: _number(v) for x, v in curve.items() if v.measured is not None}
    if len(points) < 2:
        return ""
    low, high = min(points, key=points.__getitem__), max(points, key=points.__getitem__)
    near = [x for x in points if x != low and curve[x].tied(curve[low])]
    tie = f"; not told apart from that at {axis.among(near, list(points))}" if near else ""
    return (
        f"{what} is lowest at {axis.at(low)} ({number(points[low])} {unit}{tie}) and highest at {axis.at(high)} "
        f"({number(points[high])} {unit})."
    )


def span(values: Iterable[float]) -> str:
    """``1`` or ``1 to 3``."""
    values = list(values)
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def spans(by_label: Mapping[str, Sequence[float]]) -> str:
    """``1 to 3 for a and 2 for b``; empty labels are left out."""
    parts = [f"{span(values)} for {label}" for label, values in by_label.items() if values]
    return join(parts) if parts else ""


def _places(curves: Iterable[Curve]) -> list[float]:
    return sorted({x for curve in curves for x in curve})


def _at(curves: Mapping[str, Curve], x: float) -> dict[str, Value]:
    return known({label: curve.get(x) for label, curve in curves.items()})


def _number(value: Value) -> float:
    assert value.measured is not None
    return value.measured
