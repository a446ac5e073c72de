"""What the plugin asks of vLLM's scheduler: the rules it follows, its size, its KV. Tied to vLLM's version."""

from __future__ import annotations

from typing import Any

from ..rules import EngineRules
from ..schedule.engine import Limits

__all__ = ["Cache", "engine_rules", "limits"]


def engine_rules(scheduler: Any) -> EngineRules:
    """What this vLLM does, as the engine's rules."""
    s = scheduler.scheduler_config
    return EngineRules(
        watermark=float(getattr(s, "watermark", 0.0) or 0.0),
        reserve_full_isl=bool(getattr(s, "scheduler_reserve_full_isl", False)),
        chunk_cap=int(getattr(s, "long_prefill_token_threshold", 0) or 0),
        chunk_cap_alone=not hasattr(s, "long_prefill_token_threshold_adaptive"),  # as vLLM 0.30
        chunk_cap_adaptive=bool(getattr(s, "long_prefill_token_threshold_adaptive", False)),
        block_tokens=scheduler.block_size,
        steps_in_flight=1,
        seconds_as="tokens",
    )


def limits(scheduler: Any) -> Limits:
    """The size of this vLLM; one block is its null block."""
    most = getattr(scheduler, "max_num_active_reqs", scheduler.max_num_running_reqs)
    blocks = max(int(scheduler.kv_cache_config.num_blocks) - 1, 1)
    return Limits(scheduler.max_num_scheduled_tokens, most, blocks * scheduler.block_size)


class Cache:
    """vLLM's KV cache, as the host asks it. Looking changes nothing in it, but repeats KV events where
    these are reported in full. What a connector holds is not asked: that may change the connector."""

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler

    def found(self, request: Any) -> tuple[int, int]:
        """See `host.Cache`. A waiting request may hold its KV, loaded by a connector or on the way."""
        if request.num_computed_tokens:
            return min(request.num_computed_tokens, request.num_tokens - 1), 0
        blocks, tokens, *_ = self._scheduler.kv_cache_manager.get_computed_blocks(request)
        return tokens, sum(block.ref_cnt == 0 and not block.is_null for group in blocks.blocks for block in group)

    def yields(self, request: Any) -> int:
        """See `host.Cache`. With a connector and two steps in flight blocks may not be free before the next step."""
        if not self._scheduler._request_blocks_can_be_freed(request):
            return 0
        blocks = self._scheduler.kv_cache_manager.get_blocks(request.request_id).blocks
        return sum(block.ref_cnt == 1 and not block.is_null for group in blocks for block in group)
