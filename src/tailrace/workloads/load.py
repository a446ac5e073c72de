"""WORKLOAD, as the command line takes it: a file, or a generator with its parameters."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import spec as specs
from ..errors import UserError, nearest
from . import azure, canonical, predictions, synthetic
from ._rows import PARQUET_MAGIC, check_file, first_row, resembles
from .workload import Workload

__all__ = ["Format", "formats", "load"]


@dataclass(frozen=True)
class Format:
    """A kind of trace file, told by the columns it must have."""

    name: str
    columns: tuple[str, ...]
    read: Callable[[Path], Workload]


def formats() -> dict[str, Format]:
    """Every readable kind of trace file by name."""
    found = (Format("azure", azure.COLUMNS, azure.read), Format("canonical", canonical.COLUMNS, canonical.read))
    return {format.name: format for format in found}


def load(text: str, seed: int | None = None, limit: int | None = None, format: str | None = None) -> Workload:
    """The workload that ``text`` names: a file, or ``name:key=value,...`` for a generator.

    A file's format is found from its content unless ``format`` names it. ``seed`` wins over
    one in ``text``; for a file it only seeds prediction errors. Only the first ``limit``
    requests are kept, and the true classes are those among them. Predictions are an
    oracle's until `tailrace.workloads.apply` says otherwise.

    Raises UserError for a missing or malformed file, and for unknown names, keys and
    formats with the nearest known one.
    """
    name, _, _ = text.partition(":")
    is_generator = name.strip() in synthetic.generators() and format is None and not os.path.isfile(text)
    if is_generator:
        workload = _generated(text, seed)
    elif os.path.exists(text) or format is not None or _is_path(text):
        workload = _read(Path(text), format)
        if seed is not None:
            workload = dataclasses.replace(workload, description={**workload.description, "seed": seed})
    else:
        raise UserError(f"workload {text!r} is neither a file nor a generator{nearest(name, synthetic.generators())}")
    return workload if limit is None else predictions.apply(workload.head(limit), "oracle")


def _is_path(text: str) -> bool:
    separators = [mark for mark in (os.sep, os.altsep) if mark]
    return any(mark in text for mark in separators) or (":" not in text and Path(text).suffix != "")


def _generated(text: str, seed: int | None) -> Workload:
    name, given = specs.parse(text)
    values: dict[str, Any] = dict(given)
    if seed is not None and "seed" in synthetic.generators()[name].params._fields:
        values["seed"] = seed
    workload = synthetic.generate(name, values)
    # A generator without randomness still seeds the prediction errors.
    return (
        workload if seed is None else dataclasses.replace(workload, description={**workload.description, "seed": seed})
    )


def _read(path: Path, format: str | None) -> Workload:
    known = formats()
    if format is not None and format not in known:
        raise UserError(f"unknown format {format!r}{nearest(format, known)}")
    return known[format or _format_of(path)].read(path)


def _format_of(path: Path) -> str:
    """The format whose columns the header resembles most; its reader names what is amiss."""
    if check_file(path).startswith(PARQUET_MAGIC):
        return "canonical"
    header = first_row(path)
    best = max(formats().values(), key=lambda format: resembles(header, format.columns))
    if not resembles(header, best.columns):
        expected = " or ".join(f"{','.join(format.columns)} ({format.name})" for format in formats().values())
        raise UserError(f"{path}: row 1: no known header in {','.join(header)[:80]!r}; expected {expected}")
    return best.name
