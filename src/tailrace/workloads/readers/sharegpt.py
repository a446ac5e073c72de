"""Reader of conversations as ShareGPT has them: each answer is a request, its prompt all before it.

Source: dumps of ShareGPT, such as ShareGPT_V3_unfiltered_cleaned_split.json
(https://huggingface.co/datasets/anon8231489123/ShareGPT_Vicuna_unfiltered). Turns
are {from, value} under "conversations", or {role, content} under "messages".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np

from ...errors import UserError
from ...params import P
from ...table import F8, I8
from .. import _streams as streams
from ..prefix import Prefix
from ..workload import Workload
from .about import describe
from .json_values import values
from .source import Source

__all__ = ["COLUMNS", "ShareGPTParams", "read"]

COLUMNS: Final = ("conversations",)
LISTS: Final = ("conversations", "messages")
ANSWERS: Final = frozenset({"gpt", "assistant", "chatgpt", "bing", "bard", "model"})

Count = Callable[[Sequence[str]], list[int]]


class ShareGPTParams(NamedTuple):
    """Conversations without arrival times."""

    session_rps: Annotated[
        float, P("conversations that begin, Poisson; 0 = all at 0", "conversations/s", low=0, high=1e9)
    ] = 0.0
    turn_gap_s: Annotated[float, P("from each request of a conversation to its next", "s", low=0, high=1e9)] = 0.0
    tokenizer: Annotated[str, P("file, folder or name of a Hugging Face tokenizer; none = an estimate")] = "none"
    block_tokens: Annotated[
        int, P("name the prompts' blocks of so many tokens; 0 = none", "tokens", low=0, high=2**20)
    ] = 0
    chars_per_token: Annotated[float, P("of the estimate", "characters", low=0, high=1000, open_low=True)] = 4.0
    seed: Annotated[int, P("seed of the arrivals", low=0, high=2**53)] = 0


AS_IS: Final = ShareGPTParams()


def read(path: str | Path | Source, params: ShareGPTParams = AS_IS) -> Workload:
    """The conversations in ``path``, a JSON array or JSON Lines, as requests of sessions.

    An answer (from gpt or assistant) right after somebody else's turn is a request; one
    with nothing before it, or after another answer, is only part of later prompts. A
    prompt is all turns before, without a chat template's own tokens. Empty prompts and
    answers are dropped and counted.

    Raises UserError by conversation and turn.
    """
    source = Source.of(path)
    count, how = _counter(params)
    session, prompt, output, dropped = _requests(source, count)
    if not len(session):
        nothing = "no conversation has an answer after somebody else's turn"
        raise UserError(f"{source.path}: {nothing}; there is nothing to run")
    description = describe(
        source.path,
        "sharegpt",
        len(session),
        params=params,
        units={"value": "text"},
        dropped=dropped,
        notes=["a prompt is all turns before the answer, without a chat template", _when(params), _shared(params)],
        estimates=[how],
    )
    arrival, prefix = _arrivals(session, params), _prefix(session, prompt, params.block_tokens)
    return Workload.of(
        arrival, prompt, output, name=source.name, description=description, session=session, prefix=prefix
    )


def _requests(source: Source, count: Count) -> tuple[I8, I8, I8, dict[str, int]]:
    """``(session, prompt tokens, output tokens, dropped by reason)`` in the order of the file."""
    found: list[tuple[int, int, int]] = []
    dropped = {"empty prompt or answer": 0, "conversation without an answer": 0}
    for number, (place, value) in enumerate(values(source)):
        turns = _turns(source, place, value)
        tokens = count([text for _, text in turns])
        before = list(itertools.accumulate(tokens, initial=0))
        answers = [i for i, (who, _) in enumerate(turns) if who in ANSWERS and i and turns[i - 1][0] not in ANSWERS]
        good = [(number, before[i], tokens[i]) for i in answers if before[i] and tokens[i]]
        dropped["empty prompt or answer"] += len(answers) - len(good)
        dropped["conversation without an answer"] += not answers
        found += good
    session, prompt, output = np.array(found, dtype=np.int64).reshape(-1, 3).T
    return session, prompt, output, dropped


def _turns(source: Source, place: str, value: Any) -> list[tuple[str, str]]:
    """``(who, text)`` of each turn of one conversation."""
    where = f"{source.path}: {place.replace('item', 'conversation')}"
    field = next((name for name in LISTS if isinstance(value, dict) and isinstance(value.get(name), list)), None)
    if field is None:
        raise UserError(f"{where}: has no list of turns under {' or '.join(LISTS)}; correct it or delete it")
    out = []
    for number, turn in enumerate(value[field], start=1):
        pairs = (("from", "value"), ("role", "content"))
        keys = next((keys for keys in pairs if isinstance(turn, dict) and keys[0] in turn), pairs[0])
        who, text = (turn.get(key) if isinstance(turn, dict) else None for key in keys)
        if not isinstance(who, str) or not isinstance(text, str):
            wrong = f"field {field}: turn {number} has no text under {keys[0]} and {keys[1]}"
            raise UserError(f"{where}: {wrong}; correct it or delete the conversation")
        out.append((who.lower(), text))
    return out


def _counter(params: ShareGPTParams) -> tuple[Count, str]:
    """What counts the tokens of texts, and how in words."""
    name = params.tokenizer
    if name == "none":
        per = params.chars_per_token
        how = f"tokens are characters / {per:g}, rounded up; give tokenizer=FILE to count them"
        return lambda texts: [math.ceil(len(text) / per) for text in texts], how
    try:
        import tokenizers
    except ImportError:
        raise UserError(f"tokenizer={name}: needs an extra package: pip install 'tailrace[tokenizers]'") from None
    path = Path(name) / "tokenizer.json" if Path(name).is_dir() else Path(name)
    try:
        cls = tokenizers.Tokenizer
        known = cls.from_file(str(path)) if path.is_file() else cls.from_pretrained(name)
    except Exception as error:  # its own kinds are not public
        reason = " ".join(str(error).split())[:120]
        raise UserError(f"tokenizer={name}: cannot be read ({reason}); give a tokenizer.json or its folder") from None
    known.no_truncation()
    known.no_padding()

    def count(texts: Sequence[str]) -> list[int]:
        return [len(item.ids) for item in known.encode_batch(list(texts), add_special_tokens=False)]

    return count, f"tokens were counted by the tokenizer {name}, each turn by itself, without special tokens"


def _shared(params: ShareGPTParams) -> str:
    if not params.block_tokens:
        return "what prompts of a conversation share is not named; block_tokens=16 names it"
    return f"prompts share their blocks of {params.block_tokens} tokens within a conversation, none between two"


def _prefix(session: I8, prompt: I8, block_tokens: int) -> Prefix | None:
    """Every prompt of a conversation begins with the one before it."""
    if not block_tokens:
        return None
    counts = prompt // block_tokens
    names, which = np.unique(session, return_inverse=True)
    longest = np.zeros(len(names), dtype=np.int64)
    np.maximum.at(longest, which, counts)
    base = np.cumsum(longest) - longest
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    index = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
    return Prefix(block_tokens, np.repeat(base[which], counts) + index, offsets)


def _when(params: ShareGPTParams) -> str:
    gap = f"each next turn arrives {params.turn_gap_s:g} s after the last" if params.turn_gap_s else "all turns at once"
    if not params.session_rps:
        start = "the file has no arrival times: every conversation begins at 0 s"
        return f"{start}, {gap}; session_rps and turn_gap_s make others"
    return f"the file has no arrival times: conversations begin as a Poisson process of {params.session_rps:g}/s, {gap}"


def _arrivals(session: I8, params: ShareGPTParams) -> F8:
    names, first, which = np.unique(session, return_index=True, return_inverse=True)
    gaps = streams.stream(params.seed, streams.ARRIVALS).exponential(1.0, len(names))
    start = np.cumsum(gaps) / params.session_rps if params.session_rps else np.zeros(len(names))
    turn = np.arange(len(session)) - first[which]
    arrival: F8 = start[which] + turn * params.turn_gap_s
    return arrival
