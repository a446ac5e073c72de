"""vLLM's own engine in this process, with a tiny Llama of made-up weights: for proofs, not for serving.

Scheduler, KV cache, model runner and sampler are vLLM's. Requests come before given engine
steps, so two runs are asked the same however fast the machine is; times are wall clock.

    echo '{"bursts": [[[0, 32, 16, false]]], "max_seqs": 8, "plugins": [null]}' |
        python -m tailrace.vllm_plugin.online OUT.json
"""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from . import TailraceScheduler
from .offline import TINY_LLAMA, offloading

__all__ = ["Ask", "Memory", "Served", "serve"]

MAX_MODEL_LEN = 2048
TOKEN_BUDGET = 512
BLOCK_TOKENS = 32
COUNTED = ("scheduled", "preempted", "displaced", "in_vain", "loaded")
TURN = 50
"""Engine steps until the next engine has its turn."""
# The CPU build's attention needs heads of at least 64.
LLAMA = {**TINY_LLAMA, "hidden_size": 128, "num_attention_heads": 2, "num_key_value_heads": 2}


class Ask(NamedTuple):
    """One request."""

    step: int
    """It arrives before this engine step."""
    prompt_tokens: int
    output_tokens: int
    """It makes exactly so many, and its prediction says so."""
    long: bool


class Memory(NamedTuple):
    """KV blocks of 32 tokens, of which vLLM keeps one."""

    blocks: int
    host_blocks: int
    """In host memory, filled by vLLM's OffloadingConnector; 0 = no connector. A process has one
    connector, which stays: no engine may come after it."""


@dataclass
class Served:
    """What one run saw; lists are by request, in order of arrival."""

    e2e_s: list[float]
    e2e_steps: list[int]
    """Engine steps from arrival to the last token."""
    order: list[int] = field(default_factory=list)
    """Requests as they finished; within a step as vLLM returned them."""
    steps: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    """First arrival to last token."""
    busy_tokens: int = 0
    """Output tokens of steps that left at least ``max_seqs`` requests unfinished, …"""
    busy_s: float = 0.0
    """… the seconds these steps took, …"""
    busy_cpu_s: float = 0.0
    """… and the processor seconds."""
    checksums: list[int] = field(default_factory=list)
    """Of each request's output token ids."""
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))
    """``scheduled`` tokens, computed again or not; ``preempted``; of these, for a waiting request
    ``displaced``, and for one that did not start ``in_vain``; blocks ``loaded`` from host memory."""
    learned: dict[str, float] = field(default_factory=dict)
    """Where step times are learned: the model's figures, and `StepTimes`'s own."""


def _memory(memory: Memory | None) -> dict[str, Any]:
    """vLLM's arguments for it."""
    given: dict[str, Any] = {"max_model_len": MAX_MODEL_LEN}
    if memory is None:
        return given
    longest = min(MAX_MODEL_LEN, (memory.blocks - 1) * BLOCK_TOKENS)
    given = {"block_size": BLOCK_TOKENS, "num_gpu_blocks_override": memory.blocks, "max_model_len": longest}
    if memory.host_blocks:
        # A block's keys and values of all layers; 4 bytes a float.
        size = 2 * 4 * LLAMA["num_hidden_layers"] * LLAMA["hidden_size"] * BLOCK_TOKENS  # type: ignore[operator]
        spec = {"spec_name": "ProcessMemory", "spec_module_path": f"{__package__}.process_memory"}
        given["kv_transfer_config"] = offloading(memory.host_blocks * size, spec)
    return given


def _engine(max_seqs: int, tailrace: dict[str, Any] | None, memory: Memory | None) -> Any:
    """vLLM's engine with its own scheduler (``tailrace=None``) or with the plugin's."""
    from vllm.v1.engine.llm_engine import LLMEngine

    from vllm import EngineArgs

    plugin = f"{TailraceScheduler.__module__}.{TailraceScheduler.__name__}"
    ours = {"scheduler_cls": plugin, "additional_config": {"tailrace": tailrace}} if tailrace else {}
    with tempfile.TemporaryDirectory(prefix="tailrace-llama-") as folder:
        (Path(folder) / "config.json").write_text(json.dumps(LLAMA))
        args = EngineArgs(
            model=folder,
            skip_tokenizer_init=True,
            load_format="dummy",
            dtype="float32",
            seed=0,
            max_num_seqs=max_seqs,
            max_num_batched_tokens=TOKEN_BUDGET,
            enable_prefix_caching=False,
            enforce_eager=True,
            disable_log_stats=True,
            **ours,
            **_memory(memory),
        )
        return LLMEngine.from_engine_args(args)


def _add(engine: Any, row: int, ask: Ask) -> None:
    from vllm.sampling_params import RequestOutputKind

    from vllm import SamplingParams

    told = {
        "tailrace_predicted_output_tokens": ask.output_tokens,
        "tailrace_predicted_class": "long" if ask.long else "short",
    }
    prompt = [(7 * row + i) % LLAMA["vocab_size"] for i in range(ask.prompt_tokens)]  # type: ignore[operator]
    sampling = SamplingParams(
        max_tokens=ask.output_tokens,
        ignore_eos=True,
        temperature=0.0,
        detokenize=False,
        output_kind=RequestOutputKind.DELTA,
        extra_args=told,
    )
    engine.add_request(str(row), {"prompt_token_ids": prompt}, sampling)


