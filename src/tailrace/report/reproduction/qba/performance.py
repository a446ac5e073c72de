"""Performance comparison and the queueing model: load sweeps, formula beside simulator."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from ...markup import details, paragraph, table
from ...values import number, plain
from ..cells import cell
from ..facts import Axis, crossing, known, leader, percent, ranked, ranking, spans
from ..study import Curve, Study, Value
from .names import POLICIES, REFERENCE_RPS, by_policy

__all__ = ["model", "performance"]

SIMULATED = {"wait_mean_s": "mean wait (s)", "wait_p99_s": "P99 wait (s)", "e2e_mean_s": "mean E2E (s)"}
FORMULAS = {"formula_wait_mean_s": "formula: mean wait (s)", "formula_e2e_mean_s": "formula: E[T] (s)"}


LOADS = Axis(after=" req/s", many="loads")


def _curves(study: Study, metric: str) -> dict[str, Curve]:
    found = {name: study.curve("fig2", policy, metric, "rate_rps") for policy, name in POLICIES.items()}
    return {name: curve for name, curve in found.items() if curve}


def performance(study: Study, image: str) -> str:
    """The paper's section IV-B; empty without its rows."""
    if not study.has("fig2"):
        return ""
    mean, tail = _curves(study, "wait_mean_s"), _curves(study, "wait_p99_s")
    rates = sorted({x for curve in mean.values() for x in curve})
    means = paragraph(
        leader(mean, "mean wait", LOADS),
        crossing(mean, "QBA", "FCFS", "mean wait", LOADS),
        crossing(mean, "AA", "FCFS", "mean wait", LOADS),
    )
    tails = paragraph(
        leader(tail, "P99 wait", LOADS),
        crossing(tail, "AA", "QBA", "P99 wait", LOADS),
        crossing(tail, "QBA", "PSF", "P99 wait", LOADS),
        crossing(tail, "QBA", "FCFS", "P99 wait", LOADS),
    )
    parts = [image, means, tails]
    if rates:
        parts += _reference(study, min(rates, key=lambda rate: (abs(rate - REFERENCE_RPS), rate)))
    parts.append(details("Every load", "\n\n".join(_by_rate(study, SIMULATED))))
    return "\n\n".join(["## Performance comparison", *(part for part in parts if part)])


def _reference(study: Study, rate: float) -> list[str]:
    """Sentences and the table at one load."""
    at = {"rate_rps": rate}
    mean = by_policy(study, "fig2", "wait_mean_s", at)
    tail = by_policy(study, "fig2", "wait_p99_s", at)
    text = paragraph(
        f"At {LOADS.at(rate)} the mean waits are {ranked(mean)}, and the P99 waits {ranked(tail)}.",
        kept(mean),
    )
    metrics = [*SIMULATED.items(), *FORMULAS.items()]
    columns = {title: by_policy(study, "fig2", metric, at) for metric, title in metrics}
    columns = {title: column for title, column in columns.items() if any(column.values())}
    rows = [
        [name, *(cell(c[name]) for c in columns.values())]
        for name in POLICIES.values()
        if any(c[name] for c in columns.values())
    ]
    return [text, table(["policy", *columns], rows)]


def kept(means: Mapping[str, Value | None]) -> str:
    """Mean wait of PSF and QBA against FCFS, and the share of PSF's gain that QBA keeps, where there is a gain."""
    found = known(means)
    if not {"FCFS", "PSF", "QBA"} <= found.keys():
        return ""
    fcfs, psf, qba = (found[name].measured or 0.0 for name in ("FCFS", "PSF", "QBA"))
    if not fcfs or found["PSF"].tied(found["FCFS"]):
        return ""
    text = f"Against FCFS the mean wait changes by {percent(psf / fcfs - 1)} under PSF and by "
    text += f"{percent(qba / fcfs - 1)} under QBA"
    if psf < fcfs:
        share = 100 * (fcfs - qba) / (fcfs - psf)
        text += f": QBA keeps {share:.0f} % of PSF's gain" if share > 0 else ": QBA keeps none of PSF's gain"
    return text + "."


def _by_rate(study: Study, metrics: Mapping[str, str]) -> list[str]:
    tables = []
    for metric, title in metrics.items():
        curves = _curves(study, metric)
        rates = sorted({x for curve in curves.values() for x in curve})
        if rates:
            rows = [[plain(rate), *(cell(curve.get(rate)) for curve in curves.values())] for rate in rates]
            tables.append(f"{title[0].upper()}{title[1:]}:\n\n" + table(["req/s", *curves], rows, 0))
    return tables


def model(study: Study, image: str) -> str:
    """The reduced M/G/n model: its calibration, ρ, φ, and the formula against the simulator."""
    record = (study.document.get("calibration") or {}).get(study.main)
    formula = _curves(study, "formula_wait_mean_s")
    if not record and not formula:
        return ""
    parts = ["## The queueing model"]
    if record:
        parts += [_sizes(record), _calibration(record), image, _phi(record)]
    if formula:
        parts += [_against(study, formula), _readings(study)]
        parts.append(details("The formula at every load", "\n\n".join(_by_rate(study, FORMULAS))))
    return "\n\n".join(part for part in parts if part)


