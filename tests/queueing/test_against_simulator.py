"""The formulas against tailrace's own simulator, one request at a time.

With ``max_seqs=1`` and steps that all take c0 the engine is a single server whose service time
is eq. 2's, (⌈P/budget⌉ + ⌈D/block⌉)·c0; an idle engine starts an arrival at once, a busy one at
the step's end that frees it. So fcfs must meet Pollaczek-Khinchine's formula, psf Cobham's.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from tailrace._jit import ENABLED
from tailrace.config import engine
from tailrace.latency import Latency, PiecewiseParams
from tailrace.metrics import Requests
from tailrace.queueing import DiscreteService, Moments, Service, allen_cunneen, two_class
from tailrace.registry import POLICIES
from tailrace.sim.run import simulate
from tailrace.workloads.workload import Workload

from .events import event_waits, meets

STEP_S, CHUNK, BLOCK = 0.003, 16, 8
LATENCY = Latency("constant", PiecewiseParams(constant_s=STEP_S, per_token_s=0.0), None, "")
CONFIG = engine("qba", {"max_seqs": 1, "token_budget": CHUNK, "kv_tokens": 1 << 12})
EXACT = DiscreteService(0.0, STEP_S, STEP_S, CHUNK, BLOCK)
RATE_RPS = 40.0
FEW, MANY = (500, 12), (20_000, 20)
"""Requests a run and seeds: what plain Python can do, and what makes a tight interval."""


SIZES = pytest.mark.parametrize(
    ("requests", "seeds", "within"),
    [
        (*FEW, 0.45),
        pytest.param(*MANY, 0.05, marks=pytest.mark.skipif(not ENABLED, reason="wants the compiler")),
    ],
)


@lru_cache(maxsize=2 * FEW[1])
def run(policy: str, seed: int, requests: int) -> Requests:
    """Prompts of 1 to 3 chunks; outputs of 1 or 2 blocks, of 12 to 16 for every seventh or so."""
    rng = np.random.default_rng(seed)
    long = (rng.random(requests) < 0.15).astype(np.int64)
    output = np.where(long == 1, rng.integers(12, 17, requests), rng.integers(1, 3, requests)) * BLOCK
    output -= rng.integers(0, BLOCK, requests)
    arrival = np.cumsum(rng.exponential(1 / RATE_RPS, requests))
    prompt = rng.integers(1, 3 * CHUNK + 1, requests)
    workload = Workload.of(arrival, prompt, output, name="single", predicted_class=long, true_class=long)
    chosen = POLICIES.get(policy)
    return simulate(workload, chosen, chosen.Params(), CONFIG, LATENCY).requests


def service_s(r: Requests) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.asarray(r.finish_s - r.started_s)


@pytest.mark.parametrize("name", ["fcfs", "psf"])
def test_a_service_time_is_equation_twos(name: str) -> None:
    r = run(name, 0, FEW[0])
    np.testing.assert_allclose(service_s(r), EXACT.seconds(r.prompt_tokens, r.output_tokens), rtol=1e-9)


@pytest.mark.parametrize("name", ["fcfs", "psf"])
def test_every_wait_is_that_of_a_single_server(name: str) -> None:
    for seed in range(FEW[1]):
        r = run(name, seed, FEW[0])
        tier = r.predicted_class if name == "psf" else np.zeros_like(r.predicted_class)
        expected = event_waits(r.arrival_s, EXACT.seconds(r.prompt_tokens, r.output_tokens), tier, 1)
        np.testing.assert_allclose(r.wait_s, expected, atol=1e-9)
        assert expected.max() > 0.05


@SIZES
def test_fcfs_meets_pollaczek_and_khinchine(requests: int, seeds: int, within: float) -> None:
    """The formula of each seed's own rate and moments takes much of the noise out of the ratio."""
    ratios = []
    for seed in range(seeds):
        r = run("fcfs", seed, requests)
        wait = allen_cunneen(requests / float(r.arrival_s[-1]), Moments.of(service_s(r)), 1)
        assert wait is not None
        ratios.append(float(r.wait_s.mean()) / wait)
    assert meets(ratios, 1.0, within)


@SIZES
def test_psf_meets_cobham(requests: int, seeds: int, within: float) -> None:
    ratios = []
    for seed in range(seeds):
        r = run("psf", seed, requests)
        of_class, span = (r.predicted_class == 0, r.predicted_class == 1), float(r.arrival_s[-1])
        rates, moments = [int(c.sum()) / span for c in of_class], [Moments.of(service_s(r)[c]) for c in of_class]
        waits = two_class(rates[0], moments[0], rates[1], moments[1], 1)
        assert waits is not None
        means = [float(r.wait_s[c].mean()) for c in of_class] + [float(r.wait_s.mean())]
        ratios.append([mean / wait for mean, wait in zip(means, waits, strict=True)])
    for of_one in zip(*ratios, strict=True):
        assert meets(of_one, 1.0, within)


def test_fits_of_a_run_recover_the_steps() -> None:
    r = run("fcfs", 0, FEW[0])
    fitted = DiscreteService.fit(r.prompt_tokens, r.output_tokens, service_s(r), chunk_tokens=CHUNK, block_tokens=BLOCK)
    assert (fitted.s0_s, fitted.chunk_s, fitted.block_s) == pytest.approx((0.0, STEP_S, STEP_S), abs=1e-9)
    linear = Service.fit(r.prompt_tokens, r.output_tokens, service_s(r))
    # A line through a staircase of 3 equal steps is flatter than the stairs by 1/3².
    assert linear.alpha_s == pytest.approx(STEP_S / CHUNK * (1 - 1 / 9), rel=0.05)
    assert linear.beta_s == pytest.approx(STEP_S / BLOCK, rel=0.02)
    assert linear.s0_s == pytest.approx(STEP_S, rel=0.2)  # half a chunk and half a block of rounding up
