"""A sweep over policies and their parameters, held against one objective or two.

Of two objectives no setting need be best in both: the answer is the Pareto front, the
settings that no other beats in one without losing in the other, and one of them to start
with. That one has the smallest product of its distances from the best value of each.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .. import params, spec
from ..errors import UserError
from ..vllm_plugin.honour import settle
from . import runs
from .objective import Objective

__all__ = ["DEFAULT", "MOST_SETTINGS", "Setting", "Tuned", "expand", "front", "tune"]

DEFAULT: Final = "fcfs,sjf,srpt,psf,aa:aging_quantile=0.5|0.7|0.8|0.9|0.95,qba:k=2|3|5|8|12,aging_quantile=0.7|0.8|0.9"
"""What is tried unless the user says otherwise."""
MOST_SETTINGS: Final = 10_000
LEAST: Final = {"s": 1e-3, "tokens/s": 1e-3, "req/s": 1e-3, "tokens": 1.0, "": 1e-3}
"""By unit, what is added to both sides of a ratio, so that a best value of zero can be compared."""


@dataclass(frozen=True)
class Setting:
    """A policy with its parameters, and what it reached."""

    policy: str
    label: str
    params: dict[str, Any]
    values: tuple[float | None, ...]
    """One an objective, means over seeds."""
    intervals: tuple[list[float] | None, ...]
    """95 % over seeds, where there are several."""
    unfinished: float
    """Requests still there when the run ended; then percentiles are of the others, and the setting is no candidate."""
    load_state: str
    refused: str
    """Why vLLM cannot carry it; empty if it can."""
    ignored: list[str]
    """Engine rules it asks for and vLLM does without."""
    on_front: bool = False


@dataclass(frozen=True)
class Tuned:
    """What a search found."""

    objectives: list[Objective]
    settings: list[Setting]
    """The front first, each part in order of the first objective."""
    best: Setting | None
    """Of the front among those that vLLM carries, the one to start with."""
    document: dict[str, Any]
    """As `runs.compare` makes it."""

    @property
    def additional_config(self) -> str | None:
        """`best` as the value of vLLM's ``--additional-config``."""
        if self.best is None:
            return None
        return json.dumps({"tailrace": {"policy": self.best.policy, "params": self.best.params}})


def expand(text: str) -> list[str]:
    """Every policy that ``a:k=1|2,j=3|4,b`` stands for, by the order of writing.

    What names the same setting again is left out. Raises UserError for what is no policy, an
    empty alternative, and more than `MOST_SETTINGS`.
    """
    out = []
    for item in spec.split_list(text):
        head, equals, values = item.partition("=")  # a name may hold a colon: module:Class
        name, _, key = head.rpartition(":") if equals else (item, "", "")
        given = spec.parse(f"{name.replace(':', '.')}:{key}={values}")[1] if equals else {}
        choices = [[(key, v.strip()) for v in value.split("|")] for key, value in given.items()]
        for key, value in itertools.chain(*choices):
            if not value:
                raise UserError(f"{item!r}: {key} has an empty alternative; write {key}=1|2|3")
        product = itertools.islice(itertools.product(*choices), MOST_SETTINGS + 1)
        out += [spec.write(name, dict(chosen)) for chosen in product]
        if len(out) > MOST_SETTINGS:
            raise UserError(f"{text!r} are more than {MOST_SETTINGS:,} settings; try fewer values")
    distinct: dict[str, str] = {}
    for setting in out:
        distinct.setdefault(runs.parse_policy(setting).label, setting)
    return list(distinct.values())


def tune(
    base: runs.Job,
    policies: str,
    objectives: Sequence[Objective],
    seeds: Sequence[int] = (0,),
    workers: int = 0,
    cache: bool = True,
    done: Callable[[int], None] = lambda index: None,
) -> Tuned:
    """Run every setting and rank them. Raises UserError for a mistake in the texts, or an
    objective that this workload does not have."""
    texts = expand(policies)
    if cache:  # an objective that is not there shows after one run, which the search then has
        for objective in objectives:
            objective.of(runs.compare(base, texts[:1], seeds[:1], 1)[0]["results"][0])
    document, _ = runs.compare(base, texts, seeds, workers, cache, done)
    found = [_setting(text, result, objectives) for text, result in zip(texts, document["results"], strict=True)]
    better = [objective.better for objective in objectives]
    candidates = [setting for setting in found if _whole(setting)]
    edge = set(map(id, front(candidates, better)))
    marked = [dataclasses.replace(setting, on_front=id(setting) in edge) for setting in found]
    order = sorted(marked, key=lambda s: (not s.on_front, s.values[0] is None, -better[0] * (s.values[0] or 0.0)))
    carried = front([s for s in order if _whole(s) and not s.refused], better)
    return Tuned(list(objectives), order, _start(carried, objectives), document)


def _setting(text: str, result: dict[str, Any], objectives: Sequence[Objective]) -> Setting:
    policy, refused, ignored = runs.parse_policy(text), "", []
    try:
        ignored = [f"{rule}={value}" for rule, value in settle(policy.cls, policy.params)[1].items()]
    except UserError as error:
        refused = str(error)
    counts = result["counts"]
    return Setting(
        policy.name,
        policy.label,
        params.show(policy.params),
        tuple(objective.of(result) for objective in objectives),
        tuple(_interval(result, objective) for objective in objectives),
        counts["unfinished"],
        result["load_state"],
        refused,
        ignored,
    )


def _interval(result: dict[str, Any], objective: Objective) -> list[float] | None:
    record: Any = result
    for key in objective.path[:-1]:
        record = record.get(key) or {}
    found: list[float] | None = (record.get("ci") or {}).get(objective.path[-1])
    return found


def _whole(setting: Setting) -> bool:
    return setting.unfinished == 0 and None not in setting.values


def front(settings: Sequence[Setting], better: Sequence[int]) -> list[Setting]:
    """Those that no other beats in one objective and equals or beats in all; in their order."""

    def beats(a: Setting, b: Setting) -> bool:
        pairs = [(w * (x or 0.0), w * (y or 0.0)) for w, x, y in zip(better, a.values, b.values, strict=True)]
        return all(x >= y for x, y in pairs) and any(x > y for x, y in pairs)

    return [setting for setting in settings if not any(beats(other, setting) for other in settings)]


def _start(edge: Sequence[Setting], objectives: Sequence[Objective]) -> Setting | None:
    """Where the product of the ratios to the best of each objective is smallest; of equals the plainest."""
    if not edge:
        return None
    best = [
        (max if o.better > 0 else min)(setting.values[i] or 0.0 for setting in edge) for i, o in enumerate(objectives)
    ]

    def distance(setting: Setting) -> float:
        product = 1.0
        for o, value, top in zip(objectives, setting.values, best, strict=True):
            ratio = ((value or 0.0) + LEAST[o.unit]) / (top + LEAST[o.unit])
            product *= 1 / ratio if o.better > 0 else ratio
        return product

    return min(edge, key=lambda setting: (distance(setting), len(setting.label)))
