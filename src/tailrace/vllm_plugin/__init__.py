"""A drop-in scheduler for vLLM. Importing this package imports neither vllm nor torch.

    vllm serve MODEL --scheduler-cls tailrace.vllm_plugin.TailraceScheduler \\
        --additional-config '{"tailrace": {"policy": "qba", "params": {"k": 5}}}'
"""

from __future__ import annotations

from typing import Any

TESTED = ("0.32.0", "0.31.0", "0.30.0")
"""vLLM versions whose scheduler the engine was compared with, step by step."""


def TailraceScheduler(*args: Any, **kwargs: Any) -> Any:  # noqa: N802  vLLM names a class here
    """vLLM's scheduler (synchronous or asynchronous, as configured) with a tailrace policy."""
    from .scheduler import make_scheduler

    return make_scheduler(*args, **kwargs)
