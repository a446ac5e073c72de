"""The policies, one file a family. Importing this registers them all."""

from . import (  # noqa: F401
    arrival,
    attained,
    boost,
    deadline,
    fair,
    fixed,
    predicted,
    quota,
    shortest,
    slide,
    uniboost,
)
