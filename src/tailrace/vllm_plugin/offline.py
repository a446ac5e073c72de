"""vLLM's own Scheduler object without a model: for comparisons and fuzzing, not for serving.

The scheduler is real and so is its KV cache manager; only the model's outputs are made up
(one token for every request whose known tokens are all computed). Tied to vLLM's version.
"""

from __future__ import annotations

import functools
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import TailraceScheduler

if TYPE_CHECKING:  # with it comes llvmlite, over which vLLM's CPU platform falls as it starts an engine (0.32.0)
    from ..latency import StepShape

__all__ = ["VOCABULARY", "OfflineScheduler", "Settings", "Step", "digits", "offloading", "version"]

MAX_MODEL_LEN = 16384
BITS = 9
VOCABULARY = 1 << BITS
TINY_LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "num_hidden_layers": 2,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 65536,
    "torch_dtype": "float32",
    "rms_norm_eps": 1e-5,
}


@dataclass(frozen=True)
class Settings:
    """vLLM's scheduler settings that a comparison varies."""

    policy: str = "fcfs"
    """``fcfs`` or ``priority``."""
    token_budget: int = 256
    max_seqs: int = 16
    blocks: int = 120
    """All KV blocks; vLLM keeps one of them as its null block."""
    block_tokens: int = 16
    watermark: float = 0.0
    reserve_full_isl: bool = True
    chunk_cap: int = 0
    """vLLM's long_prefill_token_threshold."""
    chunk_cap_adaptive: bool = False
    active_seqs: int = 0
    """vLLM's max_num_active_seqs, where it is below max_num_seqs; 0 = not set."""
    steps_in_flight: int = 1
    """2: asynchronous scheduling."""
    prefix_cache: bool = False
    aborts: bool = False
    """Clients give up while steps are under way."""
    host_blocks: int = 0
    """KV blocks in host memory, filled by vLLM's OffloadingConnector; 0 = no connector."""
    load_steps: int = 1
    """Steps that a load from there takes."""
    tailrace: dict[str, Any] | None = None
    """The plugin's settings; None = vLLM's own scheduler."""


@dataclass(frozen=True)
class Step:
    """What one step does, by row number."""

    tokens: dict[int, int]
    """Tokens a request, in the order they were scheduled."""
    admitted: tuple[int, ...]
    preempted: tuple[int, ...]
    running: tuple[int, ...]
    """The running list after scheduling."""
    shape: StepShape | None = None
    """What it computes, by vLLM's own account; None: not asked."""


def version() -> str:
    """The installed vLLM's version."""
    import vllm

    return str(vllm.__version__)


@functools.lru_cache(maxsize=1)
def _model_folder() -> str:
    folder = tempfile.mkdtemp(prefix="tailrace-llama-")
    (Path(folder) / "config.json").write_text(json.dumps(TINY_LLAMA))
    return folder


def _build(settings: Settings) -> Any:
    """A Scheduler, or an AsyncScheduler, that vLLM would use for these settings."""
    import torch
    from vllm.config import CacheConfig, DeviceConfig, ModelConfig, SchedulerConfig, VllmConfig
    from vllm.v1.core.sched.async_scheduler import AsyncScheduler
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
    from vllm.v1.structured_output import StructuredOutputManager

    model = ModelConfig(
        model=_model_folder(), skip_tokenizer_init=True, dtype="float32", seed=0, max_model_len=MAX_MODEL_LEN
    )
    since_0_31: dict[str, Any] = {}
    if settings.chunk_cap_adaptive:
        since_0_31["long_prefill_token_threshold_adaptive"] = True
    if settings.active_seqs:
        since_0_31["max_num_active_seqs"] = settings.active_seqs
    scheduling = SchedulerConfig(
        max_num_batched_tokens=settings.token_budget,
        max_num_seqs=settings.max_seqs,
        max_model_len=MAX_MODEL_LEN,
        enable_chunked_prefill=True,
        policy=settings.policy,
        is_encoder_decoder=False,
        async_scheduling=False,
        scheduler_reserve_full_isl=settings.reserve_full_isl,
        watermark=settings.watermark,
        long_prefill_token_threshold=settings.chunk_cap,
        **since_0_31,
    )
    cache = CacheConfig(block_size=settings.block_tokens, enable_prefix_caching=settings.prefix_cache)
    # One head of one float: 8 bytes a token, and vLLM rounds a block in host memory up to pages of 4 KiB.
    transfer = offloading(settings.host_blocks << 12, {}) if settings.host_blocks else None
    config = VllmConfig(
        kv_transfer_config=transfer,
        scheduler_config=scheduling,
        model_config=model,
        cache_config=cache,
        device_config=DeviceConfig("cpu"),
        additional_config={"tailrace": settings.tailrace} if settings.tailrace else {},
    )
    # The CPU platform turns asynchronous scheduling off; only the scheduler runs here.
    config.scheduler_config.async_scheduling = settings.steps_in_flight == 2
    cache.num_gpu_blocks = settings.blocks
    spec = FullAttentionSpec(block_size=settings.block_tokens, num_kv_heads=1, head_size=1, dtype=torch.float32)
    stock = AsyncScheduler if settings.steps_in_flight == 2 else Scheduler
    cls = TailraceScheduler if settings.tailrace else stock
    return cls(
        vllm_config=config,
        kv_cache_config=KVCacheConfig(
            num_blocks=settings.blocks, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)]
        ),
        structured_output_manager=StructuredOutputManager(config),
        block_size=settings.block_tokens,
        log_stats=False,
    )


