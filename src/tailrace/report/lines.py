"""Lines beside a table: what was run, told what, on which engine, with which seeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .values import MISSING, plain

__all__ = ["engine_line", "note", "predictions_line", "seeds_line"]


def seeds_line(document: Mapping[str, Any]) -> str:
    """``seed 0``, or ``seeds 0, 1, 2 (means)``."""
    seeds = list(document.get("seeds") or [])
    if len(seeds) < 2:
        return f"seed {seeds[0]}" if seeds else "no seed"
    shown = f"{seeds[0]} to {seeds[-1]}" if seeds == list(range(seeds[0], seeds[0] + len(seeds))) else plain(seeds)
    return f"seeds {shown} (means)"


def engine_line(document: Mapping[str, Any]) -> str:
    """The engine and its size, in a few words."""
    engine = document.get("engine") or {}
    cap = engine.get("max_seqs")
    parts = [
        str(engine.get("name", MISSING)),
        f"{plain(engine.get('token_budget'))} tokens a step",
        f"at most {plain(cap)} sequences" if cap else "no cap on sequences",
        f"{plain(engine.get('kv_tokens'))} KV tokens",
    ]
    return ", ".join(parts)


def predictions_line(document: Mapping[str, Any]) -> str:
    """The prediction settings of the results, each once."""
    return "; ".join(dict.fromkeys(str(r.get("predictions", MISSING)) for r in document["results"])) or MISSING


def note(document: Mapping[str, Any]) -> str:
    """One line under a table: predictions, engine, seeds, and what bold means."""
    parts = [f"predictions {predictions_line(document)}", f"engine {engine_line(document)}"]
    latency = document["engine"].get("latency") or {}
    if latency.get("name"):
        parts.append(f"step times {latency['name']}: {latency.get('summary', '')}".rstrip(": "))
    parts.append(seeds_line(document))
    if len(document["results"]) > 1:
        parts.append("bold: best, and who ties with it" + _how_tied(document))
    return " · ".join(parts)


def _how_tied(document: Mapping[str, Any]) -> str:
    several = len(document.get("seeds") or []) > 1
    return " (the 95 % interval of their difference, paired by seed, holds 0)" if several else ""
