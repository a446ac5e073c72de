"""A burst of long and short requests through real vLLM, under its own order and under ours.

Every run is a fresh engine in a process of its own (`vllm_plugin/online.py`); all see the same
requests before the same engine steps. A burst, not a steady load: arrivals come at about 1.4
times what the engine serves, so a queue forms, and they go on long enough for a policy to
neglect someone. All at once would not do: then no short arrives while a long one waits.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..errors import UserError
from ..params import show
from ..vllm_plugin.honour import settle
from ..vllm_plugin.online import Ask, Memory, Served
from .runs import parse_policies

__all__ = ["BURST", "STOCK", "Burst", "claims", "e2e", "pair", "plan", "plugin", "rows", "run"]

STOCK: Final = "stock"
"""vLLM's own scheduler (fcfs), without the plugin."""

ENVIRONMENT: Final = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
}


@dataclass(frozen=True)
class Burst:
    """What arrives; lengths are drawn uniformly between the two ends."""

    longs: int = 40
    shorts: int = 160
    over_steps: int = 1500
    """Arrivals are spread uniformly over so many engine steps; 0 = all before the first."""
    long_output: tuple[int, int] = (100, 500)
    short_output: tuple[int, int] = (16, 48)
    long_prompt: int = 64
    short_prompt: int = 32
    max_seqs: int = 8
    seed: int = 0

    def __str__(self) -> str:
        when = f"over {self.over_steps} steps" if self.over_steps else "at once"
        return (
            f"{self.longs} long ({self.long_output[0]}-{self.long_output[1]} output tokens) and "
            f"{self.shorts} short ({self.short_output[0]}-{self.short_output[1]}) {when}, "
            f"max_num_seqs {self.max_seqs}, seed {self.seed}"
        )


BURST: Final = Burst()
ALIKE: Final[dict[str, Any]] = {"long_output": (60, 120), "short_output": (60, 120), "long_prompt": 32}


def plan(burst: Burst) -> list[Ask]:
    """The requests in order of arrival; long and short are shuffled."""
    rng = np.random.default_rng(burst.seed)
    n = burst.longs + burst.shorts
    long = rng.permutation(np.arange(n) < burst.longs)
    steps = np.sort(rng.integers(0, burst.over_steps + 1, n))
    lengths = [rng.integers(low, high + 1, n) for low, high in (burst.short_output, burst.long_output)]
    output = np.where(long, lengths[1], lengths[0])
    prompt = np.where(long, burst.long_prompt, burst.short_prompt)
    return [Ask(int(s), int(p), int(o), bool(x)) for s, p, o, x in zip(steps, prompt, output, long, strict=True)]


def plugin(text: str) -> dict[str, dict[str, Any] | None]:
    """The plugin's settings by policy of ``stock,fcfs,qba:k=3``; None for stock. Raises UserError."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    ours = ",".join(part for part in parts if part != STOCK)
    found: dict[str, dict[str, Any] | None] = {STOCK: None} if STOCK in parts else {}
    for policy in parse_policies(ours) if ours else []:
        settle(policy.cls, policy.params)
        found[policy.label] = {"policy": policy.name, "params": show(policy.params)}
    if not found:
        raise UserError("no policy is named; give stock,qba or the like")
    return found


def run(
    bursts: Sequence[Burst], plugins: Sequence[dict[str, Any] | None], memories: Sequence[Memory] = ()
) -> list[list[Served]]:
    """`online.serve` in a process of its own, once or with one memory after another. Raises UserError
    with vLLM's last line if it fails."""
    asks = [plan(burst) for burst in bursts]
    wanted = {"bursts": asks, "max_seqs": bursts[0].max_seqs, "plugins": list(plugins), "memories": memories}
    environment = {"VLLM_LOGGING_LEVEL": "ERROR", **os.environ, **ENVIRONMENT}
    with tempfile.TemporaryDirectory(prefix="tailrace-live-") as folder:
        out = Path(folder) / "served.json"
        call = [sys.executable, "-m", "tailrace.vllm_plugin.online", str(out)]
        ended = subprocess.run(call, input=json.dumps(wanted), env=environment, capture_output=True, text=True)
        if ended.returncode or not out.exists():
            print(ended.stderr, file=sys.stderr)
            last = (ended.stderr.strip().splitlines() or ["no output"])[-1]
            raise UserError(f"vLLM ended with status {ended.returncode}: {last}")
        return [[Served(**served) for served in runs] for runs in json.loads(out.read_text())]