def offloading(host_bytes: int, extra: dict[str, Any]) -> Any:
    """vLLM's own connector to host memory, keeping prompt and output; ``extra``: more of its settings."""
    from vllm.config import KVTransferConfig

    settings = {"cpu_bytes_to_use": host_bytes, "offload_prompt_only": False, **extra}
    return KVTransferConfig(kv_connector="OffloadingConnector", kv_role="kv_both", kv_connector_extra_config=settings)


class _Transfers:
    """The connector's worker side: what it says of copies, without any KV to copy.

    Stores end with the step after the one that asks for them, as vLLM begins them then; those that
    must be over before a block is used again are over in the step that says so.
    """

    def __init__(self, load_steps: int) -> None:
        self._load_steps = load_steps
        self._stores: list[int] = []
        self._loads: list[tuple[int, int, str]] = []
        self._step = 0
        self.loaded_blocks = self.stored_blocks = 0

    @property
    def under_way(self) -> bool:
        """Whether a copy has not ended."""
        return bool(self._stores or self._loads)

    def step(self, wanted: Any) -> Any:
        """What ends in a step, given the connector's metadata of it."""
        from vllm.distributed.kv_transfer.kv_connector.v1.offloading.common import OffloadingWorkerMetadata
        from vllm.v1.outputs import KVConnectorOutput

        self._step += 1
        flushed = [job for job in wanted.store_jobs if job in (wanted.jobs_to_flush or ())]
        done, self._stores = self._stores + flushed, [job for job in wanted.store_jobs if job not in flushed]
        self._loads += [(self._step + self._load_steps - 1, job, it.req_id) for job, it in wanted.load_jobs.items()]
        over = [load for load in self._loads if load[0] <= self._step]
        self._loads = [load for load in self._loads if load[0] > self._step]
        self.stored_blocks += sum(len(it.src_spec.block_ids) for it in wanted.store_jobs.values())
        self.loaded_blocks += sum(len(it.dst_spec.block_ids) for it in wanted.load_jobs.values())
        jobs = dict.fromkeys([*done, *(job for _, job, _ in over)], 1)
        return KVConnectorOutput(
            finished_recving={name for *_, name in over},
            kv_connector_worker_meta=OffloadingWorkerMetadata(completed_jobs=jobs),
        )


def _hasher(block_tokens: int) -> Any:
    """How vLLM names a request's blocks."""
    from vllm.utils.hashing import sha256
    from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash

    init_none_hash(sha256)
    return get_request_block_hasher(block_tokens, sha256)


def digits(number: int, count: int) -> list[int]:
    """``number`` (0 or more) as ``count`` tokens of the vocabulary."""
    return [(number >> (BITS * i)) % VOCABULARY for i in range(count)]


