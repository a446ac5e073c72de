"""WORKLOAD, as the command line takes it: a file, or a generator with its parameters."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from .. import spec as specs
from ..errors import UserError, nearest
from ..params import build
from . import canonical, predictions, synthetic
from .readers import azure, burstgpt, json_rows, sharegpt, tables, timed, vllm_bench
from .readers.source import Source
from .workload import Workload

__all__ = ["Format", "formats", "load"]

SAMPLE: Final = 50
"""Objects looked at to tell Mooncake's blocks from others'."""


class NoParams(NamedTuple):
    """A format that leaves nothing to choose."""


@dataclass(frozen=True)
class Format:
    """A kind of trace file, told by the columns it must have; ``params`` are what ``--format name:key=value`` sets."""

    name: str
    columns: tuple[str, ...]
    reader: Callable[..., Workload]
    params: type[Any] = NoParams
    kinds: tuple[str, ...] = ("CSV", "Parquet", "JSON")
    """What it comes as; what else the reader takes is not searched for it."""

    def read(self, path: str | Path | Source, given: Mapping[str, Any] | None = None) -> Workload:
        """The workload in ``path`` with parameters ``given``. Raises UserError."""
        params = build(self.params, given or {}, f"format {self.name}")
        return self.reader(path) if self.params is NoParams else self.reader(path, params)


def formats() -> dict[str, Format]:
    """Every readable kind of trace file by name; of two that fit alike the first is taken."""
    found = (
        Format("azure", azure.COLUMNS, azure.read, kinds=("CSV", "Parquet")),
        Format("burstgpt", burstgpt.COLUMNS, burstgpt.read, kinds=("CSV", "Parquet")),
        Format("canonical", canonical.COLUMNS, canonical.read),
        Format("bailian", timed.BAILIAN, timed.read, timed.BailianParams, ("JSON", "Parquet")),
        Format("mooncake", timed.MOONCAKE, timed.read, timed.MooncakeParams, ("JSON", "Parquet")),
        Format("timed", timed.TIMED, timed.read, timed.TimedParams),
        Format("sharegpt", sharegpt.COLUMNS, sharegpt.read, sharegpt.ShareGPTParams, ("JSON",)),
        Format("vllm_bench", vllm_bench.COLUMNS, vllm_bench.read, vllm_bench.VllmBenchParams, ("JSON",)),
    )
    return {format.name: format for format in found}


def load(text: str, seed: int | None = None, limit: int | None = None, format: str | None = None) -> Workload:
    """The workload that ``text`` names: a file, or ``name:key=value,...`` for a generator.

    A file's format is found from its content unless ``format`` names it, ``name`` or
    ``name:key=value,...``. ``seed`` wins over one in ``text``; for a file it seeds prediction
    errors, and arrivals where the file has none. Only the first ``limit``
    requests are kept, and the true classes are those among them. Predictions are an
    oracle's until `tailrace.workloads.apply` says otherwise.

    Raises UserError for a missing or malformed file, and for unknown names, keys and
    formats with the nearest known one.
    """
    text = synthetic.expanded(text) if format is None else text
    name, _, _ = text.partition(":")
    is_generator = name.strip() in synthetic.generators() and format is None and not os.path.isfile(text)
    if is_generator:
        workload = _generated(text, seed)
    elif os.path.exists(text) or format is not None or _is_path(text):
        workload = _read(Path(text), format, seed)
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


def _read(path: Path, format: str | None, seed: int | None) -> Workload:
    known, name = formats(), ""
    given: dict[str, Any] = {}
    if format is not None:
        name, options = specs.parse(format)
        given |= options
        if name not in known:
            raise UserError(f"unknown format {name!r}{nearest(name, known)}")
    source = Source(path)
    chosen = known[name or _format_of(source)]
    if seed is not None and "seed" in chosen.params._fields:
        given["seed"] = seed
    return chosen.read(source, given)


def _format_of(source: Source) -> str:
    """The format whose columns the file's resemble most; its reader names what is amiss."""
    kind = "Parquet" if source.is_parquet else "JSON" if source.is_json else "CSV"
    if kind == "JSON":
        source.check_text()
    place, found = ("schema", tables.schema(source)) if kind == "Parquet" else tables.header(source)
    fit = [(_fit(found, format), format.name) for format in formats().values() if kind in format.kinds]
    best, name = max(fit, key=lambda item: item[0])
    if best[0] == 0:
        expected = " or ".join(f"{','.join(f.columns)} ({f.name})" for f in formats().values() if kind in f.kinds)
        shown = ",".join(found)[:80]
        raise UserError(f"{source.path}: {place}: no known header in {shown!r}; expected {expected}")
    return _by_blocks(source) if name == "mooncake" and kind == "JSON" else name


def _fit(found: Sequence[str], format: Format) -> tuple[float, int]:
    """The share of the format's columns that are there by a like name, then how many."""
    like = tables.resembles(found, format.columns)
    return like / len(format.columns), like


def _by_blocks(source: Source) -> str:
    """Mooncake's, unless the first requests have as many ids as blocks of 16 tokens, as vLLM's timed traces do."""
    pairs = []
    for _, value in itertools.islice(json_rows.objects(source), SAMPLE):
        ids, tokens = value.get("hash_ids"), value.get("input_length")
        if isinstance(ids, list) and isinstance(tokens, int):
            pairs.append((tokens, len(ids)))
    return "timed" if timed.block_size(pairs) == timed.SIZES[-1] else "mooncake"