def e2e(burst: Burst, served: Served, long: bool, quantile: float, unit: str = "s") -> float:
    """A quantile of the long or short requests' E2E, in seconds or engine steps."""
    values = served.e2e_s if unit == "s" else served.e2e_steps
    return float(np.quantile([v for v, ask in zip(values, plan(burst), strict=True) if ask.long == long], quantile))


def _row(burst: Burst, experiment: str, policy: str, metric: str, measured: float) -> dict[str, Any]:
    about = {"experiment": experiment, "policy": policy, "metric": metric, "at": str(burst)}
    return {**about, "paper": None, "measured": measured, "ci": None, "seeds": 1}


def rows(burst: Burst, policy: str, served: Served) -> list[dict[str, Any]]:
    """A run's figures: E2E by class in seconds and in steps, and output tokens a second."""
    figures = {
        f"{name} e2e {label} {unit}": e2e(burst, served, long, q, unit)
        for unit in ("s", "steps")
        for long, name in ((False, "short"), (True, "long"))
        for label, q in (("p50", 0.5), ("p99", 0.99))
    }
    figures["output tokens/s"] = served.output_tokens / served.seconds
    return [_row(burst, "burst", policy, metric, value) for metric, value in figures.items()]


def claims(burst: Burst, found: dict[str, Served]) -> list[dict[str, Any]]:
    """What the burst is to show, of those policies that ran."""
    made = []
    runs = {label.partition(":")[0]: served for label, served in found.items()}
    if {STOCK, "fcfs"} <= set(runs):
        first, second = runs[STOCK].order, runs["fcfs"].order
        differ = [i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]
        why = f"{len(first)} requests, {len(differ)} places differ" + (f", first {differ[0]}" if differ else "")
        claim = "the plugin's fcfs finishes requests in stock vLLM's order"
        made.append({"claim": claim, "holds": not differ, "why": why})
    if {STOCK, "qba"} <= set(runs):
        ratio, why = _against(burst, runs["qba"], runs[STOCK], long=False)
        made.append({"claim": "qba's short P99 is at most half of stock's", "holds": ratio <= 0.5, "why": why})
    if {"sjf", "qba"} <= set(runs):
        ratio, why = _against(burst, runs["qba"], runs["sjf"], long=True)
        made.append({"claim": "qba's long P99 is below sjf's", "holds": ratio < 1, "why": why})
    return made


def _against(burst: Burst, ours: Served, theirs: Served, long: bool) -> tuple[float, str]:
    """The ratio of two P99 E2E in seconds, and a line about it that also gives it in steps."""
    a, b, c, d = (e2e(burst, served, long, 0.99, unit) for unit in ("s", "steps") for served in (ours, theirs))
    return a / b, f"{a:.2f} s against {b:.2f} s: {a / b:.2f} of it; counted in engine steps {c / d:.2f}"


def pair(burst: Burst, settings: dict[str, dict[str, Any] | None], count: int) -> list[dict[str, Any]]:
    """Saturated output tokens a second against stock, ``count`` pairs a policy; rows.

    All engines share a process and step in turn (`online.serve`). Each pair is a burst of its
    own seed in which all requests come at once, and what counts is the time while every seat is
    taken. Those called long are no longer than the others: a step over longer contexts takes
    longer, so an order that gathers the long ones would look slow or fast for its order's sake.
    """
    names = [STOCK, *(name for name in settings if name != STOCK)]
    alike = replace(burst, over_steps=0, **ALIKE)
    bursts = [replace(alike, seed=burst.seed + number) for number in range(count)]
    ratios: dict[tuple[str, str], list[float]] = {}
    for stock, *others in run(bursts, [settings.get(name) for name in names]):
        for name, served in zip(names[1:], others, strict=True):
            tokens = served.busy_tokens / stock.busy_tokens
            ratios.setdefault((name, "wall"), []).append(tokens * stock.busy_s / served.busy_s)
            ratios.setdefault((name, "processor"), []).append(tokens * stock.busy_cpu_s / served.busy_cpu_s)
    return [
        _row(bursts[min(i, count - 1)], "pairs", name, f"output tokens/s ({clock} time) against stock, {label}", value)
        for (name, clock), values in ratios.items()
        for i, (label, value) in enumerate(
            [*((f"pair {i + 1}", value) for i, value in enumerate(values)), ("median", float(np.median(values)))]
        )
    ]