class OfflineScheduler:
    """vLLM's scheduler, fed by row number."""

    def __init__(self, settings: Settings) -> None:
        self.scheduler = _build(settings)
        self.now = 0.0
        """The clock that policies see, seconds."""
        self.scheduler.clock = lambda: self.now
        self.ended = 0
        """Requests that have finished."""
        self._under_way: list[Any] = []
        self._target: dict[str, int] = {}
        """Tokens known of each request when it last started: below these it prefills."""
        named = settings.prefix_cache or settings.host_blocks
        self._hasher = _hasher(settings.block_tokens) if named else None
        self.transfers = _Transfers(settings.load_steps) if settings.host_blocks else None

    def add(
        self, row: int, prompt: list[int], output_tokens: int, arrival_s: float, priority: int, told: dict[str, Any]
    ) -> None:
        """A request arrives; it stops at ``output_tokens``. ``prompt``: token ids below
        `VOCABULARY`; ``told``: its ``vllm_xargs``."""
        from vllm.sampling_params import SamplingParams
        from vllm.v1.request import Request

        request = Request(
            request_id=f"{row:09d}",
            prompt_token_ids=prompt,
            sampling_params=SamplingParams(max_tokens=output_tokens, ignore_eos=True, extra_args=told),
            pooling_params=None,
            arrival_time=arrival_s,
            priority=priority,
            block_hasher=self._hasher,
        )
        self.scheduler.add_request(request)

    def abort(self, row: int) -> None:
        """The client of a live request gives up."""
        from vllm.v1.request import RequestStatus

        self.scheduler.finish_requests(f"{row:09d}", RequestStatus.FINISHED_ABORTED)

    @property
    def live(self) -> list[int]:
        """Rows that wait or run, in order."""
        return sorted(map(int, self.scheduler.requests))

    @property
    def busy(self) -> bool:
        """Whether a request waits or runs."""
        return bool(self.scheduler.get_num_unfinished_requests() > 0)

    @property
    def under_way(self) -> int:
        """Steps scheduled and not yet completed."""
        return len(self._under_way)

    def schedule(self) -> Step | None:
        """Schedule a step; None if it holds nothing (with a connector it may: copies take steps)."""
        output = self.scheduler.schedule()
        if not output.num_scheduled_tokens and not output.preempted_req_ids and self.transfers is None:
            return None
        self.begun(output)
        admitted = [r.req_id for r in output.scheduled_new_reqs] + list(output.scheduled_cached_reqs.resumed_req_ids)
        return Step(
            tokens={int(name): count for name, count in output.num_scheduled_tokens.items()},
            admitted=tuple(sorted(map(int, admitted))),
            preempted=tuple(sorted(map(int, output.preempted_req_ids or ()))),
            running=tuple(int(r.request_id) for r in self.scheduler.running),
            shape=self._shape(output),
        )

    def _shape(self, output: Any) -> StepShape:
        """Prefill chunks and decodes of a step."""
        from ..latency import step_shape

        cached, parts = output.scheduled_cached_reqs, ([], [])  # type: tuple[Any, tuple[list[Any], list[Any]]]
        before = dict(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
        made = dict(zip(cached.req_ids, cached.num_output_tokens, strict=True))
        for new in output.scheduled_new_reqs:
            before[new.req_id], self._target[new.req_id] = new.num_computed_tokens, len(new.prompt_token_ids)
        for name in cached.resumed_req_ids:
            self._target[name] = self.scheduler.requests[name].num_prompt_tokens + made[name]
        for name, count in output.num_scheduled_tokens.items():
            parts[before[name] >= self._target[name]].append((count, before[name]))
        return step_shape(*parts)

    def begun(self, output: Any) -> None:
        """A step that the scheduler has given is under way."""
        self._under_way.append(output)

    def complete(self) -> None:
        """The oldest step under way ends: give its requests their tokens."""
        from vllm.v1.outputs import ModelRunnerOutput

        output = self._under_way.pop(0)
        names = list(output.num_scheduled_tokens)
        live = [name for name in names if name in self.scheduler.requests]
        self.scheduler.update_from_output(
            output,
            ModelRunnerOutput(
                req_ids=names,
                req_id_to_index={name: i for i, name in enumerate(names)},
                sampled_token_ids=[self._sampled(name) if self._samples(output, name) else [] for name in names],
                logprobs=None,
                prompt_logprobs_dict={},
                pooler_output=[],
                kv_connector_output=self.transfers and self.transfers.step(output.kv_connector_metadata),
            ),
        )
        self.ended += sum(name not in self.scheduler.requests for name in live)

    def _sampled(self, name: str) -> list[int]:
        """The next output token: the digits of the request's number over and over, so that no two
        requests with the same prompt go on alike."""
        request = self.scheduler.requests.get(name)
        made = request.num_output_tokens if request is not None else 0
        return [digits(int(name), 3)[made % 3]]

    def _samples(self, output: Any, name: str) -> bool:
        """Whether the step computed the last of the request's known tokens."""
        request = self.scheduler.requests.get(name)
        if request is None:
            return False
        done = output.num_scheduled_tokens[name]
        for new in output.scheduled_new_reqs:
            if new.req_id == name:
                return bool(new.num_computed_tokens + done >= len(new.prompt_token_ids))
        cached = output.scheduled_cached_reqs
        i = cached.req_ids.index(name)
        known = request.num_prompt_tokens + cached.num_output_tokens[i]
        return bool(cached.num_computed_tokens[i] + done >= known)
