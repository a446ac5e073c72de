"""Sentences that state what was computed: what a run is, what its load means, who is where."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from .style import is_oracle
from .values import duration, lookup, number, plain

__all__ = ["MEANING", "extremes", "join", "load_notes", "peak", "promoted"]
__all__ += ["quiet", "share_reading", "starved", "workload_line"]

MEANING: Final = {
    "OVERLOADED": (
        "more work arrived than the engine serves, so waits depend on how long the run is, and percentiles "
        "describe this run alone"
    ),
    "BACKLOGGED": (
        "work piled up for over 2 % of the run (a burst, or a load near capacity), so percentiles partly depend on "
        "its length"
    ),
}
"""What `metrics.load_state` found, and what follows."""


def join(names: Sequence[str]) -> str:
    """``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def workload_line(document: Mapping[str, Any]) -> str:
    """The workload and its load in a few words."""
    w = document.get("workload") or {}
    parts = [f"{plain(w.get('requests'))} requests"]
    if w.get("span_s"):
        parts.append(f"over {duration(w['span_s'])}")
    if w.get("rate_rps"):
        parts.append(f"({number(w['rate_rps'])} a second)")
    tokens = [w.get("prompt_tokens_mean"), w.get("output_tokens_mean")]
    if None not in tokens:
        parts.append(f"with {number(tokens[0])} prompt and {number(tokens[1])} output tokens on average")
    return f"{w.get('name', 'workload')}: {' '.join(parts)}"


def load_notes(document: Mapping[str, Any]) -> list[str]:
    """What load, missing requests, or the lack of a queue mean for the numbers; often nothing."""
    results = document["results"]
    notes = []
    if quiet(results):
        waits = [lookup(r, ("metrics", "wait_s", "max")) for r in results]
        notes.append(f"No queueing: policy cannot matter (the longest wait of all is {duration(max(waits))}).")
    for state, meaning in MEANING.items():
        labels = [_label(r) for r in results if r.get("load_state") == state]
        if labels:
            who = "All policies" if len(labels) == len(results) > 1 else join(labels)
            notes.append(f"{who}: {state}. That means {meaning}.")
    notes += _ends(document) + [f"{_label(r)}: {text}." for r in results if (text := starved(r))]
    notes += [f"{_label(r)}: {text}." for r in results if (text := promoted(r))]
    notes += [f"{_label(r)}: {text}." for r in results for text in tallied(r)]
    told = [_label(r) for r in results if is_oracle(r["policy"], r.get("predictions"), r.get("params"))]
    if told:
        verb = "is" if len(told) == 1 else "are"
        notes.append(f"{join(told)} {verb} told the true output lengths (oracle): an upper bound, not to be had live.")
    for r in results:
        done, sent = lookup(r, ("counts", "completed")), lookup(r, ("counts", "submitted"))
        if sent and done is not None and done < sent:
            notes.append(
                f"{_label(r)} completed {number(100 * done / sent)} % of its requests; times leave out what the "
                "others did not reach, which can make them look shorter."
            )
    return notes


def _ends(document: Mapping[str, Any]) -> list[str]:
    """By how much an engine that did not keep up ended after the last arrival."""
    late = [r for r in document["results"] if r.get("load_state") == "OVERLOADED"]
    took = {_label(r): lookup(r, ("engine", "makespan_s")) for r in late}
    span, known = (document.get("workload") or {}).get("span_s"), {k: v for k, v in took.items() if v}
    if not span or not known:
        return []
    ends = join([f"{duration(seconds)} under {label}" for label, seconds in known.items()])
    return [f"Requests arrived over {duration(span)}; the last of them finished after {ends}."]


def quiet(results: Sequence[Mapping[str, Any]]) -> bool:
    """Whether requests started under every policy, and nobody waited under any."""
    waits = [lookup(r, ("metrics", "wait_s", "max")) for r in results]
    return bool(results) and None not in waits and not any(r.get("queueing", True) for r in results)


