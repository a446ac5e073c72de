"""Readers of trace files, one module a format, on top of what all of them share.

`source` unpacks a file, `tables` finds its rows in CSV, Parquet or JSON, `rows` converts
their columns and names every mistake by file, row and field.
"""

from __future__ import annotations
