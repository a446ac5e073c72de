"""Latency models by name, derived from the published figures of models and devices.

None of them is a measurement: fit one (`fit_profiled`) for a deployment that matters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple

from .. import params
from ..errors import UserError, nearest
from ..params import P
from .piecewise import PiecewiseParams
from .profiled import ProfiledParams
from .roofline import RooflineParams

__all__ = ["DEVICES", "KINDS", "MODELS", "PRESETS", "Cost", "Derived", "DeviceFigures", "Latency", "ModelFigures"]
__all__ += ["derive", "derived_latency", "preset"]

Cost = PiecewiseParams | ProfiledParams | RooflineParams

KINDS: Final[Mapping[str, type[Cost]]] = MappingProxyType(
    {"piecewise": PiecewiseParams, "profiled": ProfiledParams, "roofline": RooflineParams}
)

MEMORY_SHARE: Final = 0.9
"""Share of the device's memory an engine takes (vLLM's gpu_memory_utilization)."""
ACTIVATION_BYTES: Final = 2e9
"""Kept for activations and graphs, per device: an assumption."""


class ModelFigures(NamedTuple):
    """A dense decoder's published figures; counts, and bytes per stored element."""

    params: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    weight_element_bytes: int = 2
    kv_element_bytes: int = 2


class DeviceFigures(NamedTuple):
    """A device's published peaks, and what is assumed to be reached of them."""

    flops_per_s: Annotated[float, P("peak, dense", unit="flop/s", low=0, open_low=True, open_high=True)]
    bytes_per_s: Annotated[float, P("peak", unit="B/s", low=0, open_low=True, open_high=True)]
    memory_bytes: Annotated[float, P("device memory", unit="B", low=0, open_low=True, open_high=True)]
    mfu: Annotated[float, P("share of the peak flops reached", low=0, high=1, open_low=True)] = 0.5
    mbu: Annotated[float, P("share of the peak bandwidth reached", low=0, high=1, open_low=True)] = 0.9
    # Small, as with CUDA graphs and a scheduler that works while the device does.
    overhead_s: Annotated[float, P("every step, beside the device's work", unit="s", low=0, open_high=True)] = 2.5e-4
    per_seq_s: Annotated[float, P("per decoding sequence", unit="s", low=0, open_high=True)] = 2e-5


MODELS: Final[Mapping[str, ModelFigures]] = MappingProxyType(
    {
        "llama-3-8b": ModelFigures(8_030_000_000, layers=32, heads=32, kv_heads=8, head_dim=128),
        "codellama-34b": ModelFigures(33_740_000_000, layers=48, heads=64, kv_heads=8, head_dim=128),
        "qwen-72b": ModelFigures(72_290_000_000, layers=80, heads=64, kv_heads=64, head_dim=128),
        "qwen2-7b": ModelFigures(7_620_000_000, layers=28, heads=28, kv_heads=4, head_dim=128),
        "qwen2-72b": ModelFigures(72_710_000_000, layers=80, heads=64, kv_heads=8, head_dim=128),
        "qwen3-32b": ModelFigures(32_760_000_000, layers=64, heads=64, kv_heads=8, head_dim=128),
    }
)
"""From the model cards and config.json files; 16-bit weights and KV."""

DEGREES: Final[Mapping[str, int]] = MappingProxyType({"qwen-72b": 4, "qwen2-72b": 4, "qwen3-32b": 2})
"""Tensor parallelism of the presets where it is not 1: for the 72B as in UniBoost, §6. ProServe gives none
for Qwen3-32B: its weights leave one device room for 37,000 tokens of KV, two for 324,000."""

DEVICES: Final[Mapping[str, DeviceFigures]] = MappingProxyType(
    # Sold as 80 GB, it has five stacks of 16 GiB: 81,920 MiB in nvidia-smi, so 80 GiB here.
    {"a100-80gb": DeviceFigures(flops_per_s=312e12, bytes_per_s=2.039e12, memory_bytes=80.0 * 2**30)}
)
"""NVIDIA A100 SXM4 datasheet: dense BF16 tensor flops (not the sparse 624e12), HBM2e bandwidth."""


class Derived(NamedTuple):
    """What `derive` finds: two models of the same figures, and the KV capacity in tokens."""

    roofline: RooflineParams
    profiled: ProfiledParams
    kv_tokens: int


