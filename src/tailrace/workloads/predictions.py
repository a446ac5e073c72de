"""What policies are told of output lengths: an oracle's word, nothing, or a word with errors."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Any, Final, NamedTuple

import numpy as np

from .. import spec as specs
from ..errors import UserError, nearest
from ..params import P, build, show
from ..table import I8, LONG, SHORT
from . import _streams as streams
from .workload import LONG_QUANTILE, MAX_TOKENS, Workload, frozen, long_class

__all__ = ["SERVER_CAP_TOKENS", "LabelParams", "NoNews", "NoiseParams", "Oracle", "apply", "settings"]

SERVER_CAP_TOKENS: Final = 4096
"""What a server that predicts nothing assumes of an output: its max_tokens cap."""
OF_WORKLOAD: Final = -1

Seed = Annotated[int, P("seed of the errors; -1 takes the workload's", low=-1, high=2**53)]


class Oracle(NamedTuple):
    """The true length and class: an upper bound, not a predictor."""


class NoNews(NamedTuple):
    """No prediction: every request is short and as long as the server's cap.

    The cap is 4096 tokens, or the largest output of the trace if that is larger.
    """


class LabelParams(NamedTuple):
    """A binary label with asymmetric errors (arXiv 2610.17795, sections III-A and IV-A).

    Long iff the output exceeds the quantile. The length told is the mean output of the
    label's true class, so it says nothing that the label does not.
    """

    quantile: Annotated[float, P("quantile of outputs above which one is long", low=0, high=1)] = LONG_QUANTILE
    eps_sl: Annotated[float, P("Pr(predicted long | short)", low=0, high=1)] = 0.0
    eps_ls: Annotated[float, P("Pr(predicted short | long)", low=0, high=1)] = 0.0
    seed: Seed = OF_WORKLOAD


class NoiseParams(NamedTuple):
    """The true length times a lognormal of mean 1 and this coefficient of variation.

    The class is the prediction held against the cutoff of the true classes.
    """

    cv: Annotated[float, P("coefficient of variation of the factor", low=0, high=100)] = 0.5
    seed: Seed = OF_WORKLOAD


def settings() -> dict[str, type[Any]]:
    """Every prediction setting by name, with its class of parameters."""
    return {"oracle": Oracle, "none": NoNews, "label": LabelParams, "noise": NoiseParams}


def apply(workload: Workload, spec: str) -> Workload:
    """``workload`` with the predictions and true classes of ``spec``; lengths stay true.

    ``spec`` is ``oracle``, ``none``, ``label:quantile=0.85,eps_sl=0,eps_ls=0[,seed=0]`` or
    ``noise:cv=0.5[,seed=0]``. Errors are drawn for each request from the seed, by default the
    one in the workload's description (else 0). The draws do not depend on the error
    levels: whoever is mislabelled at a low level is so at every higher one.

    Raises UserError for an unknown setting or key (with the nearest) or a value out of range.
    """
    name, given = specs.parse(spec)
    known = settings()
    if name not in known:
        raise UserError(f"unknown predictions {name!r}{nearest(name, known)}")
    params = build(known[name], given, f"predictions {name}")
    quantile = params.quantile if isinstance(params, LabelParams) else LONG_QUANTILE
    truth = long_class(workload.output_tokens, quantile)
    tokens, label = _told(workload, params, truth)
    shown = {key: value for key, value in show(params).items() if (key, value) != ("seed", OF_WORKLOAD)}
    return dataclasses.replace(
        workload,
        true_class=frozen(truth),
        predicted_output_tokens=frozen(tokens),
        predicted_class=frozen(label),
        predictions=specs.write(name, shown),
    )


def _told(workload: Workload, params: Any, truth: I8) -> tuple[I8, I8]:
    output = workload.output_tokens
    if isinstance(params, LabelParams):
        return _label(workload, params, truth)
    if isinstance(params, NoiseParams):
        return _noise(workload, params)
    if isinstance(params, Oracle):
        return output.copy(), truth.copy()
    cap = max(SERVER_CAP_TOKENS, int(output.max()))
    return np.full(len(output), cap, dtype=np.int64), np.full(len(output), SHORT, dtype=np.int64)


def _label(workload: Workload, params: LabelParams, truth: I8) -> tuple[I8, I8]:
    output = workload.output_tokens
    draw = streams.stream(_seed(workload, params.seed), streams.LABELS).random(len(output))
    wrong = draw < np.where(truth == LONG, params.eps_ls, params.eps_sl)
    label = np.where(wrong, LONG + SHORT - truth, truth)
    # Outputs all alike make no long class; a wrong "long" then can mean no more than the largest.
    means = [output[truth == kind].mean() if (truth == kind).any() else output.max() for kind in (SHORT, LONG)]
    return np.rint(means).astype(np.int64)[label], label


def _noise(workload: Workload, params: NoiseParams) -> tuple[I8, I8]:
    output = workload.output_tokens
    sigma = math.sqrt(math.log1p(params.cv**2))
    draw = streams.stream(_seed(workload, params.seed), streams.NOISE).standard_normal(len(output))
    told = np.rint(output * np.exp(sigma * draw - sigma**2 / 2))
    tokens = np.clip(told, 1, MAX_TOKENS).astype(np.int64)
    return tokens, (tokens > np.quantile(output, LONG_QUANTILE)).astype(np.int64)


def _seed(workload: Workload, seed: int) -> int:
    return int(workload.description.get("seed") or 0) if seed == OF_WORKLOAD else seed
