"""Engine configurations: presets, and strict reading of what a user overrides."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, get_args, get_type_hints

from .errors import UserError, nearest
from .rules import EngineRules

__all__ = ["ENGINES", "EngineConfig", "engine"]

WHOLE: Final = {
    "token_budget": 1,
    "max_seqs": 0,
    "kv_tokens": 0,
    "jitter_seed": 0,
    "host_kv_tokens": 0,
    "kv_bytes_per_token": 0,
    "offload_blocks": 1,
    "layers": 0,
}
"""Sizes that are whole numbers, with their lowest."""


@dataclass(frozen=True)
class EngineConfig:
    """One instance: its size and how it carries out an order."""

    name: str
    token_budget: int
    """Most tokens in a step."""
    max_seqs: int
    """Most requests running at once; 0 = no cap."""
    kv_tokens: int
    """KV capacity in tokens; 0 = what the latency preset's device holds."""
    rules: EngineRules = field(default_factory=EngineRules)
    step_jitter: float = 0.0
    """Coefficient of variation of a step's time about the latency model's; lognormal, mean 1."""
    jitter_seed: int = 0
    host_kv_tokens: int = 0
    """Host memory for KV in tokens, for the rule ``evict=swap``."""
    swap_out_gb_per_s: float = 25.0
    """Speed of copies to host memory, 10⁹ bytes/s of one device. 25: what PCIe 4.0 x16 gives of its 32."""
    swap_in_gb_per_s: float = 25.0
    """Speed of copies back; the two directions do not slow each other down."""
    kv_bytes_per_token: int = 0
    """Bytes of a token's KV on one device; 0 = what the latency preset says."""
    offload_blocks: int = 8
    """``swap_out=ahead``: full blocks after which they are copied, for the heaviest class (n_off of ProServe); for
    the others less, in proportion to their weight, and at least 1. 8 of 16 tokens: what a preemption then loses
    takes about as long to compute as a step."""
    layers: int = 0
    """The model's layers, for ``reload=layerwise``; 0 = what the latency preset says."""
    partial_copy_beta: float = 2.0
    """``copy_budget=adaptive``: a request's KV is copied back in part where this lets it compute more than so many
    times the tokens that are not copied (β > 1 of ProServe), or all it may compute in a step. 0 = never in part."""

    def __post_init__(self) -> None:
        jitter = self.step_jitter
        if isinstance(jitter, bool) or not isinstance(jitter, (int, float)) or not 0 <= jitter <= 10:
            raise UserError(f"engine {self.name}: step_jitter={jitter!r} must be a number in [0, 10]")
        for name in ("swap_out_gb_per_s", "swap_in_gb_per_s"):
            speed = getattr(self, name)
            if isinstance(speed, bool) or not isinstance(speed, (int, float)) or not 0 < speed < math.inf:
                raise UserError(f"engine {self.name}: {name}={speed!r} must be a number above 0")
        beta = self.partial_copy_beta
        if isinstance(beta, bool) or not isinstance(beta, (int, float)) or not (beta == 0 or 1 < beta < math.inf):
            raise UserError(f"engine {self.name}: partial_copy_beta={beta!r} must be 0 or a number above 1")
        for name, low in WHOLE.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                raise UserError(f"engine {self.name}: {name}={value!r} must be a whole number of at least {low}")
        if self.token_budget <= self.rules.min_last_chunk:
            raise UserError(
                f"engine {self.name}: token_budget must be above min_last_chunk={self.rules.min_last_chunk}"
            )
        if 0 < self.kv_tokens < self.rules.block_tokens:
            raise UserError(f"engine {self.name}: kv_tokens={self.kv_tokens} is less than one block")

    def show(self) -> dict[str, Any]:
        """As a JSON-able mapping."""
        return {**dataclasses.asdict(self), "rules": dataclasses.asdict(self.rules)}


ENGINES: Final[dict[str, EngineConfig]] = {
    "vllm_v1": EngineConfig("vllm_v1", token_budget=2048, max_seqs=256, kv_tokens=0, rules=EngineRules()),
    "sarathi": EngineConfig(
        "sarathi",
        token_budget=512,
        max_seqs=128,
        kv_tokens=0,
        rules=EngineRules(
            phase_order="decode_first",
            admit="prompt",
            watermark=0.01,
            chunk_cap_alone=True,
            admit_after_preemption=True,
        ),
    ),
    "qba": EngineConfig(
        "qba",
        token_budget=128,
        max_seqs=0,
        kv_tokens=8192,
        rules=EngineRules(
            phase_order="decode_first",
            admit="projected",
            projection="live_growth_prompt",
            watermark=0.3,
            chunk_cap_alone=True,
            admit_after_preemption=True,
            decode_block_tokens=8,
            prefill_emits=False,
            kv_limit="reported",
            block_tokens=1,
        ),
    ),
}
"""``qba``: the simulator of arXiv 2610.17795 §IV-A3 under the profile ``paper``;
``sarathi``: Sarathi-Serve's defaults; ``vllm_v1``: vLLM's defaults on a data-centre GPU."""


SIZES: Final = {
    **dict.fromkeys(WHOLE, int),
    **dict.fromkeys(("step_jitter", "swap_out_gb_per_s", "swap_in_gb_per_s", "partial_copy_beta"), float),
}
"""What of an engine can be set besides its rules."""


def engine(name: str, overrides: Mapping[str, Any] | None = None) -> EngineConfig:
    """The preset ``name`` with size fields and rules replaced.

    Values may be texts, as a command line gives them. Raises UserError naming the field.
    """
    if name not in ENGINES:
        raise UserError(f"unknown engine {name!r}{nearest(name, ENGINES)}")
    base = ENGINES[name]
    sizes: dict[str, Any] = {}
    rules: dict[str, Any] = {}
    hints = get_type_hints(EngineRules)
    for key, value in (overrides or {}).items():
        if key in SIZES:
            sizes[key] = _read(value, SIZES[key])
        elif key in hints:
            rules[key] = _read(value, hints[key])
        else:
            raise UserError(f"engine {name}: unknown setting {key!r}{nearest(key, [*SIZES, *hints])}")
    return dataclasses.replace(base, **sizes, rules=dataclasses.replace(base.rules, **rules))


def _read(value: Any, kind: Any) -> Any:
    """A text as the kind of value its field wants; left alone if it is none."""
    if not isinstance(value, str) or get_args(kind):
        return value
    if kind is bool:
        return {"true": True, "false": False, "1": True, "0": False}.get(value.lower(), value)
    try:
        number = float(value)
    except ValueError:
        return value
    if kind is int:
        return int(number) if number.is_integer() else value
    return number
