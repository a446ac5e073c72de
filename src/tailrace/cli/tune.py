"""``tailrace tune``: which policy, with which parameters, for this traffic?"""

from __future__ import annotations

import dataclasses
import shlex
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from .. import files
from ..report import front, saving
from ..report.values import duration, number
from ..studies import objective, runs
from ..studies import tune as study
from .console import console, print_json
from .progress import progress

__all__ = ["Options", "run"]


@dataclass(frozen=True)
class Options:
    """What ``tune`` is asked to do besides the job."""

    objective: str
    policies: str
    seeds: int
    plot: str
    jobs: int
    cache: bool
    as_json: bool


def run(job: runs.Job, options: Options) -> None:
    """Print the settings, the front first, and the one to start with."""
    objectives = objective.parse(options.objective)
    if options.plot:
        saving.check_suffix(options.plot)  # before the long part
        files.check_place(options.plot)
    total = len(study.expand(options.policies)) * options.seeds
    with progress(total, quiet=options.as_json) as done:
        tuned = study.tune(job, options.policies, objectives, range(options.seeds), options.jobs, options.cache, done)
    document = as_document(tuned)
    if options.plot:
        front.write(document, options.plot)
    if options.as_json:
        print_json(document)
        return
    _print(tuned)
    if options.plot:
        print(f"figure: {options.plot}")


def as_document(tuned: study.Tuned) -> dict[str, Any]:
    """One JSON object: what was asked, every setting, the front and the choice."""
    best = tuned.best
    return {
        "study": "tune",
        "workload": tuned.document["workload"],
        "engine": tuned.document["engine"],
        "seeds": tuned.document["seeds"],
        "predictions": tuned.document["results"][0]["predictions"],
        "objectives": [
            {"name": o.text, "unit": o.unit, "better": "larger" if o.better > 0 else "smaller"}
            for o in tuned.objectives
        ],
        "settings": [dataclasses.asdict(setting) for setting in tuned.settings],
        "best": None
        if best is None
        else {"label": best.label, "values": best.values, "additional_config": tuned.additional_config},
    }


def _print(tuned: study.Tuned) -> None:
    out, units = console(), [o.unit for o in tuned.objectives]
    table = Table("", "setting", *(o.text for o in tuned.objectives), "load", "in vLLM")
    for setting in tuned.settings:
        mark = "►" if setting is tuned.best or setting == tuned.best else "●" if setting.on_front else ""
        cells = [_cell(*each) for each in zip(setting.values, setting.intervals, units, strict=True)]
        carried = "no" if setting.refused else f"without {', '.join(setting.ignored)}" if setting.ignored else "yes"
        table.add_row(mark, setting.label, *cells, setting.load_state, carried)
    out.print(table)
    if any(interval for setting in tuned.settings for interval in setting.intervals):
        print("±: 95 % confidence over seeds")
    print("● on the Pareto front: no other setting is better in one objective without being worse in the other")
    if tuned.best is None:
        print("no setting that vLLM carries has completed all its requests; there is none to recommend")
        return
    print("► to start with: the smallest product of the ratios to the best of each, among those that vLLM carries")
    print(f"  --scheduler-cls tailrace.vllm_plugin.TailraceScheduler --additional-config {_quoted(tuned)}")


def _quoted(tuned: study.Tuned) -> str:
    return shlex.quote(tuned.additional_config or "")


def _cell(value: float | None, interval: list[float] | None, unit: str) -> str:
    def shown(x: float) -> str:
        return duration(x) if unit == "s" else number(x)

    if value is None:
        return "–"
    return f"{shown(value)} ± {shown((interval[1] - interval[0]) / 2)}" if interval else shown(value)
