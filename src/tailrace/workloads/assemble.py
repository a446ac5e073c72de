"""What all generators share: parameters with their ranges, and the last step to a `Workload`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Annotated, Any, Final

import numpy as np

from ..errors import UserError
from ..params import P, show
from ..table import F8, I8
from . import _streams as streams
from . import mixes
from .lengths import SOURCES
from .prefix import Prefix
from .shares import FORM
from .workload import Workload

__all__ = [
    "Classes",
    "Groups",
    "Lengths",
    "Mean",
    "Rate",
    "Requests",
    "Seed",
    "Shared",
    "Tenants",
    "mixed",
    "workload",
]

MAX_REQUESTS: Final = 10_000_000
MAX_SEED: Final = 2**53
"""Parameters are read as floats, exact to here."""
MOST_IDS: Final = 2**28
"""Names of prefix blocks in a workload, 2 GB."""

Rate = Annotated[float, P("mean arrival rate", "requests/s", low=0.0, high=1e9, open_low=True)]
Mean = Annotated[float, P("mean duration", "s", low=0.0, high=1e9, open_low=True)]
Requests = Annotated[int, P("how many requests", "requests", low=1, high=MAX_REQUESTS)]
Seed = Annotated[int, P("seed of every random stream", low=0, high=MAX_SEED)]
Groups = Annotated[int, P("how many groups of requests share the start of their prompts", low=0, high=MAX_REQUESTS)]
Shared = Annotated[int, P("what a group shares, ahead of each prompt's own part", "tokens", low=0, high=2**24)]
Lengths = Annotated[
    str,
    P(
        f"mix of lengths, each part with its class, tenant and SLOs; names: {', '.join(SOURCES)}",
        form=f"NAME:ARG…{FORM[4:]}",
    ),
]
Classes = Annotated[str, P("mix of classes, with weight, priority, ttft_slo_s, tpot_slo_s", form=FORM)]
Tenants = Annotated[str, P("mix of tenants", form="NAME@SHARE + …")]


def mixed(name: str, params: Any, arrival_s: F8, idle: Sequence[str] = ()) -> Workload:
    """The workload of ``arrival_s`` with the lengths, classes and tenants that ``params`` names.

    Parameters ``idle`` have no part in it and are not shown. Raises UserError.
    """
    found = mixes.mix(f"workload {name}", params.seed, arrival_s, params.lengths, params.classes, params.tenants)
    made = workload(name, params, arrival_s, found.prompt_tokens, found.output_tokens, found.columns)
    shown = {key: value for key, value in made.description["parameters"].items() if key not in idle}
    return dataclasses.replace(made, description={**made.description, "parameters": shown, "notes": found.notes})


def workload(
    name: str,
    params: Any,
    arrival_s: F8,
    prompt_tokens: I8,
    output_tokens: I8,
    columns: dict[str, Any] | None = None,
) -> Workload:
    """The workload of these columns, with its description and the prefixes that ``params`` asks for."""
    source = " ".join((type(params).__doc__ or "").partition("Source: ")[2].split())
    prefix = _prefix(name, params)
    shown = {key: value for key, value in show(params).items() if value != ""}
    if prefix is None:
        del shown["prefix_groups"], shown["prefix_tokens"]
    description: dict[str, Any] = {
        "source": source,
        "format": "synthetic",
        "generator": name,
        "parameters": shown,
        "seed": shown.get("seed", 0),
    }
    prompts = prompt_tokens + params.prefix_tokens
    return Workload.of(
        arrival_s, prompts, output_tokens, name=name, description=description, prefix=prefix, **(columns or {})
    )


def _prefix(name: str, params: Any) -> Prefix | None:
    """The groups' shared starts, or None. Blocks are of 16 tokens, or of the largest power of two that fits."""
    groups, tokens, requests = params.prefix_groups, params.prefix_tokens, params.requests
    if not groups and not tokens:
        return None
    if not groups or not tokens:
        raise UserError(f"workload {name}: prefix_groups={groups} and prefix_tokens={tokens}: give both, or neither")
    size = math.gcd(tokens, 16)
    each = tokens // size
    if requests * each > MOST_IDS:
        raise UserError(f"workload {name}: {requests} prefixes of {tokens} tokens do not fit in memory; ask for less")
    if hasattr(params, "seed"):
        group = (streams.stream(params.seed, streams.PREFIXES).random(requests) * groups).astype(np.int64)
    else:
        group = np.arange(requests) % groups
    ids = (group[:, None] * each + np.arange(each)).ravel()
    return Prefix(size, ids, np.arange(requests + 1) * each)
