"""How long a step takes: models, presets, texts and a fit.

A model is a NamedTuple of numbers for which `step_seconds` and the generics `chunk_s`,
`decode_s` and `constant_s` of `tailrace.hooks` have an implementation.
"""

from __future__ import annotations

from .accuracy import REGIMES, Errors, errors_by_regime, split
from .budget import token_budget
from .fit import Sample, fit_features, fit_profiled, mape, step_features
from .piecewise import PiecewiseParams
from .presets import DEGREES, DEVICES, MODELS, PRESETS, Derived, DeviceFigures, Latency, ModelFigures, derive, preset
from .profiled import ProfiledParams
from .roofline import RooflineParams
from .shape import StepShape, step_seconds, step_shape
from .text import build

__all__ = [
    "DEGREES",
    "DEVICES",
    "MODELS",
    "PRESETS",
    "Derived",
    "DeviceFigures",
    "Latency",
    "ModelFigures",
    "PiecewiseParams",
]
__all__ += ["ProfiledParams", "RooflineParams", "StepShape", "build", "derive", "fit_profiled", "mape", "preset"]
__all__ += ["REGIMES", "Errors", "Sample", "errors_by_regime", "fit_features", "split", "step_features"]
__all__ += ["step_seconds", "step_shape", "token_budget"]
