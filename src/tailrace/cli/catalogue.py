"""``tailrace policies``: everything that can be named on the command line."""

from __future__ import annotations

import inspect
import json
import math
from typing import Any

from rich.table import Table

from .. import latency, params, workloads
from ..config import ENGINES
from ..hooks import KEYS
from ..registry import POLICIES
from .console import console

__all__ = ["catalogue", "show"]


def _parameters(cls: type[Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": p.name,
            "type": p.kind.__name__,
            "default": p.default,
            "unit": p.spec.unit,
            "range": p.spec.range,
            "doc": p.spec.doc,
        }
        for p in params.describe(cls)
    ]


def catalogue() -> dict[str, Any]:
    """All names with their parameters, as one JSON-able object."""
    found = {name: POLICIES.get(name) for name in POLICIES.names()}
    return {
        "policies": [
            {
                "name": name,
                "doc": inspect.cleandoc(cls.__doc__ or ""),
                "source": cls.source,
                "keys": KEYS[cls.keys],
                "parameters": _parameters(cls.Params),
                "rules": cls.rules(params.build(cls.Params, {}, name)),
            }
            for name, cls in found.items()
        ],
        "workloads": [
            {"name": name, "doc": inspect.cleandoc(g.params.__doc__ or ""), "parameters": _parameters(g.params)}
            for name, g in workloads.generators().items()
        ],
        "lengths": [
            {"name": name, "form": source.form, "doc": source.about}
            for name, source in workloads.length_sources().items()
        ],
        "formats": list(workloads.formats()),
        "predictions": [{"name": name, "parameters": _parameters(cls)} for name, cls in workloads.settings().items()],
        "slo": [{"name": name, **_finite(preset._asdict())} for name, preset in workloads.PRESETS.items()],
        "engines": [config.show() for config in ENGINES.values()],
        "latency": [preset.show() for preset in latency.PRESETS.values()],
    }


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity: null for an objective that is not set."""
    return {key: None if value == math.inf else value for key, value in values.items()}


def show(as_json: bool) -> None:
    """Print the catalogue."""
    found = catalogue()
    if as_json:
        print(json.dumps(found, indent=2, default=str))
        return
    out = console()
    table = Table("policy", "what it does", "parameters (default; range)", "source", title="Policies", show_lines=True)
    for item in found["policies"]:
        table.add_row(
            item["name"],
            item["doc"].partition("\n\n")[0].replace("\n", " "),
            _lines(item["parameters"]),
            item["source"],
        )
    out.print(table)
    table = Table(
        "workload", "what it makes", "parameters (default; range)", title="Workload generators", show_lines=True
    )
    for item in found["workloads"]:
        table.add_row(item["name"], item["doc"].partition("\n\n")[0].replace("\n", " "), _lines(item["parameters"]))
    out.print(table)
    table = Table("lengths", "what they are", title="Lengths (lengths=NAME@SHARE + … of a generator)")
    for item in found["lengths"]:
        table.add_row(item["name"], item["doc"] + (f"; {item['form']}" if item["form"] != item["name"] else ""))
    out.print(table)
    table = Table("predictions", "parameters (default; range)", title="What policies are told (--predictions)")
    for item in found["predictions"]:
        table.add_row(item["name"], _lines(item["parameters"]))
    out.print(table)
    table = Table("objectives", "TTFT (s)", "TPOT (s)", "where from", title="Objectives (--slo)")
    for item in found["slo"]:
        times = ("none" if item[key] is None else f"{item[key]:g}" for key in ("ttft_s", "tpot_s"))
        table.add_row(item["name"], *times, item["source"])
    out.print(table)
    table = Table("engine", "token budget", "max seqs", "KV tokens", title="Engines (--engine)")
    for item in found["engines"]:
        kv = str(item["kv_tokens"]) if item["kv_tokens"] else "the device's"
        table.add_row(item["name"], str(item["token_budget"]), str(item["max_seqs"] or "no cap"), kv)
    out.print(table)
    table = Table("latency", "what it is", title="Latency presets (--latency)")
    for item in found["latency"]:
        table.add_row(item["name"], item["summary"])
    out.print(table)


def _lines(parameters: list[dict[str, Any]]) -> str:
    lines = []
    for p in parameters:
        default = {None: "required", "": "none"}.get(p["default"], p["default"])
        lines.append(f"{p['name']} ({default}; {p['range']} {p['unit']}".rstrip() + f"): {p['doc']}")
    return "\n".join(lines)
