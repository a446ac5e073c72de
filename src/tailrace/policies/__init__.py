"""The policies, one file a family. Importing this registers them all."""

from . import arrival, attained, boost, fixed, predicted, quota, shortest, slide, uniboost  # noqa: F401
