"""What an engine's KV blocks are under its rules: counted or named (prefix cache), with host memory or without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ..config import EngineConfig
from ..errors import UserError
from ..latency import Latency
from ..rules import EngineRules
from ..schedule.blocks import Blocks
from ..schedule.engine import Limits
from ..schedule.host import HostKV, build_host
from ..schedule.prefix import build_blocks
from ..schedule.tiered import Tiered, build_tiered
from ..schedule.transfer import IN, OUT
from ..workloads.prefix import engine_ids
from ..workloads.workload import Workload

__all__ = ["block_bytes", "blocks", "swap_counts", "swap_settings", "swap_summary"]

GB: Final = 1e9


def block_bytes(rules: EngineRules, config: EngineConfig, latency: Latency) -> int:
    """Bytes of a KV block of one device, for an engine that swaps.

    Raises UserError where its host memory or the bytes of a token are not known.
    """
    if config.host_kv_tokens < rules.block_tokens:
        raise UserError(f"engine {config.name}: evict=swap needs host memory; give host_kv_tokens=… (a block or more)")
    each = config.kv_bytes_per_token or latency.kv_bytes_per_token
    if not each:
        raise UserError(
            f"engine {config.name}: evict=swap needs to know what copies take, and latency {latency.name!r} "
            "does not say; give kv_bytes_per_token=…"
        )
    return each * rules.block_tokens


def blocks(w: Workload, rules: EngineRules, limits: Limits, config: EngineConfig, latency: Latency) -> Any:
    """The engine's ``blocks`` for workload ``w``; None where they are only counted. Raises as `block_bytes`."""
    named = _named(w, rules, limits) if rules.prefix_cache else None
    if rules.evict != "swap":
        return named
    host = _host(max(len(w), 1), rules, config, latency)
    return host if named is None else build_tiered(named, host)


def _host(rows: int, rules: EngineRules, config: EngineConfig, latency: Latency) -> HostKV:
    size = block_bytes(rules, config, latency)
    out_s, in_s = (size / (speed * GB) for speed in (config.swap_out_gb_per_s, config.swap_in_gb_per_s))
    return build_host(rows, config.host_kv_tokens // rules.block_tokens, out_s, in_s)


def _named(w: Workload, rules: EngineRules, limits: Limits) -> Blocks:
    """The named blocks of an engine with prefix cache, with what the workload says of its prompts."""
    size, usable = rules.block_tokens, limits.kv_tokens // rules.block_tokens
    ids, offsets = np.zeros(0, dtype=np.int64), np.zeros(max(len(w), 1) + 1, dtype=np.int64)
    if w.prefix is not None:
        ids, offsets = engine_ids(w.prefix, w.prompt_tokens, size)
    longest = int((w.prompt_tokens + w.output_tokens).max()) // size + 1 if len(w) else 1
    seats = min(limits.max_seqs or len(w), len(w), usable)
    return build_blocks(max(len(w), 1), max(seats, 1), min(longest, usable), usable, size, ids, offsets)


def swap_counts(held: Any) -> dict[str, float]:
    """What a run's counters say of host memory, from the engine's ``blocks``; empty without it."""
    if not isinstance(held, (HostKV, Tiered)):
        return {}
    host, lanes = held.host, held.lanes
    return {
        "swapped": int(host.swapped[0]),
        "host_full": int(host.full[0]),
        "parked": int(host.parked[0]),
        "kept": int(host.kept[0]),
        "swapped_out_tokens": int(lanes.tokens[OUT]),
        "swapped_in_tokens": int(lanes.tokens[IN]),
        "swapped_out_blocks": int(lanes.blocks[OUT]),
        "swapped_in_blocks": int(lanes.blocks[IN]),
        "swap_s": float(host.wait_s[0]),
        "most_host_blocks": int(host.most_blocks[0]),
    }


def swap_summary(counters: Mapping[str, float], engine: Mapping[str, Any], block_tokens: int) -> dict[str, Any]:
    """``{"swap": …}`` of a result, from `swap_counts`; empty without host memory."""
    if "swapped" not in counters:
        return {}
    size = engine["kv_bytes_per_token"] * block_tokens
    plain = ("swapped", "host_full", "parked", "kept", "swapped_out_tokens", "swapped_in_tokens")
    return {
        "swap": {
            **{name: int(counters[name]) for name in plain},
            "swapped_out_bytes": int(counters["swapped_out_blocks"]) * size,
            "swapped_in_bytes": int(counters["swapped_in_blocks"]) * size,
            "swap_s": counters["swap_s"],
            "swap_tax": counters["swap_s"] / counters["busy_s"] if counters["busy_s"] > 0 else None,
            "most_host_kv_tokens": int(counters["most_host_blocks"]) * block_tokens,
        }
    }


def swap_settings(rules: EngineRules, config: EngineConfig, latency: Latency) -> dict[str, Any]:
    """What a result says of an engine's host memory; empty without it."""
    if rules.evict != "swap":
        return {}
    return {
        "host_kv_tokens": config.host_kv_tokens,
        "swap_out_gb_per_s": config.swap_out_gb_per_s,
        "swap_in_gb_per_s": config.swap_in_gb_per_s,
        "kv_bytes_per_token": block_bytes(rules, config, latency) // rules.block_tokens,
    }
