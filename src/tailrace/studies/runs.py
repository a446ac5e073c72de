"""What to run, as texts: resolved once, run in parallel, cached, resumable.

A `Job` is all a worker process needs. Its inputs are checked before anything starts, so a
user's mistake never surfaces from the middle of a sweep.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .. import _jit, files, latency, metrics, params, spec, workloads
from ..config import ENGINES, EngineConfig, engine
from ..errors import UserError, nearest
from ..hooks import Policy
from ..registry import POLICIES
from ..sim import run
from ..sim.run import Result
from ..sim.watch import Watched, watch
from ..workloads.workload import Workload
from . import pool, store

__all__ = ["Job", "PolicySpec", "compare", "parse_engine", "parse_policies", "parse_policy", "run_all", "simulate"]
__all__ += ["instance_of", "watch_job", "workload_of"]

DEFAULT_LATENCY: Final = {"qba": "qba"}
"""By engine; the others get the 7B-class A100."""
OTHER_LATENCY: Final = "qwen2-7b-a100-derived"


@dataclass(frozen=True)
class PolicySpec:
    """A policy as the user named it."""

    name: str
    cls: type[Policy]
    params: Any

    @property
    def label(self) -> str:
        """Name with the parameters that differ from their defaults."""
        defaults = {item.name: item.default for item in params.describe(type(self.params))}
        changed = {key: value for key, value in params.show(self.params).items() if value != defaults[key]}
        return spec.write(self.name, changed)


@dataclass(frozen=True)
class Job:
    """One run, as texts."""

    workload: str
    policy: str
    engine: str = "vllm_v1"
    latency: str = ""
    predictions: str = "oracle"
    seed: int | None = None
    limit: int | None = None
    rate_scale: float = 1.0
    format: str | None = None
    service: workloads.Service = workloads.UNCHANGED


def parse_policy(text: str) -> PolicySpec:
    """``NAME[:k=v,…]``, NAME registered or ``pkg.mod:Class``. Raises UserError."""
    head, _, rest = text.partition(":")
    second, _, more = rest.partition(":")
    if rest and "=" not in second.partition(",")[0] and _is_module(head):  # module:Class[:k=v,…]
        head, rest = f"{head}:{second}", more
    _, given = spec.parse(f"{head.partition(':')[0]}:{rest}")
    cls: Any = POLICIES.get(head)
    if not issubclass(cls, Policy):
        raise UserError(f"{head!r} is not a policy: it must subclass tailrace.Policy")
    if not cls.name:
        raise UserError(f'{head!r} is not registered: decorate the class with @tailrace.policy("name")')
    return PolicySpec(cls.name, cls, params.build(cls.Params, given, f"policy {cls.name}"))


def _is_module(head: str) -> bool:
    """Whether ``head`` names a module or a file, even one called like a policy."""
    if head not in POLICIES.names() or os.sep in head or head.endswith(".py"):
        return True
    return Path(f"{head}.py").exists() or importlib.util.find_spec(head) is not None


def parse_policies(text: str) -> list[PolicySpec]:
    """A list of them; each may appear once with the same parameters."""
    found = [parse_policy(item) for item in spec.split_list(text)]
    labels = [item.label for item in found]
    for label in labels:
        if labels.count(label) > 1:
            raise UserError(f"policy {label!r} is named twice")
    return found


def parse_engine(text: str) -> EngineConfig:
    """``PRESET[:k=v,…]``, or a TOML, YAML or JSON file of them. Raises UserError."""
    if files.is_config(text):
        given = files.read_config(text)
        name = given.pop("engine", "vllm_v1")
        if not isinstance(name, str) or name not in ENGINES:
            raise UserError(f"{text}: engine={name!r} is not a preset{nearest(str(name), ENGINES)}")
        return engine(name, given)
    name, values = spec.parse(text)
    return engine(name, values)


def parse_latency(text: str, config: EngineConfig) -> latency.Latency:
    """The latency model, by default the one that goes with the engine."""
    return latency.build(text or DEFAULT_LATENCY.get(config.name, OTHER_LATENCY))


@functools.lru_cache(maxsize=4)
def load_workload(
    text: str,
    seed: int | None,
    limit: int | None,
    predictions: str,
    rate_scale: float,
    format: str | None,
    service: workloads.Service = workloads.UNCHANGED,
) -> Workload:
    """The job's workload with what its requests are promised, and its predictions."""
    if not rate_scale > 0:
        raise UserError(f"rate scale {rate_scale:g} must be above 0")
    workload = workloads.load(text, seed=seed, limit=limit, format=format)
    if rate_scale != 1.0:
        workload = workload.scaled(rate_scale)
    return workloads.apply(workloads.promised(workload, service), predictions)


def workload_of(job: Job) -> Workload:
    """The job's workload. Raises UserError."""
    return _workload(job, job.seed)