class _Run:
    """One engine serving one burst, a step a call."""

    def __init__(self, engine: Any, asks: list[Ask], max_seqs: int) -> None:
        self.engine, self.asks, self.max_seqs = engine, asks, max_seqs
        self.found = Served([0.0] * len(asks), [0] * len(asks), checksums=[0] * len(asks))
        self._count()
        self.came: list[tuple[float, int]] = []
        self.number, self.start = 0, time.perf_counter()

    def _count(self) -> None:
        """Have vLLM's scheduler count what it schedules."""
        scheduler = self.engine.engine_core.engine_core.scheduler
        schedule, found = type(scheduler).schedule, self.found

        def counted(*args: Any, **kwargs: Any) -> Any:
            output = schedule(scheduler, *args, **kwargs)
            found.counts["scheduled"] += output.total_num_scheduled_tokens
            found.counts["preempted"] += len(output.preempted_req_ids or ())
            for name in ("displaced", "in_vain"):
                found.counts[name] = getattr(scheduler, name, 0)
            return output

        scheduler.schedule = counted

    def learned(self) -> dict[str, float]:
        """See `Served.learned`."""
        host = getattr(self.engine.engine_core.engine_core.scheduler, "host", None)
        times = host.times if host else None
        return {**times.cost._asdict(), **times.figures()} if times else {}

    @property
    def over(self) -> bool:
        return len(self.came) == len(self.asks) and not self.engine.has_unfinished_requests()

    def step(self) -> None:
        """Let in who is due (at once, if nobody is there), and make one engine step."""
        found, began, cpu = self.found, time.perf_counter(), time.process_time()
        if not self.engine.has_unfinished_requests():
            self.number = max(self.number, self.asks[len(self.came)].step)
        while len(self.came) < len(self.asks) and self.asks[len(self.came)].step <= self.number:
            _add(self.engine, len(self.came), self.asks[len(self.came)])
            self.came.append((time.perf_counter(), self.number))
        outputs = self.engine.step()
        now, self.number, found.steps = time.perf_counter(), self.number + 1, found.steps + 1
        for output in outputs:
            row = int(output.request_id)
            found.checksums[row] = zlib.crc32(bytes(str(output.outputs[0].token_ids), "ascii"), found.checksums[row])
            if output.finished:
                found.order.append(row)
                found.e2e_s[row], found.e2e_steps[row] = now - self.came[row][0], self.number - self.came[row][1]
        made = sum(len(output.outputs[0].token_ids) for output in outputs)
        found.output_tokens, found.seconds = found.output_tokens + made, now - self.start
        if self.engine.get_num_unfinished_requests() >= self.max_seqs:
            found.busy_tokens += made
            found.busy_s += now - began
            found.busy_cpu_s += time.process_time() - cpu


def serve(
    bursts: list[list[Ask]], max_seqs: int, plugins: list[dict[str, Any] | None], memory: Memory | None = None
) -> list[list[Served]]:
    """Each burst, one after another, by an engine a plugin; what each of them saw, by burst.

    Several engines take turns of some steps, forwards and backwards, so that whatever else the
    machine does falls on all alike: then only ``busy_s`` is an engine's own time. Not step by
    step: each would then find the processor's caches full of another's data, as no engine that
    is alone does.
    """
    from vllm.platforms import current_platform

    engines = []
    for tailrace in plugins:
        engines.append(_engine(max_seqs, tailrace, memory))
        # Once a process is enough, and vLLM's CPU platform, which looks through all modules for
        # it, falls over llvmlite's, which the plugin has loaded by the second time (0.32.0).
        type(current_platform).register_triton_kernel_overrides = lambda *_: None
    found = []
    for asks in bursts:
        runs = [_Run(engine, asks, max_seqs) for engine in engines]
        turn = list(runs)
        while not all(run.over for run in runs):
            for run in turn:
                for _ in range(TURN):
                    if not run.over:
                        run.step()
            turn.reverse()
        for run in runs:
            run.found.learned = run.learned()
        found.append([run.found for run in runs])
    if memory is not None and memory.host_blocks:
        from .process_memory import COPIED

        found[-1][0].counts["loaded"] = COPIED["loaded"]
    return found


def main() -> None:
    """Read what to serve from standard input, write what was seen to the file named: vLLM prints at will."""
    wanted = json.load(sys.stdin)
    bursts = [[Ask(*ask) for ask in asks] for asks in wanted["bursts"]]
    memories = [Memory(*memory) for memory in wanted["memories"]] if wanted.get("memories") else [None]
    found = [runs for each in memories for runs in serve(bursts, wanted["max_seqs"], wanted["plugins"], each)]
    Path(sys.argv[1]).write_text(json.dumps([[dataclasses.asdict(served) for served in runs] for runs in found]))


if __name__ == "__main__":
    main()
