"""What is changed of UniBoost and of its engine, one setting at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .settings import GAMMA_FIXED, GAMMA_HIGH, GAMMA_LOW

__all__ = ["DEFAULTS", "VARIED"]

VARIED: Final[Mapping[str, Mapping[str, tuple[float, Mapping[str, Any], Mapping[str, Any]]]]] = {
    "γ_max, 1/s": {f"{g:g}": (g, {}, {}) for g in (0.001, 0.002, GAMMA_FIXED, GAMMA_LOW, 0.01, GAMMA_HIGH, 0.05)},
    "k, tokens": {str(k): (GAMMA_LOW, {"k_tokens": k}, {}) for k in (64, 256, 1024, 4096)},
    "δ, s": {f"{d:g}": (GAMMA_LOW, {"hysteresis_s": d}, {}) for d in (0.0, 1.0, 10.0, 60.0)},
    "EMA, high γ_max": {f"{w:g}": (GAMMA_HIGH, {"ema": w}, {}) for w in (0.05, 0.3, 1.0)},
    "window, high γ_max": {str(n): (GAMMA_HIGH, {"window": n}, {}) for n in (500, 2000, 8000)},
    "seconds a token": {
        "the model's mean": (GAMMA_LOW, {}, {}),
        **{f"{s:g}": (GAMMA_LOW, {"seconds_per_token": s}, {}) for s in (1e-4, 1e-3, 1e-2)},
    },
    "swap, GB/s": {
        f"{b:g}": (GAMMA_LOW, {}, {"swap_out_gb_per_s": b, "swap_in_gb_per_s": b}) for b in (5.0, 25.0, 100.0)
    },
    "KV of the displaced": {
        "stays until its room is needed": (GAMMA_LOW, {}, {}),
        "goes at once": (GAMMA_LOW, {}, {"swap_out": "at_once"}),
    },
    "lock": {name: (GAMMA_LOW, {"lock": name}, {}) for name in ("admission", "milestone", "none")},
    "victim": {name: (GAMMA_LOW, {"victim": name}, {}) for name in ("rank", "kv")},
    "budget goes first to": {name: (GAMMA_LOW, {"order": name}, {}) for name in ("ranked", "decode_first")},
}
"""What is varied → its values → γ_max, what of the policy and of the engine it changes."""
DEFAULTS: Final = {
    "γ_max, 1/s": f"{GAMMA_LOW:g}",
    "k, tokens": "256",
    "δ, s": "1",
    "EMA, high γ_max": "0.3",
    "window, high γ_max": "2000",
    "seconds a token": "the model's mean",
    "swap, GB/s": "25",
    "KV of the displaced": "stays until its room is needed",
    "lock": "admission",
    "victim": "rank",
    "budget goes first to": "ranked",
}
