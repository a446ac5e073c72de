"""Reader of what ``vllm bench serve --save-result --save-detailed`` writes.

Source: vLLM (https://github.com/vllm-project/vllm, Apache-2.0), vllm/benchmarks/serve.py of
0.30 to 0.32. Lists with an entry a request: input_lens, output_lens, start_times (seconds of
a clock of the client's own), ttfts, itls (seconds), errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np

from ...errors import UserError
from ...params import P
from ...table import F8, I8
from ..workload import MAX_TOKENS, Workload
from .about import describe, reordered
from .json_values import values
from .source import Source

__all__ = ["COLUMNS", "VllmBenchParams", "read"]

COLUMNS: Final = ("completed", "request_throughput", "input_lens", "output_lens")
SERVED: Final = "run it again with --save-result --save-detailed"
QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


class VllmBenchParams(NamedTuple):
    """A result file of vLLM's serving benchmark."""

    result: Annotated[int, P("which result of a file with several, from 1; 0 = the only one", low=0, high=10**6)] = 0


ONLY: Final = VllmBenchParams()


def read(path: str | Path | Source, params: VllmBenchParams = ONLY) -> Workload:
    """The requests of one benchmark run, as they were sent; those that failed are dropped and counted.

    Arrivals count from the first ``start_times``; where an older vLLM wrote none, all
    arrive at 0, and a note says so. What was measured is summed up in
    ``description["measured"]``: ttft_s and itl_s with mean, P50, P90, P99.

    Raises UserError for results saved without details, several without a choice, and lists
    that do not match, by their entry (from 0).
    """
    source = Source.of(path)
    found, which = _result(source, params.result)
    prompt, output = _tokens(source, found, "input_lens"), _tokens(source, found, "output_lens")
    _same_length(source, found, len(prompt))
    errors = np.array([bool(error) for error in found.get("errors") or [""] * len(prompt)])
    kept = np.flatnonzero((output > 0) & ~errors)
    if not len(kept):
        raise UserError(f"{source.path}: field output_lens: none of {len(prompt)} requests was answered; {SERVED}")
    if (prompt[kept] < 1).any():
        entry = int(kept[int(np.argmax(prompt[kept] < 1))])
        raise UserError(f"{source.path}: field input_lens[{entry}]: 0 is no prompt; correct it or delete the request")
    arrival, notes = _arrivals(source, found, kept)
    description = describe(
        source.path,
        "vllm_bench",
        len(kept),
        params=params,
        units={"start_times": "s", "input_lens": "tokens", "output_lens": "tokens", "ttfts": "s", "itls": "s"},
        dropped={"failed": len(prompt) - len(kept)},
        reordered_rows=reordered(arrival),
        notes=[*notes, *which],
    )
    description["measured"] = _measured(source, found, kept)
    return Workload.of(arrival, prompt[kept], output[kept], name=source.name, description=description)


def _result(source: Source, wanted: int) -> tuple[Mapping[str, Any], list[str]]:
    results = [value for _, value in values(source)]
    if wanted > len(results) or (wanted == 0 and len(results) > 1):
        remedy = f"choose one by --format vllm_bench:result=1 to {len(results)}"
        raise UserError(f"{source.path}: holds {len(results)} results; {remedy}")
    found = results[max(wanted, 1) - 1]
    for field in ("input_lens", "output_lens"):
        if not isinstance(found, dict) or not isinstance(found.get(field), list):
            raise UserError(f"{source.path}: field {field}: no such list of requests; {SERVED}")
        if not found[field]:
            raise UserError(f"{source.path}: field {field}: is empty; {SERVED}")
    return found, [f"result {max(wanted, 1)} of {len(results)}"] if len(results) > 1 else []


def _same_length(source: Source, found: Mapping[str, Any], rows: int) -> None:
    for field in ("output_lens", "start_times", "ttfts", "itls", "errors"):
        given = found.get(field)
        if given and (not isinstance(given, list) or len(given) != rows):
            count = len(given) if isinstance(given, list) else "no list of"
            wrong = f"{count} entries, but input_lens has {rows}"
            raise UserError(f"{source.path}: field {field}: {wrong}; the file is damaged, {SERVED}")


def _tokens(source: Source, found: Mapping[str, Any], field: str) -> I8:
    values = _numbers(source, found[field], field)
    bad = ~((values >= 0) & (values <= MAX_TOKENS) & (values == np.floor(values)))
    if bad.any():
        entry = int(np.argmax(bad))
        wrong = f"{repr(found[field][entry])[:40]} is not a whole number in [0, {MAX_TOKENS}]"
        raise UserError(f"{source.path}: field {field}[{entry}]: {wrong}; correct it or delete the request")
    return values.astype(np.int64)


def _numbers(source: Source, given: list[Any], field: str) -> F8:
    for entry, value in enumerate(given):
        if isinstance(value, bool) or not isinstance(value, int | float):
            wrong = f"{repr(value)[:40]} is not a number"
            raise UserError(f"{source.path}: field {field}[{entry}]: {wrong}; correct it or delete the request")
    # An integer too large for a float is out of every range anyway.
    return np.array([min(max(value, -1e300), 1e300) for value in given], dtype=np.float64)


def _arrivals(source: Source, found: Mapping[str, Any], kept: I8) -> tuple[F8, list[str]]:
    if not found.get("start_times"):
        rate = f" (it was asked for {found['request_rate']} requests/s)" if "request_rate" in found else ""
        return np.zeros(len(kept)), [f"the file has no start_times: all requests arrive at 0 s{rate}"]
    start = _numbers(source, found["start_times"], "start_times")
    if not np.isfinite(start[kept]).all():
        entry = int(kept[int(np.argmax(~np.isfinite(start[kept])))])
        raise UserError(f"{source.path}: field start_times[{entry}]: must be finite; correct it or delete the request")
    first: F8 = start[kept] - start[kept].min()
    return first, ["arrivals count from the earliest of start_times, a clock of the client's own"]


def _measured(source: Source, found: Mapping[str, Any], kept: I8) -> dict[str, dict[str, float]]:
    out = {}
    if found.get("ttfts"):
        out["ttft_s"] = _summary(_numbers(source, found["ttfts"], "ttfts")[kept])
    if found.get("itls"):
        lists = [found["itls"][entry] for entry in kept.tolist()]
        if not all(isinstance(gaps, list) for gaps in lists):
            raise UserError(f"{source.path}: field itls: must hold a list of gaps for each request; {SERVED}")
        flat = [gap for gaps in lists for gap in gaps]
        out["itl_s"] = _summary(_numbers(source, flat, "itls"))
    return {field: summary for field, summary in out.items() if summary}


def _summary(values: F8) -> dict[str, float]:
    if not len(values):
        return {}
    return {"mean": float(values.mean()), **{name: float(np.quantile(values, q)) for name, q in QUANTILES.items()}}
