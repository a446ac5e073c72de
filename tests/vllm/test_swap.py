"""Preempted requests come back from host memory: vLLM's OffloadingConnector under our policies.

Needs vLLM. Its scheduler side is vLLM's own throughout. The scheduler alone is told of copies that
nobody makes; the whole engine makes them, by `process_memory` (vLLM's own copies need CUDA).
"""

from __future__ import annotations

import functools
import logging
import random
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed here; run scripts/vllm")

from tailrace.studies import live
from tailrace.table import DECODE, PREFILL, WAITING
from tailrace.vllm_plugin.offline import OfflineScheduler, Settings
from tailrace.vllm_plugin.online import Memory

pytestmark = pytest.mark.plain

REQUESTS = 60


def _mirror_is_right(scheduler: Any) -> None:
    """The plugin's account of who runs, of tokens and blocks, against vLLM's."""
    host, running = scheduler.host, [request.request_id for request in scheduler.running]
    seats = host.engine.seats.run[: int(host.engine.core.running[0])].tolist()
    assert [host.requests[row].request_id for row in seats] == running
    for request in scheduler.requests.values():
        row = host.records[request.tailrace_row]
        if request.request_id not in running:
            assert row["phase"] == WAITING
            continue
        assert row["phase"] in (PREFILL, DECODE)
        assert row["computed_tokens"] == request.num_computed_tokens
        (blocks,) = scheduler.kv_cache_manager.get_blocks(request.request_id).blocks
        assert row["kv_blocks"] == len(blocks)


class _Served:
    """Random requests, long and short ones, on vLLM's scheduler with a policy in it."""

    def __init__(self, policy: str, bound: bool = True, **settings: Any) -> None:
        given = {"max_seqs": 3, "blocks": 60, "host_blocks": 1000, "load_steps": 2, **settings}
        self.offline = OfflineScheduler(Settings(tailrace={"policy": policy}, **given))
        self.scheduler = self.offline.scheduler
        if not bound:
            self.scheduler.waiting.bound(lambda: 1)
        self.computed = self.needed = self.preempted = 0
        self._free = self.scheduler.kv_cache_manager.block_pool.get_num_free_blocks()
        self._in_flight = given.get("steps_in_flight", 1)
        self._run(random.Random(1))

    def _run(self, rng: random.Random) -> None:
        offline, scheduler, added = self.offline, self.scheduler, 0
        for _ in range(20_000):
            offline.now += 1
            if added < REQUESTS and rng.random() < 0.06:
                self._add(added, rng)
                added += 1
            idle = not (offline.busy or offline.under_way or scheduler.has_requests())
            step = None if idle else offline.schedule()
            _mirror_is_right(scheduler)
            if step is not None:
                self.computed += sum(step.tokens.values())
                self.preempted += len(step.preempted)
            if offline.under_way == self._in_flight or (offline.under_way and step is None):
                offline.complete()
            if added == REQUESTS and idle:
                break
        assert offline.ended == REQUESTS
        assert scheduler.kv_cache_manager.block_pool.get_num_free_blocks() == self._free
        assert scheduler.host.rows == {}

    def _add(self, row: int, rng: random.Random) -> None:
        prompt, output = rng.randint(10, 300), rng.choice([5, 10, 20, 200])
        tokens = [rng.randrange(512) for _ in range(prompt)]
        told = {"tailrace_predicted_output_tokens": output}
        self.offline.add(row, tokens, output, self.offline.now, 0, told)
        self.needed += prompt + output - 1

    @property
    def again(self) -> int:
        """Tokens computed more than once."""
        return self.computed - self.needed


@functools.cache
def _swapped() -> _Served:
    return _Served("srpt")


@pytest.mark.parametrize(
    "settings",
    [{}, {"blocks": 30}, {"steps_in_flight": 2}, {"prefix_cache": True, "blocks": 30}],
    ids=["places", "memory", "async", "prefix cache"],
)
def test_what_was_computed_is_loaded(settings: dict[str, Any]) -> None:
    """Only what is in a last, partial block is computed again; nobody is displaced in vain."""
    served = _Served("srpt", **settings) if settings else _swapped()
    assert served.preempted >= 8
    assert served.offline.transfers is not None
    assert served.offline.transfers.loaded_blocks >= 50
    assert 0 < served.again < 16 * served.preempted
    assert served.scheduler.in_vain == 0
    assert served.scheduler.displaced > 0


def test_without_a_connector_it_is_computed_again() -> None:
    swapped, recomputed = _swapped(), _Served("srpt", host_blocks=0)
    assert recomputed.again > 10 * swapped.again
    assert recomputed.needed == swapped.needed


def test_host_memory_that_is_too_small_costs_tokens_and_no_request() -> None:
    assert _Served("srpt", host_blocks=8).again > _swapped().again


def test_a_place_is_kept_for_whom_it_was_made_free() -> None:
    """Else another takes it while KV is loaded, and is displaced in its turn."""
    kept, lost = _swapped(), _Served("srpt", bound=False)
    assert kept.scheduler.displaced < lost.scheduler.displaced
    assert kept.scheduler.in_vain <= lost.scheduler.in_vain


def test_what_is_said_at_start_up(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("vllm"), "propagate", True)
    trail = {"policy": "trail", "params": {"rule": "swap"}}
    for blocks, rule, line in (
        (100, "'evict': 'swap'}; refused", "swapped: OffloadingConnector loads their full blocks back"),
        (0, "'evict': 'swap'}", "computed again, as no KV offloading connector is configured"),
    ):
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="vllm.tailrace"):
            OfflineScheduler(Settings(tailrace=trail, host_blocks=blocks))
        said = [record.getMessage() for record in caplog.records if record.name == "vllm.tailrace"]
        policy, memory = dict.fromkeys(said)  # vLLM 0.30 has two handlers
        assert rule in policy
        assert line in memory


def test_a_whole_engine_swaps() -> None:
    """The same requests, displaced for shorter ones: what comes back is what was computed, as the
    output tells, and few tokens are computed again."""
    burst = live.Burst(
        longs=6,
        shorts=20,
        over_steps=400,
        long_output=(150, 250),
        short_output=(8, 16),
        long_prompt=300,
        max_seqs=3,
        seed=1,
    )
    needed = sum(ask.prompt_tokens + ask.output_tokens - 1 for ask in live.plan(burst))
    trail = list(live.plugin("trail:rule=swap").values())
    (recomputed,), (swapped,) = live.run([burst], trail, [Memory(40, 0), Memory(40, 400)])
    assert swapped.checksums == recomputed.checksums
    assert swapped.counts["loaded"] > 50
    assert min(served.counts["displaced"] for served in (swapped, recomputed)) >= 5
    assert recomputed.counts["scheduled"] - needed > 10 * (swapped.counts["scheduled"] - needed)