def derive(model: ModelFigures, device: DeviceFigures, tp: int = 1) -> Derived:
    """Latency models and KV capacity of ``model`` on ``tp`` of ``device``.

    Tensor parallelism divides flops and bytes by ``tp`` and costs no communication, so it
    flatters large ``tp``; KV heads fewer than ``tp`` are replicated. KV capacity = (memory
    x 0.9 - weights - 2 GB) / KV bytes of a token, each per device.

    Raises UserError when ``tp`` does not divide the heads or the weights leave no room.
    """
    if tp < 1 or model.heads % tp:
        raise UserError(f"tp={tp} does not divide the model's {model.heads} attention heads")
    kv_heads = math.ceil(model.kv_heads / tp)
    roofline = RooflineParams(
        flops_per_token=2.0 * model.params / tp,
        flops_per_pair=4.0 * model.layers * model.heads * model.head_dim / tp,
        weight_bytes=float(model.params * model.weight_element_bytes) / tp,
        kv_bytes_per_token=2.0 * model.layers * kv_heads * model.head_dim * model.kv_element_bytes,
        flops_per_s=device.flops_per_s * device.mfu,
        bytes_per_s=device.bytes_per_s * device.mbu,
        overhead_s=device.overhead_s,
        per_seq_s=device.per_seq_s,
    )
    room = device.memory_bytes * MEMORY_SHARE - roofline.weight_bytes - ACTIVATION_BYTES
    kv_tokens = int(room // roofline.kv_bytes_per_token)
    if kv_tokens < 1:
        need, have = roofline.weight_bytes / 1e9, device.memory_bytes / 1e9
        raise UserError(f"{need:.1f} GB of weights leave no room for KV in {have:.1f} GB; raise tp (now {tp})")
    return Derived(roofline, _linearised(roofline), kv_tokens)


def _linearised(roofline: RooflineParams) -> ProfiledParams:
    """The roofline's constant and margins as coefficients: its maximum becomes a sum."""
    pair_s = roofline.flops_per_pair / roofline.flops_per_s
    kv_s = roofline.kv_bytes_per_token / roofline.bytes_per_s
    return ProfiledParams(
        constant_s=roofline.overhead_s + roofline.weight_bytes / roofline.bytes_per_s,
        prefill_sq_s=pair_s / 2,
        prefill_cross_s=pair_s,
        prefill_token_s=roofline.flops_per_token / roofline.flops_per_s,
        prefill_kv_s=0.0,  # hides behind the chunk's flops
        decode_kv_s=kv_s,
        decode_seq_s=roofline.per_seq_s + kv_s,  # the token's own KV is written
    )


@dataclass(frozen=True)
class Latency:
    """A latency model ready to run.

    ``cost`` goes to kernels; ``kv_tokens`` is the KV capacity that belongs to it, in
    tokens, or None when the model says nothing of memory; so is ``kv_bytes_per_token``, the bytes
    of a token's KV on one device, whose own link they are copied over.
    """

    name: str
    cost: Cost
    kv_tokens: int | None
    summary: str
    kv_bytes_per_token: int | None = None
    layers: int | None = None
    """The model's, where it is known."""

    @property
    def kind(self) -> str:
        """``piecewise``, ``profiled`` or ``roofline``."""
        return next(kind for kind, cls in KINDS.items() if isinstance(self.cost, cls))

    def show(self) -> dict[str, Any]:
        """All of it as plain values that JSON can hold."""
        return {
            "name": self.name,
            "kind": self.kind,
            "params": params.show(self.cost),
            "kv_tokens": self.kv_tokens,
            "kv_bytes_per_token": self.kv_bytes_per_token,
            "summary": self.summary,
        }


def derived_latency(
    name: str, model: str, device: str, *, tp: int = 1, kind: str = "profiled", figures: DeviceFigures | None = None
) -> Latency:
    """`derive` for names in `MODELS` and `DEVICES`; ``figures`` stands in for the device's own.

    ``kind``: ``profiled`` or ``roofline``.
    """
    derived = derive(MODELS[model], figures or DEVICES[device], tp)
    cost = derived.roofline if kind == "roofline" else derived.profiled
    summary = f"{model} on {tp} x {device}: derived from published figures, not measured"
    each = int(derived.roofline.kv_bytes_per_token)
    return Latency(name, cost, derived.kv_tokens, summary, each, MODELS[model].layers)


def _presets() -> dict[str, Latency]:
    found = {}
    for model in MODELS:
        tp = DEGREES.get(model, 1)
        name = f"{model}-{f'tp{tp}-' if tp > 1 else ''}a100-derived"
        found[name] = derived_latency(name, model, "a100-80gb", tp=tp)
    text = "step time and KV capacity of the QBA paper's simulator (arXiv 2610.17795), not of a model"
    found["qba"] = Latency("qba", PiecewiseParams(), 8192, text)
    return found


PRESETS: Final[Mapping[str, Latency]] = MappingProxyType(_presets())
"""By name. The derived ones use the profiled form, on as many devices as `DEGREES` says."""


def preset(name: str) -> Latency:
    """The preset called ``name``. Raises UserError with the nearest name."""
    if name not in PRESETS:
        raise UserError(f"unknown latency preset {name!r}{nearest(name, PRESETS)}")
    return PRESETS[name]