def starved(result: Mapping[str, Any]) -> str:
    """Who starved under a policy, in a sentence without its end; empty if nobody did."""
    found = result.get("starvation") or {}
    if not found.get("requests"):
        return ""
    if (result.get("counts") or {}).get("by_seed"):  # each of these is a mean over seeds, and no longest is twice it
        return (
            f"starves {number(found['requests'])} requests a seed on average: they waited over twice as long as "
            "anybody would have, first come, first served"
        )
    return (
        f"starves {found['requests']:,.0f} requests: they waited over twice as long as anybody would have, first "
        f"come, first served (2 × {duration(found['fcfs_longest_wait_s'])}), the longest "
        f"{duration(found['longest_wait_s'])}"
    )


def promoted(result: Mapping[str, Any]) -> str:
    """How often a policy put long requests first, in a sentence without its end; empty if it has no such tally."""
    tallies = result.get("tallies") or {}
    started, ahead = tallies.get("predicted_long_started"), tallies.get("promoted")
    if not started or ahead is None:
        return ""
    return f"put {100 * ahead / started:.0f} % of the predicted-long requests first, as aged"


def tallied(result: Mapping[str, Any]) -> list[str]:
    """What a policy counted of its own doings, in sentences without their ends; what is 0 is left out."""
    tallies = result.get("tallies") or {}

    def times(name: str) -> str:
        count = tallies[name]
        return f"{number(count)} times a seed on average" if tallies.get("by_seed") else f"{count:,.0f} times"

    out = []
    if tallies.get("gamma_fits"):
        last = f"to {tallies['gamma_per_s']:.3g} per second at last"
        out.append(f"fitted γ to the tail of response times {times('gamma_fits')}, {last}")
    if tallies.get("early_evictions"):
        what = "took KV from a request before its next milestone, as nobody else could yield"
        out.append(f"{what}, {times('early_evictions')}")
    if tallies.get("starvation_promotions"):
        out.append(f"put requests first that had starved, {times('starvation_promotions')}")
    return out


def extremes(values: Mapping[str, float | None], what: str) -> str:
    """``what is lowest under a (1 s) and highest under b (2 s)``, with whoever shows the same number."""
    known = {label: v for label, v in values.items() if v is not None and math.isfinite(v)}
    if not known:
        return f"{what} is not known for any policy"
    low, high = min(known.values()), max(known.values())
    if duration(low) == duration(high):
        return f"{what} is {duration(low)}" + (" under all policies" if len(known) > 1 else "")
    lowest = [label for label, v in known.items() if duration(v) == duration(low)]
    highest = [label for label, v in known.items() if duration(v) == duration(high)]
    return (
        f"{what} is lowest under {join(lowest)} ({duration(low)}) and highest under {join(highest)} ({duration(high)})"
    )


def share_reading(shares: Mapping[str, float], threshold_s: float, words: str) -> str:
    """Under which policies the most and the fewest requests take at most a time."""
    shown = {label: f"{number(100 * share)} %" for label, share in shares.items()}
    most, fewest = max(shares.values()), min(shares.values())
    first = [label for label in shares if shown[label] == f"{number(100 * most)} %"]
    last = [label for label in shares if shown[label] == f"{number(100 * fewest)} %"]
    within = f"{words} is at most {duration(threshold_s)} for {shown[first[0]]} of requests"
    if len(first) == len(shares):
        return within + (" under all policies" if len(first) > 1 else "")
    return f"{within} under {join(first)} and {shown[last[0]]} under {join(last)}"


def peak(values: Mapping[str, float], unit: str) -> str:
    """``1,474 requests, under a and b``: the highest, and whoever shows the same number."""
    shown = {label: f"{value:,.0f} {unit}" for label, value in values.items()}
    top = f"{max(values.values()):,.0f} {unit}"
    labels = [label for label in values if shown[label] == top]
    return f"{top}, under {'all policies' if len(labels) == len(values) > 1 else join(labels)}"


def _label(result: Mapping[str, Any]) -> str:
    return str(result.get("label") or result["policy"])
