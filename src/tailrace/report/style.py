"""One colour and marker a policy in every figure.

Colours are from the palettes of Okabe & Ito and of Paul Tol, which stay apart for the
colour-blind; the ones taken can be seen on white and on near-black alike.
"""

from __future__ import annotations

import colorsys
import dataclasses
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["KNOWN", "ORACLES", "SPARE", "Style", "is_oracle", "style_of", "styles"]


@dataclass(frozen=True)
class Style:
    """How a policy is drawn, in matplotlib's words."""

    color: str
    marker: str
    width: float = 1.6
    dashed: bool = False
    """Told the true output lengths: an upper bound rather than a policy one can run."""
    hollow: bool = False
    """A second set of parameters of the same policy."""

    @property
    def line(self) -> Any:
        """Matplotlib's line style."""
        return (0, (5, 2)) if self.dashed else "solid"

    def drawn(self) -> dict[str, Any]:
        """Keywords of matplotlib's ``plot``."""
        return {
            "color": self.color,
            "linewidth": self.width,
            "linestyle": self.line,
            "marker": self.marker,
            "markerfacecolor": "none" if self.hollow else self.color,
            "markeredgecolor": self.color,
            "markersize": 6 if self.marker in "^v<>PX" else 5,
        }


KNOWN: Final[Mapping[str, Style]] = {
    "fcfs": Style("#808080", "o"),
    "vllm_fcfs": Style("#AA4499", "s"),
    "sarathi": Style("#56B4E9", "D"),
    "priority": Style("#CC79A7", "v"),
    "vllm_priority": Style("#999933", "<"),
    "sjf": Style("#117733", "^"),
    "srpt": Style("#44AA99", ">"),
    "psf": Style("#0072B2", "s"),
    "aa": Style("#E69F00", "X"),
    "qba": Style("#D55E00", "o", width=2.6),
    "las": Style("#0077BB", "v"),
    "mlfq": Style("#33BBEE", "^"),
    "spf": Style("#AAAA00", "X"),
    "ltr": Style("#009988", "s"),
    "trail": Style("#44BB99", "<"),
    "gamma_boost": Style("#997700", ">"),
    "dist_boost": Style("#DDAA33", "v"),
    "uniboost_base": Style("#EE8866", "^"),
    "memguard": Style("#6699CC", "D"),
    "uniboost": Style("#EE3377", "o", width=2.6),
    "uniboost_rekeyed": Style("#CC3311", "D"),
    "slide": Style("#882255", "o", width=2.6),
    "prefill_first": Style("#CC6677", "s"),
    "sarathi_priority": Style("#77AADD", "D"),
    "edf": Style("#228833", "^"),
    "fairbatching": Style("#EE7733", ">"),
    "vtc": Style("#AA3377", "v"),
}
SPARE: Final[Sequence[Style]] = tuple(
    Style(color, marker)
    for marker in "Pdh"
    for color in ("#EE6677", "#4477AA", "#CCBB44", "#8877CC", "#009E73", "#A07050")
)
"""For policies of others, in order of a hash of the name."""
ORACLES: Final = frozenset({"sjf", "srpt", "psf", "aa", "qba", "ltr", "trail"})
"""Policies that act on predictions, and so are oracles when those are the truth."""


def is_oracle(policy: str, predictions: str | None, params: Mapping[str, Any] | None = None) -> bool:
    """Whether the policy acted on true output lengths; `gamma_boost` does if its signal is the size."""
    acts = policy in ORACLES or (policy == "gamma_boost" and (params or {}).get("signal") == "size")
    return acts and predictions == "oracle"


def style_of(policy: str, predictions: str = "", params: Mapping[str, Any] | None = None) -> Style:
    """The style of ``policy`` on its own."""
    base = KNOWN.get(policy) or SPARE[_slot(policy)]
    return dataclasses.replace(base, dashed=is_oracle(policy, predictions, params))


def styles(results: Iterable[Mapping[str, Any]]) -> dict[str, Style]:
    """Label → style. Two foreign policies never share a slot while slots last.

    Further results of one policy keep its marker, hollow, in another shade.
    """
    results = list(results)
    spare = _spread({str(r["policy"]) for r in results} - set(KNOWN))
    seen: dict[str, int] = {}
    out = {}
    for result in results:
        policy = str(result["policy"])
        turn = seen[policy] = seen.get(policy, -1) + 1
        base = style_of(policy, str(result.get("predictions")), result.get("params"))
        if policy in spare:
            base = dataclasses.replace(base, color=spare[policy].color, marker=spare[policy].marker)
        out[str(result.get("label") or policy)] = _variant(base, turn)
    return out


def _slot(policy: str) -> int:
    return int.from_bytes(hashlib.sha256(policy.encode()).digest()[:4], "big") % len(SPARE)


def _spread(names: Iterable[str]) -> dict[str, Style]:
    taken: dict[str, int] = {}
    for name in sorted(names, key=lambda n: (_slot(n), n)):
        slot = _slot(name)
        free = [(slot + i) % len(SPARE) for i in range(len(SPARE)) if (slot + i) % len(SPARE) not in taken.values()]
        taken[name] = free[0] if free else slot
    return {name: SPARE[slot] for name, slot in taken.items()}


def _variant(style: Style, turn: int) -> Style:
    if turn == 0:
        return style
    red, green, blue = (int(style.color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, light, saturation = colorsys.rgb_to_hls(red, green, blue)
    shift = 0.14 * ((turn + 1) // 2) * (1 if turn % 2 else -1)
    parts = colorsys.hls_to_rgb(hue, min(max(light + shift, 0.28), 0.72), saturation)
    color = "#" + "".join(f"{round(255 * p):02X}" for p in parts)
    return dataclasses.replace(style, color=color, hollow=True, width=1.6)
