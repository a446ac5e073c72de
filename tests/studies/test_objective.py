"""Short names of numbers in a result."""

from __future__ import annotations

import pytest

from tailrace.errors import UserError
from tailrace.studies.objective import parse

METRICS = {"metrics": {"e2e_s": {"p99": 3.0}, "tpot_s": {"mean": None}}}
OBJECTIVES = {"slo": {"goodput_rps": 4.0}, "gain": {"tdg_ratio": 0.75}}
RESULT = {
    **METRICS,
    "throughput": {"output_tokens_per_s": 50},
    "counts": {"preemptions": 2},
    "by_true_class": {"short": {"metrics": {"e2e_s": {"p99": 1.0}}, "counts": {"preemptions": 1}}},
    "by_class": {"gold.v2": {"metrics": {"ttft_s": {"p90": 0.5}}, **OBJECTIVES}},
    "by_tenant": {"a": METRICS},
}


@pytest.mark.parametrize(
    ("text", "value", "better", "unit"),
    [
        ("e2e.p99", 3.0, -1, "s"),
        ("tpot.mean", None, -1, "s"),
        ("short.e2e.p99", 1.0, -1, "s"),
        ("short.preemptions", 1.0, -1, ""),
        ("class=gold.v2.ttft.p90", 0.5, -1, "s"),
        ("class=gold.v2.goodput_rps", 4.0, 1, "req/s"),
        ("class=gold.v2.tdg_ratio", 0.75, 1, ""),
        ("tenant=a.e2e.p99", 3.0, -1, "s"),
        ("output_tokens_per_s", 50.0, 1, "tokens/s"),
    ],
)
def test_a_name_leads_to_a_number(text: str, value: float | None, better: int, unit: str) -> None:
    (found,) = parse(text)
    assert (found.of(RESULT), found.better, found.unit) == (value, better, unit)
    assert found.words == (f"{text} ({unit})" if unit else text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "name one or two"),
        ("e2e.p99,ttft.p99,wait.p99", "name one or two"),
        ("e2e.p99,e2e.p99", "the two are the same"),
        ("e2e", "is not known"),
        ("e3e.p99", "did you mean 'e2e'"),
        ("goodput", "did you mean 'goodput_rps'"),
        ("e2e.p98", "no statistic 'p98'"),
        ("klass=a.e2e.p99", "did you mean 'class'"),
        ("class=gold", "write class=NAME.METRIC.STATISTIC"),
        ("class=.e2e.p99", "write class=NAME.METRIC.STATISTIC"),
        ("short.output_tokens_per_s", "throughput is not kept by group"),
    ],
)
def test_a_mistake_is_named(text: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        parse(text)


def test_a_group_that_is_not_there() -> None:
    with pytest.raises(UserError, match=r"no 'silver'; there are gold\.v2"):
        parse("class=silver.e2e.p99")[0].of(RESULT)
    with pytest.raises(UserError, match="it sets no SLOs"):
        parse("attainment")[0].of(RESULT)
