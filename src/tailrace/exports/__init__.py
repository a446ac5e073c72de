"""Files for other tools: a row a request in Parquet, vLLM's benchmark result, a trace for Perfetto.

parquet   what each request saw; the schema says what each column is
bench     the JSON file of `vllm bench serve --save-result --save-detailed`, and more
chrome    steps, counters and requests over time in the trace event format
names     a file a policy
"""

from __future__ import annotations

from .bench import write_bench
from .chrome import write_trace
from .names import per_policy
from .parquet import write_requests

__all__ = ["per_policy", "write_bench", "write_requests", "write_trace"]
