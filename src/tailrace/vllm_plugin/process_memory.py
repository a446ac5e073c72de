"""Host memory for vLLM's OffloadingConnector on the CPU platform: for proofs, not for serving.

vLLM's own copies need CUDA or XPU. All else of the connector is vLLM's, on both sides; here only
the copies between a block and its place in host memory are plain, and done at once.
Tied to vLLM's version.
"""

from __future__ import annotations

from typing import Any

import torch
from vllm.v1.kv_offload.base import OffloadingWorker, TransferResult
from vllm.v1.kv_offload.cpu.spec import CPUOffloadingSpec

__all__ = ["COPIED", "ProcessMemory"]

COPIED = {"stored": 0, "loaded": 0}
"""Blocks copied in this process."""


class _Copies(OffloadingWorker):  # type: ignore[misc]
    """A row of a tensor per block, here as there."""

    def __init__(self, device: Any, blocks: int) -> None:
        self._device = [it.tensor for it in device.tensors]
        self._host = [torch.zeros((blocks, it.shape[1]), dtype=it.dtype) for it in self._device]
        self._done: list[TransferResult] = []

    def _copy(self, job: int, source: tuple[Any, Any], target: tuple[Any, Any], what: str) -> bool:
        (sources, take), (targets, put) = source, target
        for a, b in zip(sources, targets, strict=True):
            b[torch.from_numpy(put.block_ids).long()] = a[torch.from_numpy(take.block_ids).long()]
        COPIED[what] += len(take.block_ids)
        self._done.append(TransferResult(job, success=True))
        return True

    def submit_store(self, job_id: int, src_spec: Any, dst_spec: Any) -> bool:
        return self._copy(job_id, (self._device, src_spec), (self._host, dst_spec), "stored")

    def submit_load(self, job_id: int, src_spec: Any, dst_spec: Any) -> bool:
        return self._copy(job_id, (self._host, src_spec), (self._device, dst_spec), "loaded")

    def get_finished(self) -> list[TransferResult]:
        done, self._done = self._done, []
        return done

    def wait(self, job_ids: set[int]) -> None:
        """They are over."""


class ProcessMemory(CPUOffloadingSpec):  # type: ignore[misc]
    """What ``spec_name`` of the connector's settings names; its ``blocks_per_chunk`` must be 1, the default."""

    _worker: Any

    def get_worker(self, kv_caches: Any) -> Any:
        if self._worker is None:
            self._worker = _Copies(kv_caches, self.num_chunks)
        return self._worker
