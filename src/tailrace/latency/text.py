"""Latency models as texts on a command line, and as files of settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple

from .. import files, params, spec
from ..errors import UserError, nearest
from ..params import P
from .piecewise import PiecewiseParams
from .presets import DEVICES, MODELS, PRESETS, Cost, DeviceFigures, Latency, derived_latency
from .profiled import ProfiledParams

__all__ = ["RooflineOptions", "build"]

OF_THE_DEVICE: Final = ("kv_tokens", "kv_bytes_per_token")
"""What a file may say of memory besides a model's parameters: whole numbers above 0."""


class RooflineOptions(NamedTuple):
    """What a ``roofline:`` text may set. The last four default to the device's own."""

    model: Annotated[int, P("a known model", choices=tuple(MODELS))]
    device: Annotated[int, P("a known device", choices=tuple(DEVICES))]
    mfu: Annotated[float, P("share of the peak flops reached", low=0, high=1, open_low=True)]
    mbu: Annotated[float, P("share of the peak bandwidth reached", low=0, high=1, open_low=True)]
    overhead_s: Annotated[float, P("every step, beside the device's work", unit="s", low=0, open_high=True)]
    per_seq_s: Annotated[float, P("per decoding sequence", unit="s", low=0, open_high=True)]
    tp: Annotated[int, P("devices that share the model", low=1, high=1024)] = 1


def build(text: str) -> Latency:
    """The latency model that ``text`` describes.

    ``PRESET``, ``PRESET:key=value,…`` (overrides of its parameters), ``piecewise:…``,
    ``profiled:constant_s=…,…`` or ``roofline:model=…,device=…[,tp=,mfu=,mbu=,overhead_s=,
    per_seq_s=]``. The result's ``name`` is the text. Or a TOML, YAML or JSON file with the same
    keys, ``latency`` for the name, and, if wanted, ``kv_tokens``, ``kv_bytes_per_token`` and ``summary``.

    Raises UserError, one line, for an unknown name or key and a value out of range.
    """
    text = text.strip()
    return _from_file(text) if files.is_config(text) else _build(text, *spec.parse(text))


def _from_file(path: str) -> Latency:
    given = files.read_config(path)
    name = given.pop("latency", None)
    if not isinstance(name, str):
        raise UserError(f"{path}: latency={name!r} must name a model, as profiled")
    about = given.pop("summary", "")
    memory = {key: given.pop(key) for key in OF_THE_DEVICE if key in given}
    for key, value in memory.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UserError(f"{path}: {key}={value!r} must be a whole number above 0")
    try:
        found = _build(path, name, given)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return dataclasses.replace(found, name=path, summary=str(about) or found.summary, **memory)


def _build(text: str, name: str, given: Mapping[str, Any]) -> Latency:
    if name == "roofline":
        return _roofline(text, given)
    if name == "piecewise":
        return Latency(text, params.build(PiecewiseParams, given, "latency piecewise"), None, "as given")
    if name == "profiled":
        return Latency(text, params.build(ProfiledParams, given, "latency profiled"), None, "as given")
    if name not in PRESETS:
        known = [*PRESETS, "piecewise", "profiled", "roofline"]
        raise UserError(f"unknown latency model {name!r}{nearest(name, known)}")
    return _override(PRESETS[name], text, given)


def _override(base: Latency, text: str, given: Mapping[str, Any]) -> Latency:
    if not given:
        return base
    cost: Cost = params.build(type(base.cost), {**base.cost._asdict(), **given}, f"latency {base.name}")
    changed = ", ".join(f"{key}={value}" for key, value in given.items())
    return dataclasses.replace(base, name=text, cost=cost, summary=f"{base.summary}; changed: {changed}")


def _roofline(text: str, given: Mapping[str, Any]) -> Latency:
    device = DEVICES.get(str(given.get("device", "")))
    own: dict[str, Any] = {}
    if device is not None:
        own = {key: value for key, value in device._asdict().items() if key in RooflineOptions._fields}
    options = params.build(RooflineOptions, {**own, **given}, "latency roofline")
    model, place = tuple(MODELS)[options.model], tuple(DEVICES)[options.device]
    changed = {key: value for key, value in options._asdict().items() if key in DeviceFigures._fields}
    figures = DEVICES[place]._replace(**changed)
    return derived_latency(text, model, place, tp=options.tp, kind="roofline", figures=figures)
