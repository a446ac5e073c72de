"""The public traces: where they are, how large, under which licence, whom to cite; and their download."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..errors import UserError, nearest
from ..files import write_atomically

__all__ = ["TRACES", "Fetched", "Trace", "fetch", "find"]

AZURE: Final = "https://github.com/Azure/AzurePublicDataset/raw/master/data/"
AZURE_2024: Final = "https://azurepublicdatasettraces.blob.core.windows.net/azurellminfererencetrace/"
MOONCAKE: Final = "https://github.com/kvcache-ai/Mooncake/raw/main/FAST25-release/traces/"
BAILIAN: Final = "https://github.com/alibaba-edu/qwen-bailian-usagetraces-anon/raw/main/"
CHUNK: Final = 1 << 20
TIMEOUT_S: Final = 60.0
POINTER: Final = b"version https://git-lfs.github.com/spec"
"""How a file begins that only says where the real one is."""


@dataclass(frozen=True)
class Trace:
    """One public trace."""

    name: str
    about: str
    url: str
    size: str
    """In requests, lines or bytes, as far as known; else empty."""
    licence: str
    cite: str

    @property
    def file(self) -> str:
        """The name it is saved under."""
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class Fetched:
    """What became of one download."""

    trace: Trace
    path: Path
    bytes: int
    sha256: str
    new: bool
    """False where the file was there before; it is never overwritten."""


SPLITWISE: Final = (
    "CC-BY",
    "Patel et al., Splitwise: Efficient generative LLM inference using phase splitting, ISCA 2024",
)
DYNAMO: Final = ("CC-BY", "Stojkovic et al., DynamoLLM: Designing LLM inference clusters, HPCA 2025, arXiv 2408.00741")
BURST: Final = (
    "CC-BY-4.0",
    "Wang et al., BurstGPT: A real-world workload dataset to optimize LLM serving, arXiv 2401.17644",
)
FAST25: Final = ("Apache-2.0", "Qin et al., Mooncake: Trading more storage for less computation, FAST 2025")
KVCACHE: Final = ("Apache-2.0", "Wang et al., KVCache cache in the wild, USENIX ATC 2025, arXiv 2506.02634")
SHAREGPT: Final = ("as stated there", "ShareGPT conversations as uploaded by anon8231489123")

TRACES: Final = {
    trace.name: trace
    for trace in (
        Trace(
            "azure-2023-conv",
            "conversations, 1 hour",
            f"{AZURE}AzureLLMInferenceTrace_conv.csv",
            "19,366 requests, 0.7 MB",
            *SPLITWISE,
        ),
        Trace(
            "azure-2023-code",
            "code completion, 1 hour",
            f"{AZURE}AzureLLMInferenceTrace_code.csv",
            "",
            *SPLITWISE,
        ),
        Trace(
            "azure-2024-conv",
            "conversations, 1 week",
            f"{AZURE_2024}AzureLLMInferenceTrace_conv_1week.csv",
            "",
            *DYNAMO,
        ),
        Trace(
            "azure-2024-code",
            "code completion, 1 week",
            f"{AZURE_2024}AzureLLMInferenceTrace_code_1week.csv",
            "",
            *DYNAMO,
        ),
        Trace(
            "burstgpt",
            "ChatGPT and GPT-4 on Azure, first 2 months, failures included",
            "https://github.com/HPMLL/BurstGPT/releases/download/v1.1/BurstGPT_1.csv",
            "1.43 million lines",
            *BURST,
        ),
        Trace(
            "mooncake-conversation", "Kimi chats with prefix blocks", f"{MOONCAKE}conversation_trace.jsonl", "", *FAST25
        ),
        Trace(
            "mooncake-toolagent",
            "Kimi tools and agents with prefix blocks",
            f"{MOONCAKE}toolagent_trace.jsonl",
            "23,608 requests",
            *FAST25,
        ),
        Trace(
            "mooncake-synthetic", "a synthetic mix with prefix blocks", f"{MOONCAKE}synthetic_trace.jsonl", "", *FAST25
        ),
        Trace(
            "qwen-bailian-a",
            "Qwen for consumers, 2 hours, sessions and prefix blocks",
            f"{BAILIAN}qwen_traceA_blksz_16.jsonl",
            "",
            *KVCACHE,
        ),
        Trace(
            "qwen-bailian-b",
            "Qwen by API, 2 hours, sessions and prefix blocks",
            f"{BAILIAN}qwen_traceB_blksz_16.jsonl",
            "",
            *KVCACHE,
        ),
        Trace(
            "qwen-bailian-thinking",
            "Qwen reasoning, sessions and prefix blocks",
            f"{BAILIAN}qwen_thinking_blksz_16.jsonl",
            "",
            *KVCACHE,
        ),
        Trace(
            "qwen-bailian-coder",
            "Qwen coding, sessions and prefix blocks",
            f"{BAILIAN}qwen_coder_blksz_16.jsonl",
            "",
            *KVCACHE,
        ),
        Trace(
            "sharegpt",
            "conversations as texts, without arrival times",
            "https://huggingface.co/datasets/anon8231489123/ShareGPT_Vicuna_unfiltered/resolve/main/"
            "ShareGPT_V3_unfiltered_cleaned_split.json",
            "",
            *SHAREGPT,
        ),
    )
}
"""Every one by name."""


def find(name: str) -> list[Trace]:
    """The trace ``name``, or all whose names begin with ``name-``, or all for an empty name. Raises UserError."""
    found = [trace for key, trace in TRACES.items() if not name or key == name or key.startswith(f"{name}-")]
    if not found:
        raise UserError(f"unknown trace {name!r}{nearest(name, TRACES)}")
    return found


def fetch(
    traces: Sequence[Trace], folder: str | Path, tell: Callable[[Trace, int, int], None] = lambda *_: None
) -> list[Fetched]:
    """Download ``traces`` into ``folder``, each to a temporary file that is then put in place.

    ``tell(trace, bytes so far, bytes in all or 0)`` is called as they come. Raises UserError
    for what cannot be had or written; of that file nothing is left.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder}: is a file; name a folder")
    made = not folder.exists()
    try:
        return [_one(trace, folder / trace.file, tell) for trace in traces]
    finally:
        if made:
            with contextlib.suppress(OSError):
                folder.rmdir()  # only if nothing came


