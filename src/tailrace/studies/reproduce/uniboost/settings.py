"""What is run on what: models, mixes, the engine, the policies, and the load ρ that a rate stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .... import latency, spec
from ..points import Point, column, sample
from ..traffic import Generated

__all__ = [
    "GAMMA_FIXED",
    "GAMMA_HIGH",
    "GAMMA_LOW",
    "HEAVY",
    "MIXES",
    "POLICIES",
    "REFERENCE_SEEDS",
    "RULES",
    "SYSTEMS",
    "Capacities",
    "Setting",
]
__all__ += ["SKIPPED", "engine", "point", "reference", "uniboost"]

SYSTEMS: Final[Mapping[str, str]] = {
    "llama-3-8b": "llama-3-8b-a100-derived",
    "codellama-34b": "codellama-34b-a100-derived",
    "qwen-72b": "qwen-72b-tp4-a100-derived",
}
"""§6's models, on one A100 each but the last, which has four: step times derived from published figures."""

HEAVY: Final = "heavy"
MIXES: Final[Mapping[str, str]] = {
    "mix-2": "azure-conv@0.3+s1k-like@0.7",
    "mix-1": "azure-conv@0.8+s1k-like@0.2",
    "reasoning": "s1k-like",
    "azure": "azure-conv",
    "sharegpt": "sharegpt-like",
    HEAVY: "r1",
}
"""§6's workloads, and a heavy-tailed one. s1K and ShareGPT are not at hand: lengths made to look like them."""

SEQS: Final = 64
"""Most sequences in a step: it binds before KV does for the 8B model on these mixes."""
BUDGET: Final = 512
"""Sarathi's default: tokens in a step."""
HOST_BYTES: Final = 256e9
"""Host memory for KV, per device: an eighth of the 2 TB of a DGX A100."""

GAMMA_FIXED: Final = 0.003
"""γ, 1/s, of the stages that do not adapt it."""
GAMMA_LOW: Final = 0.006
GAMMA_HIGH: Final = 0.02
"""γ_max, 1/s: the low one, the policy's default, favours time to first token; the high one leaves γ to the
article's update."""

RULES: Final[Mapping[str, str]] = {
    "srpt_decode_first": "trail:rule=decode_first",
    "srpt_swap": "trail:rule=swap",
    "srpt_recompute": "trail:rule=recompute",
}
"""TRAIL+, SRPT with perfect predictions, under the three engine rules that the article leaves open."""


def uniboost(gamma_max: float, **more: Any) -> str:
    """UniBoost's policy text with a γ_max."""
    return spec.write("uniboost", {"gamma_per_s": min(0.005, gamma_max), "gamma_max_per_s": gamma_max, **more})


POLICIES: Final[Mapping[str, str]] = {
    **RULES,
    "sarathi": "sarathi",
    "sjf": "sjf",
    "ltr": "ltr",
    "spf": "spf",
    "las": "las",
    "mlfq": "mlfq",
    "dist_boost": f"dist_boost:gamma_per_s={GAMMA_FIXED}",
    "uniboost_base": f"uniboost_base:gamma_per_s={GAMMA_FIXED}",
    "memguard": f"memguard:gamma_per_s={GAMMA_FIXED}",
    "uniboost_low": uniboost(GAMMA_LOW),
    "uniboost_high": uniboost(GAMMA_HIGH),
}
"""Name in the study → policy."""

SKIPPED: Final = 0.1
"""Share of the first requests that times leave out; the drain counts."""
REFERENCE_REQUESTS: Final = 3000
REFERENCE_SEEDS: Final = 10
BACKLOGGED_RPS: Final = 1000
"""All at once, in effect."""


@dataclass(frozen=True)
class Setting:
    """A model, its lengths, and what of the engine differs from the study's."""

    system: str = "llama-3-8b"
    mix: str = "mix-2"
    kv_tokens: int = 0
    """0 = what the device holds."""
    lengths: str = ""
    """Instead of the mix's."""

    @property
    def drawn(self) -> str:
        return self.lengths or MIXES[self.mix]

    @property
    def latency(self) -> str:
        return SYSTEMS[self.system]


def engine(setting: Setting, **more: Any) -> str:
    """The engine: vLLM's, of 64 sequences and 512 tokens a step, with host memory that KV is swapped to when
    its room is needed (Algorithm 1)."""
    each = latency.build(setting.latency).kv_bytes_per_token or 0
    values: dict[str, Any] = {
        "token_budget": BUDGET,
        "max_seqs": SEQS,
        "evict": "swap",
        "swap_out": "when_needed",
        "host_kv_tokens": int(HOST_BYTES / each),
        **({"kv_tokens": setting.kv_tokens} if setting.kv_tokens else {}),
        **more,
    }
    return spec.write("vllm_v1", {name: value for name, value in values.items() if value is not None})


def reference(setting: Setting) -> Point:
    """The run whose rate is ρ = 1: Sarathi's engine, recompute, all requests there from the start."""
    values: dict[str, Any] = {"max_seqs": SEQS, **({"kv_tokens": setting.kv_tokens} if setting.kv_tokens else {})}
    traffic = Generated(f"poisson:rate_rps={BACKLOGGED_RPS},requests={REFERENCE_REQUESTS},lengths={setting.drawn}")
    return Point(traffic, "sarathi", spec.write("sarathi", values), setting.latency, measure="tails")


def point(
    setting: Setting,
    policy: str,
    rate_rps: float,
    requests: int,
    predictions: str = "oracle",
    arrivals: str = "poisson",
    **more: Any,
) -> Point:
    """``policy`` (as text) at ``rate_rps``; ``more``: what of the engine differs from the study's."""
    joint = "," if ":" in arrivals else ":"
    traffic = Generated(f"{arrivals}{joint}rate_rps={rate_rps:g},requests={requests},lengths={setting.drawn}")
    return Point(traffic, policy, engine(setting, **more), setting.latency, predictions, SKIPPED, "tails")


class Capacities:
    """Requests/s of the reference runs, by setting."""

    def __init__(
        self,
        settings: Sequence[Setting],
        seeds: int = REFERENCE_SEEDS,
        workers: int = 0,
        cache: bool = True,
        done: Callable[[int], None] = lambda runs: None,
    ) -> None:
        """Runs them; ``done`` is called with the number of runs that have come to be known."""
        points = {setting: reference(setting) for setting in settings}
        samples = sample(points.values(), seeds, workers, cache, done)
        self.samples = {setting: column(samples, at, "backlog_rps") for setting, at in points.items()}
        self.rps = {setting: float(rps.mean()) for setting, rps in self.samples.items()}

    def rate(self, setting: Setting, rho: float) -> float:
        """Requests/s that are ``rho`` of the reference run's, to four digits."""
        return float(f"{rho * self.rps[setting]:.4g}")
