"""What requests are promised, laid over any workload: classes of service, and objectives (SLOs).

Generators and traces may bring their own; what is asked for here replaces it.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from .. import spec as specs
from ..errors import UserError, nearest
from . import mixes
from .shares import JOIN, number
from .workload import Workload, frozen

__all__ = ["PRESETS", "UNCHANGED", "Preset", "Service", "promised"]

KEYS: Final = {"ttft_s": "ttft_slo_s", "tpot_s": "tpot_slo_s"}
"""What a text sets, and the column of the workload."""
FORM: Final = "ttft_s=1,tpot_s=0.05, a preset, or CLASS:… + …"
NONE: Final = "none"


class Preset(NamedTuple):
    """Objectives by name; infinite for none."""

    ttft_s: float
    tpot_s: float
    source: str
    """Where the figures come from, or why they are these."""


PRESETS: Final = {
    "chat": Preset(
        1.0,
        0.05,
        "ours: 1 s keeps a flow of thought (Nielsen, Usability Engineering, 1993, chapter 5), and 20 tokens/s are over "
        "three times what people read (238 words a minute; Brysbaert, J. of Memory and Language, 2019)",
    ),
    "mlperf-70b": Preset(2.0, 0.2, "MLPerf Inference v4.0, Llama 2 70B, server (there: at P99)"),
    "mlperf-70b-interactive": Preset(0.45, 0.04, "MLPerf Inference v5.0, Llama 2 70B, interactive (there: at P99)"),
    "mlperf-405b": Preset(6.0, 0.175, "MLPerf Inference v5.0, Llama 3.1 405B, server (there: at P99)"),
    NONE: Preset(math.inf, math.inf, "takes away the workload's own"),
}


@dataclass(frozen=True)
class Service:
    """What to lay over a workload, as texts and numbers; the defaults change nothing."""

    classes: str = ""
    """A mix as generators take it, `NAME@SHARE weight=… + …`, drawn for each request."""
    slo: str = ""
    """`ttft_s=1,tpot_s=0.05`, a preset, or either after `CLASS:`, joined by +; what is not named stays."""
    slo_scale: float = 1.0
    """What all objectives are multiplied by, the workload's own too."""
    first_token_weight: float | None = None
    """What a first token is worth in later ones, in token gain; None = mean prompt over mean output tokens."""


UNCHANGED: Final = Service()


def promised(workload: Workload, service: Service) -> Workload:
    """``workload`` under ``service``, which its description then names; the draws are those of its own seed.

    Raises UserError for a text that cannot be read, a class that is not there, a number out of
    range, and a scale where there is no objective.
    """
    found = workload
    if service.classes:
        found = _classes(found, service.classes)
    if service.slo:
        found = _objectives(found, service.slo)
    if service.slo_scale != 1.0:
        found = _scaled(found, service.slo_scale)
    weight = service.first_token_weight
    if weight is not None and not 0 < weight < math.inf:
        raise UserError(f"--first-token-weight {weight:g} must be above 0 and finite")
    shown = {key: value for key, value in dataclasses.asdict(service).items() if value != getattr(UNCHANGED, key)}
    return dataclasses.replace(found, description={**workload.description, **shown}) if shown else workload


def _classes(w: Workload, text: str) -> Workload:
    seed = int(w.description.get("seed") or 0)
    given: dict[str, Any] = mixes.labels(f"workload {w.name}", seed, w.arrival_s, text, "")
    weights = given.pop("class_weights", None) or [1.0] * len(given["class_names"])
    columns = {key: frozen(value) if isinstance(value, np.ndarray) else value for key, value in given.items()}
    return dataclasses.replace(w, **columns, class_weights=tuple(weights))


def _objectives(w: Workload, text: str) -> Workload:
    """The parts in turn: one without a class is for all that no other part names."""
    parts: dict[str, dict[str, float]] = {}
    for part in JOIN.split(text):
        owner, values = _part(part.strip(), w.class_names)
        if owner in parts:
            whom = f"class {owner!r}" if owner else "all classes"
            raise UserError(f"--slo {text!r}: objectives of {whom} are given twice; keep one")
        parts[owner] = values
    columns = {}
    for key, column in KEYS.items():
        new = [parts.get(name, parts.get("", {})).get(key, math.nan) for name in w.class_names]
        wanted = np.array(new)[w.class_id]
        columns[column] = frozen(np.where(np.isnan(wanted), getattr(w, column), wanted))
    return dataclasses.replace(w, **columns)


def _part(text: str, classes: tuple[str, ...]) -> tuple[str, dict[str, float]]:
    """``(class, {key: seconds})`` of one part; the class is empty where the part names none."""
    where = f"--slo {text!r}"
    owner, colon, rest = text.rpartition(":")
    if colon and owner.strip() not in classes:
        raise UserError(f"{where}: there is no class {owner.strip()!r}{nearest(owner.strip(), classes)}")
    if "=" not in rest:
        if rest.strip() not in PRESETS:
            raise UserError(f"{where}: no preset {rest.strip()!r}{nearest(rest.strip(), PRESETS)}; write {FORM}")
        preset = PRESETS[rest.strip()]
        return owner.strip(), {"ttft_s": preset.ttft_s, "tpot_s": preset.tpot_s}
    if not all(item.partition("=")[2].strip() for item in rest.split(",")):
        raise UserError(f"{where}: write {FORM}")
    given = specs.parse(f"--slo:{rest}")[1]
    for key in given:
        if key not in KEYS:
            raise UserError(f"{where}: no objective {key!r}{nearest(key, KEYS)}; write {FORM}")
    return owner.strip(), {
        key: math.inf if value == NONE else number(value, f"{where}: {key}", 0, above=True)
        for key, value in given.items()
    }


def _scaled(w: Workload, factor: float) -> Workload:
    if not 0 < factor < math.inf:
        raise UserError(f"--slo-scale {factor:g} must be above 0 and finite")
    if not np.isfinite([w.ttft_slo_s, w.tpot_slo_s]).any():
        raise UserError(f"--slo-scale {factor:g}: this workload sets no SLOs; give --slo, e.g. --slo chat")
    return dataclasses.replace(w, ttft_slo_s=frozen(w.ttft_slo_s * factor), tpot_slo_s=frozen(w.tpot_slo_s * factor))