def _workload(job: Job, seed: int | None) -> Workload:
    return load_workload(job.workload, seed, job.limit, job.predictions, job.rate_scale, job.format, job.service)


def _resolve(job: Job) -> tuple[Workload, PolicySpec, EngineConfig, latency.Latency, str]:
    w = workload_of(job)
    policy, config = parse_policy(job.policy), parse_engine(job.engine)
    cost = parse_latency(job.latency, config)
    run.settle(policy.cls, policy.params, config, cost)
    inputs = {
        "workload": [w.digest(), w.name, w.description, w.predictions],
        "policy": [policy.name, f"{policy.cls.__module__}.{policy.cls.__qualname__}", params.show(policy.params)],
        "engine": config.show(),
        "latency": cost.show(),
    }
    return w, policy, config, cost, store.key_of(inputs, _jit.sources_of(type(policy.params)))


def run_job(job: Job, cache: bool = True) -> Result:
    """Run one job, or take its result from the cache."""
    w, policy, config, cost, key = _resolve(job)
    found = store.load(key) if cache else None
    if found is not None:
        return found
    result = run.simulate(w, policy.cls, policy.params, config, cost)
    if cache:
        store.save(key, result)
    return result


def instance_of(job: Job, **sizes: Any) -> run.Instance:
    """The job as a fresh instance, with sizes of its engine replaced. Raises UserError."""
    w, policy, config, cost, _ = _resolve(job)
    return run.Instance(w, policy.cls, policy.params, dataclasses.replace(config, **sizes), cost)


def watch_job(job: Job) -> Watched:
    """Run one job step by step, whatever is cached: its result, and every step and token of it."""
    return watch(instance_of(job))


def run_all(
    jobs: Sequence[Job], workers: int = 0, cache: bool = True, done: Callable[[int], None] = lambda index: None
) -> list[Result]:
    """Run ``jobs`` on ``workers`` processes (0 = one a core), results in their order.

    ``done`` is called with a job's index as it ends. Interrupted, the finished ones are in
    the cache and the next call goes on from there.
    """
    for job in jobs:
        parse_policy(job.policy)
    return pool.each(functools.partial(run_job, cache=cache), jobs, workers, lambda index, _: done(index))


def compare(
    base: Job,
    policies: Iterable[str],
    seeds: Sequence[int] = (0,),
    workers: int = 0,
    cache: bool = True,
    done: Callable[[int], None] = lambda index: None,
) -> tuple[dict[str, Any], list[tuple[str, Result]]]:
    """``(document, first seed's runs by label)`` of several policies on one workload.

    Over several seeds each number is the mean over seeds of each run's value, and each
    policy but the first has ``vs``: its differences from the first, paired by seed.
    """
    texts, seeds = list(policies), _distinct(base, seeds)
    specs = [parse_policy(text) for text in texts]
    # A seed after the other, so that the first jobs compile different policies side by side.
    jobs = [_replace(base, policy=text, seed=seed) for seed in seeds for text in texts]
    for job in jobs[: len(texts)]:  # mistakes surface here, before any process starts
        _resolve(job)
    results = run_all(jobs, workers, cache, done)
    labels = [policy.label for policy in specs]
    summaries = [[r.summary() for r in results[index :: len(texts)]] for index in range(len(texts))]
    rows: list[dict[str, Any]] = []
    for policy, found in zip(specs, summaries, strict=True):
        row = {"policy": policy.name, "label": policy.label, **metrics.combine(found)}
        if rows and len(seeds) > 1:
            row["vs"] = {"policy": labels[0], "differences": metrics.paired(found, summaries[0])}
        rows.append(row)
    meta = results[0].meta
    store.prune()
    document = {"workload": meta["workload"], "engine": meta["engine"], "seeds": list(seeds), "results": rows}
    return document, list(zip(labels, results, strict=False))


def _distinct(base: Job, seeds: Sequence[int]) -> Sequence[int]:
    """``seeds``, or the first alone where they change nothing (a trace under sure predictions)."""
    if len(seeds) < 2:
        return seeds
    two = (_workload(base, seed).digest() for seed in seeds[:2])
    return seeds[:1] if len(set(two)) == 1 else seeds


def _replace(job: Job, **changes: Any) -> Job:
    return dataclasses.replace(job, **changes)


def simulate(
    workload: str,
    policy: str = "fcfs",
    *,
    engine: str = "vllm_v1",
    latency: str = "",
    predictions: str = "oracle",
    seed: int | None = None,
    limit: int | None = None,
    slo: str = "",
    cache: bool = False,
) -> Result:
    """One run from texts, as on the command line. Raises UserError for a mistake in them."""
    service = workloads.Service(slo=slo)
    return run_job(Job(workload, policy, engine, latency, predictions, seed, limit, service=service), cache)
