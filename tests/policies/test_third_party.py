"""A policy from a file of the user's: compiled, kept on disk, and compiled anew when it is edited."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"

POLICY = """
from typing import Annotated, Any, NamedTuple

from tailrace import hooks
from tailrace.hooks import Policy, policy
from tailrace.params import P


class Params(NamedTuple):
    sign: Annotated[int, P("1 or -1", low=-1, high=1)] = 1


@policy("mine", source="a test")
class Mine(Policy):
    Params = Params
    keys = hooks.STATIC

    @staticmethod
    def rules(params: Any) -> dict[str, Any]:
        return {"order_scope": "waiting"}

    @staticmethod
    def key(table, row, now, state, scratch, cost, params):
        return 0, SIGN * params.sign * float(table.prompt_tokens[row])
"""

SCRIPT = """
import json, sys
import numpy as np
from tailrace import params
from tailrace.config import engine
from tailrace.latency import preset
from tailrace.registry import POLICIES
from tailrace.sim import instance
from tailrace.sim.run import simulate
from tailrace.workloads.workload import Workload

policy = POLICIES.get("mypolicies:Mine")
n = 12
workload = Workload.of(np.zeros(n), 10 + (np.arange(n) * 5) % 12, 3, name="w")
config = engine("vllm_v1", {"max_seqs": 1, "kv_tokens": 512, "token_budget": 64})
requests = simulate(workload, policy, params.build(policy.Params, {}, "mine"), config, preset("qba")).requests
stats = [d.stats for d in instance.advance._compiled.values()] if hasattr(instance.advance, "_compiled") else []
print(json.dumps({
    "name": policy.name,
    "order": [int(workload.prompt_tokens[i]) for i in np.argsort(requests.started_s, kind="stable")],
    "hits": sum(sum(s.cache_hits.values()) for s in stats),
    "misses": sum(sum(s.cache_misses.values()) for s in stats),
}))
"""


def run(folder: Path, **environ: str) -> Any:
    env = {**os.environ, "PYTHONPATH": str(SOURCE), "TAILRACE_CACHE_DIR": str(folder / "cache"), **environ}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def write(folder: Path, sign: int) -> None:
    (folder / "mypolicies.py").write_text(POLICY.replace("SIGN", str(sign)))


@pytest.mark.slow
def test_a_policy_of_ones_own(tmp_path: Path) -> None:
    write(tmp_path, 1)
    first, second = run(tmp_path), run(tmp_path)
    assert first["name"] == "mine"
    assert first["order"] == sorted(first["order"])
    assert (first["hits"], first["misses"]) == (0, 1)
    assert (second["hits"], second["misses"]) == (1, 0), "the second process compiled again"
    assert second["order"] == first["order"]
    write(tmp_path, -1)
    edited = run(tmp_path)
    assert (edited["hits"], edited["misses"]) == (0, 1), "an edited policy ran as before"
    assert edited["order"] == first["order"][::-1]
    assert run(tmp_path, NUMBA_DISABLE_JIT="1")["order"] == edited["order"]
