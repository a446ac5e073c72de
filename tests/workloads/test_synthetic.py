from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import optimize, stats

from tailrace.errors import UserError
from tailrace.params import describe
from tailrace.workloads import Workload, generate, generators

MANY = 200_000


@pytest.fixture(scope="module")
def qba() -> Workload:
    return generate("qba", {"requests": MANY, "seed": 1})


def prompt_cdf(tokens: float) -> float:
    heavy = 1 - (40 / tokens) ** 1.4 if tokens > 40 else 0.0
    return float(0.7 * stats.norm.cdf(tokens, 100, 30) + 0.3 * heavy)


@pytest.mark.parametrize("quantile", [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98])
def test_qba_prompt_quantiles(qba: Workload, quantile: float) -> None:
    exact = optimize.brentq(lambda tokens: prompt_cdf(tokens) - quantile, 1, 1e6)
    assert np.quantile(qba.prompt_tokens, quantile) == pytest.approx(exact, rel=0.02, abs=1)


def test_qba_prompt_tail_is_the_classical_pareto(qba: Workload) -> None:
    # Above the normal part: 0.3 (40/x)^1.4, where Lomax would give 0.3 (1 + x/40)^-1.4.
    for tokens in (400, 1000, 4000):
        exact = 0.3 * (40 / tokens) ** 1.4
        spread = math.sqrt(exact / MANY)
        assert np.mean(qba.prompt_tokens > tokens) == pytest.approx(exact, abs=5 * spread + 2e-5)
    assert qba.prompt_tokens.max() == 4096
    assert qba.prompt_tokens.min() >= 1


def test_qba_output_given_the_prompt(qba: Workload) -> None:
    # Cut at 4096 and rounded near 1: look where neither matters.
    middle = (qba.prompt_tokens > 50) & (qba.prompt_tokens < 200)
    residual = np.log(qba.output_tokens[middle]) - 0.75 * np.log1p(qba.prompt_tokens[middle])
    assert residual.mean() == pytest.approx(3, abs=0.005)
    assert residual.std() == pytest.approx(0.3, abs=0.005)
    assert abs(np.corrcoef(residual, qba.prompt_tokens[middle])[0, 1]) < 0.01
    assert qba.output_tokens.max() == 4096


def test_qba_demand_is_the_papers(qba: Workload) -> None:
    # 32 requests/s at the reported 2.47e4 tokens/s.
    demand = 32 * (qba.prompt_tokens.mean() + qba.output_tokens.mean())
    assert demand == pytest.approx(2.47e4, rel=0.02)


@pytest.mark.parametrize("name", ["qba", "poisson"])
def test_arrivals_are_poisson(name: str) -> None:
    workload = generate(name, {"requests": MANY, "rate_rps": 8})
    gaps = np.diff(workload.arrival_s, prepend=0.0)
    assert gaps.mean() == pytest.approx(1 / 8, rel=0.01)
    assert stats.kstest(gaps, "expon", args=(0, 1 / 8)).pvalue > 1e-3
    assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) < 0.01
    assert workload.rate_rps == pytest.approx(8, rel=0.01)


@pytest.mark.parametrize("name", ["qba", "poisson"])
def test_another_rate_keeps_lengths_and_the_shape_of_arrivals(name: str) -> None:
    slow, fast = (generate(name, {"rate_rps": rate, "requests": 500}) for rate in (10, 40))
    assert (slow.prompt_tokens == fast.prompt_tokens).all()
    assert (slow.output_tokens == fast.output_tokens).all()
    np.testing.assert_allclose(slow.arrival_s, 4 * fast.arrival_s, rtol=1e-12)


@pytest.mark.parametrize("name", ["qba", "poisson", "deterministic"])
def test_fewer_requests_are_the_first_of_more(name: str) -> None:
    few, many = (generate(name, {"requests": n}) for n in (50, 500))
    for field in ("arrival_s", "prompt_tokens", "output_tokens"):
        assert (getattr(few, field) == getattr(many, field)[:50]).all()


def test_the_seed_decides_everything() -> None:
    digests = [generate("qba", {"seed": seed, "requests": 100}).digest() for seed in (0, 0, 1)]
    assert digests[0] == digests[1] != digests[2]


def test_description_says_what_was_made() -> None:
    workload = generate("qba", {"requests": "10", "seed": "4"})
    assert workload.name == "qba"
    assert json.loads(json.dumps(workload.description)) == {
        "rows": 10,
        "dropped_rows": 0,
        "source": workload.description["source"],
        "format": "synthetic",
        "generator": "qba",
        "parameters": {"rate_rps": 32.0, "requests": 10, "seed": 4},
        "seed": 4,
    }
    assert "2610.17795" in workload.description["source"]


