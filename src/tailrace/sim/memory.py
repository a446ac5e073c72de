"""What an engine's KV blocks are under its rules: counted or named (prefix cache), with host memory or without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ..config import EngineConfig
from ..errors import UserError
from ..latency import Latency
from ..rules import EngineRules, managed
from ..schedule.blocks import Blocks
from ..schedule.engine import Limits
from ..schedule.host import HostKV, build_host
from ..schedule.managed import ManagedKV, Management, build_managed
from ..schedule.prefix import build_blocks
from ..schedule.tiered import Tiered, build_tiered
from ..schedule.transfer import IN, OUT
from ..workloads.prefix import engine_ids
from ..workloads.workload import Workload

__all__ = ["block_bytes", "blocks", "layers", "swap_counts", "swap_settings", "swap_summary"]

GB: Final = 1e9
MANAGED: Final = {
    "orders": "offloads",
    "discarded": "discarded_blocks",
    "refused": "offloads_refused",
    "lost_tokens": "not_offloaded_tokens",
    "partial": "partial_reloads",
    "dropped_tokens": "not_reloaded_tokens",
    "skipped": "skipped_for_budget",
}
"""Counters of `offload.Offload`, and what a result calls them."""


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


def layers(rules: EngineRules, config: EngineConfig, latency: Latency) -> int:
    """The model's layers, for an engine that reloads layer by layer; else 1. Raises UserError if they are not known."""
    if rules.reload == "blocking":
        return 1
    known = config.layers or latency.layers
    if not known:
        raise UserError(
            f"engine {config.name}: reload=layerwise needs the model's layers, and latency {latency.name!r} "
            "does not say; give layers=…"
        )
    return known


def blocks(w: Workload, rules: EngineRules, limits: Limits, config: EngineConfig, latency: Latency) -> Any:
    """The engine's ``blocks`` for workload ``w``; None where they are only counted. Raises as `block_bytes`."""
    named = _named(w, rules, limits) if rules.prefix_cache else None
    if rules.evict != "swap":
        return named
    host = _host(max(len(w), 1), rules, config, latency)
    if managed(rules):
        ahead = _every_blocks(w, config.offload_blocks) if rules.swap_out == "ahead" else None
        beta = float(config.partial_copy_beta)
        how = Management(rules.block_tokens, ahead, layers(rules, config, latency), beta)
        return build_managed(max(len(w), 1), host, how)
    return host if named is None else build_tiered(named, host)


def _host(rows: int, rules: EngineRules, config: EngineConfig, latency: Latency) -> HostKV:
    size = block_bytes(rules, config, latency)
    out_s, in_s = (size / (speed * GB) for speed in (config.swap_out_gb_per_s, config.swap_in_gb_per_s))
    return build_host(rows, config.host_kv_tokens // rules.block_tokens, out_s, in_s)


def _every_blocks(w: Workload, heaviest_blocks: int) -> np.ndarray[Any, Any]:
    """n_off of each row: ``heaviest_blocks`` for the heaviest class, less by weight for the others, at least 1."""
    weights = np.asarray(w.class_weights, dtype=float)[w.class_id]
    if not len(weights):
        return np.ones(1, dtype=np.int64)
    return np.maximum((heaviest_blocks * weights / weights.max()).astype(np.int64), 1)


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
    if not isinstance(held, (HostKV, Tiered, ManagedKV)):
        return {}
    host, lanes = held.host, held.lanes
    wasted_s = float(held.offload.wasted_s[0]) if isinstance(held, ManagedKV) else 0.0
    return {
        **({name: int(getattr(held.offload, name)[0]) for name in MANAGED} if isinstance(held, ManagedKV) else {}),
        "out_busy_s": float(lanes.blocks[OUT] * lanes.block_s[OUT]) + wasted_s,
        "in_busy_s": float(lanes.blocks[IN] * lanes.block_s[IN]),
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
            "out_busy_s": counters["out_busy_s"],
            "in_busy_s": counters["in_busy_s"],
            **_management(counters),
        }
    }


def _management(counters: Mapping[str, float]) -> dict[str, int]:
    """What ProServe's block management did; empty where none of it is on."""
    return {shown: int(counters[name]) for name, shown in MANAGED.items() if name in counters}


def swap_settings(rules: EngineRules, config: EngineConfig, latency: Latency) -> dict[str, Any]:
    """What a result says of an engine's host memory; empty without it."""
    if rules.evict != "swap":
        return {}
    return {
        "host_kv_tokens": config.host_kv_tokens,
        "swap_out_gb_per_s": config.swap_out_gb_per_s,
        "swap_in_gb_per_s": config.swap_in_gb_per_s,
        "kv_bytes_per_token": block_bytes(rules, config, latency) // rules.block_tokens,
        **({"offload_blocks": config.offload_blocks} if rules.swap_out == "ahead" else {}),
        **({"layers": layers(rules, config, latency)} if rules.reload == "layerwise" else {}),
        **({"partial_copy_beta": config.partial_copy_beta} if rules.copy_budget == "adaptive" else {}),
    }
