"""Prints a digest of the given runs: ``python -m tests.sim.digest NAMES FIRST LAST [KIND]`` (of ``CASES``), in a
process of its own."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tailrace import params
from tailrace.config import engine
from tailrace.latency import preset
from tailrace.registry import POLICIES
from tailrace.sim.instance import STUCK
from tailrace.sim.run import Instance
from tailrace.workloads import generate

from .cached_cases import tiered
from .cases import Case, draw, managing, parking, swapping

STEPS = 400
CASES: dict[str, Callable[[str, int], Case]] = {"swap": swapping, "park": parking, "tiered": tiered, "manage": managing}
ROOT = Path(__file__).resolve().parents[2]


def digest(run: Instance, steps: int = STEPS) -> str:
    """What a run did, down to the last bit, in its first ``steps`` steps."""
    assert run.advance(steps=steps) != STUCK
    hasher = hashlib.sha256()
    for part in (run.buffers.table, run.buffers.rows[["tier", "pending_tokens", "target_tokens"]], *run.records):
        hasher.update(part.tobytes())
    hasher.update(run.recorder.gaps.tobytes())
    return hasher.hexdigest()[:16]


def digests(name: str, first: int, last: int, make: Callable[[str, int], Case] = draw) -> list[str]:
    """Of the random cases ``first`` to ``last`` of policy ``name``."""
    return [digest(make(name, seed).instance()) for seed in range(first, last)]


def paper(name: str, requests: int) -> str:
    """Of the QBA paper's workload on its engine."""
    policy = POLICIES.get(name)
    workload = generate("qba", {"rate_rps": 32, "requests": requests})
    run = Instance(workload, policy, params.build(policy.Params, {}, name), engine("qba"), preset("qba"))
    return digest(run, 10**6)


def elsewhere(*args: str, **environ: str) -> list[str]:
    """The lines that this module prints for ``args`` in another process."""
    paths = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    command = [sys.executable, "-m", "tests.sim.digest", *args]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths, **environ}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.split()


if __name__ == "__main__":
    policy_names, start, end = sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3])
    for policy_name in policy_names:
        print(*digests(policy_name, start, end, CASES[sys.argv[4]] if sys.argv[4:] else draw))
