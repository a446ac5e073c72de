"""A run in the trace event format that Perfetto (ui.perfetto.dev) and chrome://tracing open.

Process 1 is the engine: a slice a step, and counters of waiting and running requests and of
KV tokens after each, and of the policy's paths; with host memory also when it computes (what a step waits for
copies is drawn before that) and the copies of KV each way. Process 2 holds the requests, each on the first lane
that is free: a slice from arrival to end, in it the time it waited (at first, or again after a preemption),
was in prefill and in decode. Times are µs with three decimals, events in order of time.
"""

from __future__ import annotations

import heapq
import itertools
import json
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .. import files
from ..schedule.transfer import IN, OUT

if TYPE_CHECKING:
    from ..sim.watch import Watched

__all__ = ["events", "write_trace"]

ENGINE: Final = 1
REQUESTS: Final = 2
"""Processes."""
COMPUTE: Final = 2
COPIES: Final = {OUT: 3, IN: 4}
"""Threads of the engine's; its first has the steps."""
BATCH: Final = 1000
"""Events encoded at once."""


def write_trace(path: str, watched: Watched) -> None:
    """Write the trace to ``path``, whole or not at all. Raises UserError."""
    files.write_atomically(path, lambda name: _fill(name, watched))


def _fill(name: str, watched: Watched) -> None:
    encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
    meta = watched.result.meta
    about = {key: meta[key] for key in ("policy", "params", "predictions")} | {"workload": meta["workload"]["name"]}
    with open(name, "w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit":"ms","otherData":' + encode(about) + ',"traceEvents":[')
        some, before = events(watched), ""
        while batch := list(itertools.islice(some, BATCH)):
            file.write(f"{before}\n{encode(batch)[1:-1]}")
            before = ","
        file.write("\n]}\n")


def events(watched: Watched) -> Iterator[dict[str, Any]]:
    """Names first, then everything in order of time; a slice comes before those inside it."""
    spans, lanes = _requests(watched)
    yield from _names(watched, lanes)
    spans.sort(key=lambda event: (event["ts"], -event["dur"]))
    kept = (_path(name, *path) for name, path in watched.result.paths.items())
    engine = (_steps(watched), _computing(watched), _copies(watched), _counters(watched))
    timed = heapq.merge(*engine, *kept, spans, key=lambda event: event["ts"])
    for event in timed:
        event["ts"] = event["ts"] / 1000
        if "dur" in event:
            event["dur"] = event["dur"] / 1000
        yield event


def _names(watched: Watched, lanes: int) -> Iterator[dict[str, Any]]:
    def name(pid: int, tid: int, kind: str, text: str) -> dict[str, Any]:
        return {"ph": "M", "pid": pid, "tid": tid, "ts": 0, "name": kind, "args": {"name": text}}

    yield name(ENGINE, 0, "process_name", f"engine: {watched.result.meta['policy']}")
    yield name(ENGINE, 1, "thread_name", "steps")
    if _swaps(watched):
        for tid, text in ((COMPUTE, "compute"), (COPIES[OUT], "copies out"), (COPIES[IN], "copies in")):
            yield name(ENGINE, tid, "thread_name", text)
    yield name(REQUESTS, 0, "process_name", "requests")
    for lane in range(lanes):
        yield name(REQUESTS, lane + 1, "thread_name", f"lane {lane + 1}")


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _slice(pid: int, tid: int, name: str, begin_s: float, end_s: float, **args: Any) -> dict[str, Any]:
    """Times in ns: whole numbers, so that what ends together in the run does so here."""
    begin = _ns(begin_s)
    event = {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": begin, "dur": max(_ns(end_s) - begin, 0)}
    return event | ({"args": args} if args else {})


def _steps(watched: Watched) -> Iterator[dict[str, Any]]:
    for i, s in enumerate(watched.steps):
        args = {"step": i, "prefill_tokens": s.prefill_tokens, "decode_tokens": s.decode_tokens, "requests": s.seqs}
        kind = "mixed" if s.prefill_tokens and s.decode_tokens else "prefill" if s.prefill_tokens else "decode"
        yield _slice(ENGINE, 1, kind, s.begin_s, s.end_s, **args, preempted=s.preempted)


def _swaps(watched: Watched) -> bool:
    return bool(watched.result.meta["rules"]["evict"] == "swap")


def _computing(watched: Watched) -> Iterator[dict[str, Any]]:
    for s in watched.steps if _swaps(watched) else ():
        yield _slice(ENGINE, COMPUTE, "compute", min(s.begin_s + s.copy_wait_s, s.end_s), s.end_s)


def _copies(watched: Watched) -> Iterator[dict[str, Any]]:
    """Those that were discarded have no time if the lane had not begun with them."""
    for c in watched.copies:
        whose = {"request": c.row} if c.row >= 0 else {}
        name = "discarded" if c.discarded else f"request {c.row}" if whose else "copies"
        yield _slice(ENGINE, COPIES[c.lane], name, c.begin_s, c.end_s, **whose, blocks=c.blocks)


def _counters(watched: Watched) -> Iterator[dict[str, Any]]:
    block = watched.result.meta["rules"]["block_tokens"]
    for s in watched.steps:
        for name, value in (("waiting", s.waiting), ("running", s.running), ("KV tokens", s.used_blocks * block)):
            yield _counter(name, s.end_s, value)


def _counter(name: str, time_s: float, value: float) -> dict[str, Any]:
    return {"ph": "C", "pid": ENGINE, "tid": 0, "name": name, "ts": _ns(time_s), "args": {name: value}}


def _path(name: str, times: Any, values: Any) -> Iterator[dict[str, Any]]:
    """What a policy kept over time; a counter cannot show what is not finite."""
    for time_s, value in zip(times.tolist(), values.tolist(), strict=True):
        if math.isfinite(value):
            yield _counter(name, time_s, value)


def _requests(watched: Watched) -> tuple[list[dict[str, Any]], int]:
    """Slices of every request that ended or started, and how many lanes they take."""
    r, meta = watched.result.requests, watched.result.meta
    last = watched.steps[-1].end_s if watched.steps else 0.0
    order = np.argsort(watched.spell_row, kind="stable")
    bounds = np.searchsorted(watched.spell_row[order], np.arange(len(r.arrival_s) + 1))
    out: list[dict[str, Any]] = []
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    lanes = 0
    for row, arrival in enumerate(r.arrival_s):
        mine = order[bounds[row] : bounds[row + 1]]
        if not len(mine):
            continue  # rejected, or never started
        end = float(np.nan_to_num(r.finish_s[row], nan=last))
        while busy and busy[0][0] <= _ns(arrival):
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free:
            lanes += 1
            heapq.heappush(free, lanes)
        lane = heapq.heappop(free)
        heapq.heappush(busy, (_ns(end), lane))
        args = {"class": meta["class_names"][r.class_id[row]], "prompt_tokens": int(r.prompt_tokens[row])}
        args |= {"output_tokens": int(r.output_tokens[row]), "preemptions": int(r.preemptions[row])}
        out.append(_slice(REQUESTS, lane, f"request {row}", float(arrival), end, **args))
        spells = [
            (float(watched.spell_begin_s[i]), float(np.nan_to_num(watched.spell_end_s[i], nan=end))) for i in mine
        ]
        out += _phases(lane, float(arrival), end, float(r.first_token_s[row]), spells)
    return out, lanes


def _phases(
    lane: int, arrival_s: float, end_s: float, first_token_s: float, spells: list[tuple[float, float]]
) -> Iterator[dict[str, Any]]:
    """Waits between spells of service; a spell is prefill up to the first token, then decode."""
    at, again = arrival_s, False
    for begin, end in spells:
        if begin > at:
            yield _slice(REQUESTS, lane, "preempted" if again else "wait", at, begin)
        end = min(end, end_s)
        switch = min(max(begin, first_token_s), end) if first_token_s == first_token_s else end
        if switch > begin:
            yield _slice(REQUESTS, lane, "prefill", begin, switch)
        if end > switch:
            yield _slice(REQUESTS, lane, "decode", switch, end)
        at, again = end, True
    if end_s > at:
        yield _slice(REQUESTS, lane, "preempted", at, end_s)
