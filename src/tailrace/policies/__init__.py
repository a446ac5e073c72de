"""The policies, one file a family. Importing this registers them all."""

from . import arrival, fixed, quota, shortest  # noqa: F401
