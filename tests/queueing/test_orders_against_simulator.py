"""One server by order of service: the formulas of `single` against tailrace's own simulator.

``max_seqs=1``, a token a step and τ seconds a token: a request takes τ times its tokens, prompt and
output, whatever else happens. Who is displaced goes to host memory with its KV, over a link that takes
no time, and there is room for all: no token is computed twice and no step waits. Under fcfs nobody is
displaced, so it runs without.

What differs from the formulas' queue: a request is displaced at the end of a step, not within it, and
least attained service takes turns token by token. Both shrink with τ. At a mean of 94 tokens a request
they move the mean of las by −0.2 % and that of srpt by +0.1 % (at half the τ by half as much; the last
test holds a bound), where the intervals below are ±3 % and ±1.3 % wide. fcfs has no such error.

Intervals are Student's at 99.9 % over 40 batches of one long run, each some hundred times as long as the
queue remembers; of ratios, by leaving out a batch at a time. Seeds are fixed, so what passes stays so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from scipy.special import stdtrit

from tailrace import params
from tailrace._jit import ENABLED
from tailrace.config import engine
from tailrace.latency import Latency, PiecewiseParams
from tailrace.policies._boosting import seconds_per_token
from tailrace.queueing import ServiceTimes, single
from tailrace.registry import POLICIES
from tailrace.sim.run import Instance
from tailrace.workloads.workload import Workload

from .events import F8, meets

pytestmark = pytest.mark.skipif(not ENABLED, reason="wants the compiler")

TOKEN_S = 1 / 64
BATCHES = 40
ONE = {"max_seqs": 1, "token_budget": 1, "prefill_emits": False, "kv_tokens": 1 << 40}
FREE = {
    "evict": "swap",
    "host_kv_tokens": 1 << 40,
    "kv_bytes_per_token": 1,
    "swap_out_gb_per_s": 1e290,
    "swap_in_gb_per_s": 1e290,
}
SHORT, LONG, SHARE_LONG = np.arange(10, 31), np.arange(150, 251), 0.15
"""Sizes in tokens, each kind uniform: mean 47, squared variation 2.05, and a tail that ends."""
KINDS = ((SHORT, 1 - SHARE_LONG), (LONG, SHARE_LONG))
TIMES = ServiceTimes.of(
    np.concatenate([TOKEN_S * sizes for sizes, _ in KINDS]),
    np.concatenate([np.full(len(sizes), share / len(sizes)) for sizes, share in KINDS]),
)
RATE_RPS = 0.6 / TIMES.mean()


def value(found: float | None) -> float:
    assert found is not None
    return found


GAMMA_PER_S = value(single.decay_rate(RATE_RPS, TIMES))
BOOST: dict[str, Any] = {"signal": "size", "gamma_per_s": GAMMA_PER_S}


@lru_cache(maxsize=4)
def traffic(seed: int, requests: int, finer: int) -> Workload:
    """Poisson arrivals; ``finer`` times as many tokens, for as small a part of `TOKEN_S` each."""
    rng = np.random.default_rng(seed)
    long = rng.random(requests) < SHARE_LONG
    size = np.where(long, rng.choice(LONG, requests), rng.choice(SHORT, requests))
    arrival, prompt = np.cumsum(rng.exponential(1 / RATE_RPS, requests)), rng.integers(1, size)
    return Workload.of(arrival, finer * prompt, finer * (size - prompt), name="one server")


@lru_cache(maxsize=8)
def response_s(name: str, seed: int, requests: int, finer: int = 1, **given: Any) -> F8:
    """(batches, requests of each) under the policy; checks that no work was done twice and no time lost."""
    policy, work = POLICIES.get(name), traffic(seed, requests, finer)
    latency = Latency("even", PiecewiseParams(0.0, TOKEN_S / finer, knee_tokens=0), None, "")
    config = engine("vllm_v1", ONE if name == "fcfs" else {**ONE, **FREE})
    run = Instance(work, policy, params.build(policy.Params, given, name), config, latency)
    run.run()
    counters = run.records.counters
    assert counters["recomputed_tokens"][0] == 0
    assert counters["completed"][0] == requests
    assert counters["busy_s"][0] == pytest.approx(TOKEN_S / finer * (work.prompt_tokens + work.output_tokens).sum())
    assert (counters["preemptions"][0] > requests / 10) == (name != "fcfs")
    found: F8 = (run.records.out["finish_s"] - work.arrival_s).reshape(BATCHES, -1)
    return found


def interval(statistic: Callable[..., float], *batches: F8) -> tuple[float, float]:
    """``(middle, half width)`` of a statistic of the batches' means, by the jackknife."""
    n = len(batches[0])
    without = np.array([statistic(*(np.delete(b, i, 0).mean(0) for b in batches)) for i in range(n)])
    spread = math.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
    return statistic(*(b.mean(0) for b in batches)), float(stdtrit(n - 1, 0.9995)) * spread


# ── the tail ─────────────────────────────────────────────────────────────────────────