def test_poisson_lengths_are_lognormal() -> None:
    given = {"requests": MANY, "prompt_median": 1000, "prompt_sigma": 0.5, "prompt_cap": 1e6, "output_median": 300}
    workload = generate("poisson", given)
    logs = np.log(workload.prompt_tokens)
    assert logs.mean() == pytest.approx(math.log(1000), abs=0.005)
    assert logs.std() == pytest.approx(0.5, rel=0.01)
    assert workload.prompt_tokens.mean() == pytest.approx(1000 * math.exp(0.125), rel=0.01)
    assert np.median(workload.output_tokens) == pytest.approx(300, rel=0.01)
    assert abs(np.corrcoef(logs, np.log(workload.output_tokens))[0, 1]) < 0.01


def test_poisson_caps_and_constants() -> None:
    capped = generate("poisson", {"prompt_cap": 100, "output_cap": 7})
    assert capped.prompt_tokens.max() == 100
    assert capped.output_tokens.max() == 7
    constant = generate("poisson", {"prompt": 64, "output": 3})
    assert set(constant.prompt_tokens) == {64}
    assert set(constant.output_tokens) == {3}


def test_deterministic() -> None:
    workload = generate("deterministic", {"gap_s": 0.5, "requests": 4, "prompt": 10, "output": 2})
    assert workload.arrival_s.tolist() == [0, 0.5, 1, 1.5]
    assert workload.prompt_tokens.tolist() == [10] * 4
    assert workload.output_tokens.tolist() == [2] * 4
    assert generate("deterministic", {"gap_s": 0, "requests": 4}).span_s == 0


def test_every_generator_documents_itself() -> None:
    for name, generator in generators().items():
        assert generator.name == name
        assert "Source:" in (generator.params.__doc__ or "")
        assert all(item.spec.doc for item in describe(generator.params))


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("qbaa", {}, r"unknown generator 'qbaa' \(did you mean 'qba'\?\)"),
        ("qba", {"rate": 3}, "unknown parameter 'rate' .*'rate_rps'"),
        ("qba", {"rate_rps": 0}, r"rate_rps=0 is outside \(0, "),
        ("qba", {"rate_rps": "inf"}, "rate_rps=inf is outside"),
        ("qba", {"rate_rps": "nan"}, "rate_rps=nan is outside"),
        ("qba", {"requests": 0}, "requests=0 is outside"),
        ("qba", {"requests": 1.5}, "requests=1.5 must be a whole number"),
        ("qba", {"seed": -1}, "seed=-1 is outside"),
        ("poisson", {"prompt": 5, "prompt_median": 6}, "prompt=5 is constant, so prompt_median has no use"),
        ("poisson", {"output": 5, "output_cap": 6}, "output=5 is constant, so output_cap has no use"),
        ("deterministic", {"gap_s": -1}, "gap_s=-1 is outside"),
    ],
)
def test_mistakes(name: str, given: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        generate(name, given)


MIXED = {
    "lengths": "azure-conv@drift:0.9:0.1:60 class=chat + r1@0.5 class=think ttft_slo_s=2",
    "tenants": "a@0.7+b@0.3",
}
TWO = {"lengths": "s1k-like", "classes": "high@0.5 weight=2+low@sine:0.5:0.3:60"}


@pytest.mark.parametrize(
    ("name", "given", "digest"),
    [
        ("qba", {}, "ac4f283c40f93205264d58ec80bace1b1252c28b5e1c9a6b24ce381e57ab157c"),
        ("poisson", {}, "f637e3b948e0b5f400d03cc8f18a6dff15aa35512a4c91d2b6189fc0928ae94e"),
        ("deterministic", {}, "3aaac3818101e9f3d4add9890a95213ccedc8278b467955304f3bb03a56bcd0d"),
        ("poisson", MIXED, "a2efdca4de93f74bbd677021dfa54901b6db8f5782823309f2b48537ebc98ac7"),
        (
            "gamma",
            {"cv": 3, "lengths": "sharegpt-like"},
            "a39227733acff1a97690f2b0f62c16b5639aa915c2d45ac1c6edca6efc964b0d",
        ),
        ("onoff", TWO, "35620f1639f82fdcdfc1afffd61945b671e4b823835e395837c913d191725c88"),
        ("spikes", {"lengths": "azure-conv"}, "2da3182583335607c1af78e71f06e6fb4309544cf83f526670f6950a4c6d994c"),
    ],
)
def test_a_seed_gives_the_same_bytes_for_ever(name: str, given: dict[str, object], digest: str) -> None:
    # Literals: results are cached, and figures published, under what a seed gives.
    assert generate(name, given).digest() == digest


def test_named_lengths_are_those_of_the_generators() -> None:
    as_qba = generate("poisson", {"lengths": "qba", "rate_rps": 32, "requests": 5000})
    assert as_qba.digest() == generate("qba").digest()
    assert generate("poisson", {"lengths": "lognormal"}).digest() == generate("poisson").digest()
    for given in ({"prompt": 5}, {"output_sigma": 0.1}):
        with pytest.raises(UserError, match=r"workload poisson: lengths=r1, so .* has no use; give one of them"):
            generate("poisson", {"lengths": "r1", **given})