def _one(trace: Trace, path: Path, tell: Callable[[Trace, int, int], None]) -> Fetched:
    new = not path.exists()
    if new:
        write_atomically(path, lambda name: _download(trace, name, tell))
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return Fetched(trace, path, path.stat().st_size, digest.hexdigest(), new)


def _download(trace: Trace, name: str, tell: Callable[[Trace, int, int], None]) -> None:
    try:
        with _opened(trace) as answer, open(name, "wb") as file:
            total, done = int(answer.headers.get("Content-Length") or 0), 0
            while chunk := _read(trace, answer):
                if done == 0 and chunk.startswith(POINTER):
                    raise UserError(
                        f"{trace.name}: {trace.url} gave a Git LFS pointer, not the file; fetch it by git lfs"
                    )
                file.write(chunk)
                done += len(chunk)
                tell(trace, done, total)
            if done == 0 or done < total:
                raise UserError(f"{trace.name}: {trace.url} broke off after {done:,} of {total:,} bytes; try again")
            file.flush()
            os.fsync(file.fileno())
    except (http.client.HTTPException, ValueError) as error:
        raise UserError(f"{trace.name}: {trace.url}: {type(error).__name__}: {error}; try again") from None


def _read(trace: Trace, answer: Any) -> bytes:
    try:
        chunk: bytes = answer.read(CHUNK)
        return chunk
    except OSError as error:
        raise UserError(f"{trace.name}: {trace.url}: {error}; try again") from None


@contextlib.contextmanager
def _opened(trace: Trace) -> Iterator[Any]:
    request = urllib.request.Request(trace.url, headers={"User-Agent": "tailrace"})
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        error.close()
        raise UserError(f"{trace.name}: {trace.url} answers {error.code} {error.reason}; has it moved?") from None
    except OSError as error:
        reason = getattr(error, "reason", None) or error
        raise UserError(f"{trace.name}: {trace.url} cannot be reached ({reason}); check the network") from None
    with answer:
        yield answer