TAIL, MEANS = (7, 800_000), (11, 320_000)
"""Seed and requests of the runs for each."""
AT_S = np.arange(7.5, 15.1, 1.5)
"""Where first come first served leaves 5 % to 0.3 %."""


def survival(name: str, traffic: tuple[int, int] = TAIL, **given: Any) -> F8:
    """(batches, times) P(T > t) of each batch."""
    found = response_s(name, *traffic, **given)
    return np.stack([(found > t).mean(1) for t in AT_S], axis=1)


def slope(log_survival: F8) -> float:
    return float(np.polyfit(AT_S, log_survival, 1)[0])


def test_the_boost_sees_the_true_service_time() -> None:
    """The default of seconds_per_token is the mean of a prefill's and a decode's token: here both are τ."""
    assert seconds_per_token(0.0, PiecewiseParams(0.0, TOKEN_S, knee_tokens=0)) == pytest.approx(TOKEN_S, rel=1e-12)


@pytest.mark.parametrize(("name", "given"), [("fcfs", {}), ("gamma_boost", BOOST)])
def test_fcfs_and_gamma_boost_decay_at_gamma(name: str, given: dict[str, Any]) -> None:
    found, half = interval(lambda mean: -slope(np.log(mean)), survival(name, **given))
    assert half < 0.15 * GAMMA_PER_S
    assert abs(found - GAMMA_PER_S) < half


@pytest.mark.parametrize(
    ("name", "given", "formula"),
    [("fcfs", {}, single.fcfs_tail_constant), ("gamma_boost", BOOST, single.boost_tail_constant)],
)
def test_the_constants_are_those_of_the_theory(name: str, given: dict[str, Any], formula: Callable[..., Any]) -> None:
    """Where 2 % are left and the exponential has set in."""
    constant = value(formula(RATE_RPS, TIMES))
    at = int(np.searchsorted(AT_S, 9.0))
    found, half = interval(lambda mean: mean[at] * math.exp(GAMMA_PER_S * AT_S[at]), survival(name, **given))
    assert half < 0.15 * constant
    assert abs(found - constant) < half


def test_gamma_boost_differs_from_fcfs_in_the_constant_only() -> None:
    """Both see the same arrivals, so the ratio of their tails is known better than either."""
    boost, fcfs = survival("gamma_boost", **BOOST), survival("fcfs")
    drift, half = interval(lambda b, f: slope(np.log(b / f)), boost, fcfs)
    assert half < 0.05 * GAMMA_PER_S
    assert abs(drift) < half  # flat in t
    ratio, half = interval(lambda b, f: math.exp(np.log(b / f).mean()), boost, fcfs)
    expected = value(single.boost_tail_constant(RATE_RPS, TIMES)) / value(single.fcfs_tail_constant(RATE_RPS, TIMES))
    assert half < 0.05 * expected
    assert abs(ratio - expected) < half
    assert ratio + half < 0.75


@pytest.mark.parametrize("name", ["srpt", "las"])
def test_orders_by_work_alone_have_a_slower_decay(name: str) -> None:
    """The same figures tell them from first come first served: their share of its tail grows with t."""
    drift, half = interval(lambda o, f: slope(np.log(o / f)), survival(name, MEANS), survival("fcfs", MEANS))
    assert drift - half > 0.1 * GAMMA_PER_S


# ── means ────────────────────────────────────────────────────────────────────────────


def ratios(name: str, formula: Callable[..., float | None], finer: int) -> list[float]:
    """Mean response over the formula's of each batch's own rate and times, which takes noise out."""
    work = traffic(*MEANS, finer)
    size = (TOKEN_S / finer * (work.prompt_tokens + work.output_tokens)).reshape(BATCHES, -1)
    gap = np.diff(work.arrival_s, prepend=0.0).reshape(BATCHES, -1)
    found = response_s(name, *MEANS, finer)
    expected = [value(formula(1 / g.mean(), ServiceTimes.of(s))) for g, s in zip(gap, size, strict=True)]
    return [float(t.mean()) / mean for t, mean in zip(found, expected, strict=True)]


@pytest.mark.parametrize(
    ("name", "formula", "within"),
    [("fcfs", single.fcfs_mean_s, 0.03), ("las", single.las_mean_s, 0.04), ("srpt", single.srpt_mean_s, 0.02)],
)
def test_mean_responses_meet_their_formulas(name: str, formula: Callable[..., float | None], within: float) -> None:
    assert meets(ratios(name, formula, 2), 1.0, within)


@pytest.mark.parametrize(("name", "formula"), [("las", single.las_mean_s), ("srpt", single.srpt_mean_s)])
def test_a_tokens_length_moves_means_by_far_less_than_the_interval(name: str, formula: Callable[..., Any]) -> None:
    """The same requests in tokens of half the length: the error that is left is at most as large again."""
    coarse, fine = np.mean(ratios(name, formula, 1)), np.mean(ratios(name, formula, 2))
    assert 0 < abs(coarse - fine) < 0.003
