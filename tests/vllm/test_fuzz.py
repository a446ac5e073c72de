"""Random adds, steps, preemptions and aborts on vLLM's scheduler with our policies in it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed here; run scripts/vllm")

from tailrace.vllm_plugin.offline import OfflineScheduler, Settings

OPERATIONS = 10_000


@pytest.mark.parametrize(
    ("policy", "in_flight", "prefix_cache", "host_blocks"),
    [
        pytest.param("qba", 1, True, 0, marks=pytest.mark.plain),
        pytest.param("qba", 2, False, 0),
        pytest.param("srpt", 1, False, 0, marks=pytest.mark.plain),
        pytest.param("srpt", 2, True, 0),
        pytest.param("vllm_priority", 2, False, 0, marks=pytest.mark.plain),
        pytest.param("srpt", 2, False, 200, marks=pytest.mark.plain),
    ],
)
def test_nothing_is_lost(policy: str, in_flight: int, prefix_cache: bool, host_blocks: int) -> None:
    """Every request ends once, all blocks come back, and without a cache nobody is displaced in vain."""
    from vllm.v1.request import RequestStatus

    rng = random.Random(7)
    settings = Settings(tailrace={"policy": policy}, blocks=60, steps_in_flight=in_flight, prefix_cache=prefix_cache)
    if host_blocks:  # few places, as requests are then displaced for places alone
        settings = replace(settings, host_blocks=host_blocks, load_steps=3, max_seqs=4)
    offline = OfflineScheduler(settings)
    scheduler, added, aborted = offline.scheduler, 0, 0
    free = scheduler.kv_cache_manager.block_pool.get_num_free_blocks()
    for _ in range(OPERATIONS):
        offline.now += rng.random()
        kind = rng.random()
        if kind < 0.12:
            told = {"tailrace_predicted_class": rng.choice(["short", "long"])}
            prompt = [rng.randrange(2)] * rng.randint(1, 300)
            offline.add(added, prompt, rng.randint(1, 120), offline.now, rng.randint(0, 2), told)
            added += 1
        elif kind < 0.15 and scheduler.requests:
            name = rng.choice(list(scheduler.requests))
            aborted += len(scheduler.finish_requests(name, RequestStatus.FINISHED_ABORTED))
        elif kind < 0.18 and scheduler.running and offline.under_way == 0:
            victim = scheduler.running.pop()
            scheduler._preempt_request(victim, offline.now)
            scheduler.host.note({}, {}, [victim.request_id], offline.now)
        elif offline.busy:
            step = offline.schedule()
            if offline.under_way == in_flight or (offline.under_way and step is None):
                offline.complete()
    for _ in range(100_000):
        step = offline.schedule() if offline.busy or scheduler.has_requests() else None
        if offline.under_way == in_flight or (offline.under_way and step is None):
            offline.complete()
        elif step is None:
            break
    assert not scheduler.requests
    assert scheduler.kv_cache_manager.block_pool.get_num_free_blocks() == free
    assert offline.ended == added - aborted
    assert scheduler.host.rows == {}
    assert len(scheduler.waiting) == 0
    assert scheduler.displaced >= 10 or policy != "srpt"
    assert prefix_cache or host_blocks or scheduler.in_vain == 0
    assert added > 500
    assert aborted > 50