def _readings(study: Study) -> str:
    """The formula under other readings of n, which decides more than anything else in it."""
    names = {"budget": "B/q, as if KV were no limit", "matched": "the n whose FCFS wait at the calibration is nearest"}
    rows = []
    for at in study.places("servers"):
        values = by_policy(study, "servers", "formula_wait_mean_s", at)
        if any(v is not None and v.measured is not None for v in values.values()):
            reading = names.get(str(at["n"]), str(at["n"]))
            rows.append([f"{plain(at['servers'])}: {reading}", plain(at["rate_rps"]), *map(cell, values.values())])
    if not rows:
        return ""
    head = ["n", "req/s", *POLICIES.values()]
    return details("Mean wait by the formula (s) under other readings of n", table(head, rows, 1))


def _sizes(record: Mapping[str, Any]) -> str:
    n, service = record["servers"], record["mean_service_s"]
    bound = "the token budget" if record["budget_servers"] <= record["n_safe"] else "KV memory"
    kv = record.get("mean_decode_kv_tokens")
    why = f" (a decoding request holds {number(kv)} KV tokens on average)" if kv and bound == "KV memory" else ""
    return (
        f"Calibrated on FCFS runs at {LOADS.at(record['rate_rps'])}, the engine is an M/G/n queue of n = {plain(n)} "
        f"servers, set by {bound}{why}, with a mean service time of {number(service)} s. Its load ρ = λ E[S] / n "
        f"reaches 1 at {LOADS.at(round(n / service, 1))}; from there on the formula has no value. The paper does not "
        "define n_safe; this is our definition, and other readings of n are below: a formula with a value at "
        f"{LOADS.at(40)} needs n of at least {math.floor(40 * service) + 1}."
    )


def _calibration(record: Mapping[str, Any]) -> str:
    discrete = record.get("discrete") or {}
    wanted = [
        ("s₀", "fixed part of a service time (1)", record["s0_s"], 1e3, "ms"),
        ("α", "a prompt token (1); least squares leaves its sign free", record["alpha_s"], 1e6, "µs"),
        ("β", "an output token (1)", record["beta_s"], 1e6, "µs"),
        ("s₀", "fixed part, discrete form (2)", discrete.get("s0_s"), 1e3, "ms"),
        ("τ_p", "a prefill chunk (2)", discrete.get("prefill_chunk_s"), 1e3, "ms"),
        ("τ_d", "a decode block (2)", discrete.get("decode_block_s"), 1e3, "ms"),
        ("E[S]", "mean service time (3)", record["mean_service_s"], 1.0, "s"),
        ("C_s²", "squared coefficient of variation of S", record["service_scv"], 1.0, ""),
        ("B/q", "decodes that the token budget allows", record["budget_servers"], None, ""),
        ("n_safe", "decodes that KV memory allows", record["n_safe"], None, ""),
        ("n", "effective parallelism", record["servers"], None, ""),
    ]
    rows = [
        [symbol, what, f"{plain(value) if factor is None else number(value * factor)} {unit}".rstrip()]
        for symbol, what, value, factor, unit in wanted
        if value is not None
    ]
    return table(["symbol", "of (the paper's equation)", "value"], rows, 2)


def _phi(record: Mapping[str, Any]) -> str:
    phi = {p: points for p, points in (record.get("phi") or {}).items() if points}
    if not phi:
        return ""
    rhos = {point["rate_rps"]: point["rho"] for points in phi.values() for point in points}
    shares = {p: {point["rate_rps"]: point["phi"] for point in points} for p, points in phi.items()}
    names = [p for p in POLICIES if p in shares]
    rows = [[plain(rate), number(rhos[rate]), *(number(shares[p].get(rate)) for p in names)] for rate in sorted(rhos)]
    return table(["req/s", "ρ", *(f"φ of {POLICIES[p]}" for p in names)], rows, 0)


def _against(study: Study, formula: Mapping[str, Curve]) -> str:
    """The formula's order and its distance from the simulator."""
    simulated = _curves(study, "wait_mean_s")
    ratios: dict[str, list[float]] = {}
    for name, curve in formula.items():
        for rate, value in curve.items():
            other = simulated.get(name, {}).get(rate)
            if value.measured is not None and other is not None and other.measured:
                ratios.setdefault(name, []).append(value.measured / other.measured)
    text = spans(ratios)
    return paragraph(
        ranking(formula, "formula's mean wait", dataclasses.replace(LOADS, many="loads where it has a value")),
        ranking(simulated, "simulator's mean wait", LOADS),
        f"The formula's mean wait is this many times the simulator's: {text}." if text else "",
    )
