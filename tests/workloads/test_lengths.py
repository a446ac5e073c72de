from __future__ import annotations

import math
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tailrace.errors import UserError
from tailrace.table import I8
from tailrace.workloads import load
from tailrace.workloads.lengths import SOURCES, Draws, draw, table
from tailrace.workloads.shares import terms

MANY = 200_000
TABLES = ("azure-conv", "r1")


def drawn(text: str, n: int = MANY, part: int = 0) -> tuple[I8, I8]:
    (term,) = terms(text, "here", ())
    prompt, output, _ = draw(term, Draws(1, n, part), "here")
    return prompt, output


@pytest.mark.parametrize("name", TABLES)
def test_a_tables_quantiles_come_back(name: str) -> None:
    found = table(name)
    among = (found.quantile > 0.04) & (found.quantile < 0.995)
    for values, column in zip(drawn(name), (found.prompt_tokens, found.output_tokens), strict=True):
        # A quantile of the sample must be that of the table a little below or above.
        margin = 4 * np.sqrt(found.quantile * (1 - found.quantile) / MANY)
        low, high = (
            np.exp(np.interp(found.quantile + sign * margin, found.quantile, np.log(column))) for sign in (-1, 1)
        )
        got = np.quantile(values, found.quantile)
        assert ((got >= low - 1) & (got <= high + 1))[among].all()
        assert (values.min(), values.max()) >= (column[0], 0)
        assert values.max() <= column[-1]


def test_tables_are_small_and_say_whence() -> None:
    for name in TABLES:
        lines = resources.files("tailrace.workloads").joinpath(f"{name}.csv").read_text().splitlines()
        assert sum(not line.startswith("#") for line in lines) - 1 <= 30
        assert {"# Source", "# Cite", "# Licence"} <= {line.partition(":")[0] for line in lines}
        found = table(name)
        assert (found.quantile[0], found.quantile[-1]) == (0, 1)
        for column in (found.quantile, found.prompt_tokens, found.output_tokens):
            assert (np.diff(column) >= 0).all()


def test_the_azure_table_is_that_of_the_trace(azure_trace: Path) -> None:
    trace, found = load(str(azure_trace)), table("azure-conv")
    for tokens, column in ((trace.prompt_tokens, found.prompt_tokens), (trace.output_tokens, found.output_tokens)):
        assert np.rint(np.quantile(tokens, found.quantile)).tolist() == column.tolist()
    correlation = stats.spearmanr(trace.prompt_tokens, trace.output_tokens).statistic
    assert found.rank_correlation == pytest.approx(correlation, abs=5e-5)
    # What 29 quantiles keep of the mean.
    prompt, output = drawn("azure-conv")
    assert prompt.mean() == pytest.approx(trace.prompt_tokens.mean(), rel=0.02)
    assert output.mean() == pytest.approx(trace.output_tokens.mean(), rel=0.02)


def test_the_r1_table_is_that_of_the_published_histograms(azure_trace: Path) -> None:
    path = azure_trace.with_name("servegen_r1_length_quantiles.csv")
    if not path.exists():
        pytest.skip("the R1 quantiles are not beside the Azure trace")
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    found = table("r1")
    assert (rows == np.column_stack([found.quantile, found.prompt_tokens, found.output_tokens])).all()


def test_rank_correlation_is_kept_where_it_is_known() -> None:
    assert stats.spearmanr(*drawn("azure-conv")).statistic == pytest.approx(0.0728, abs=0.01)
    assert math.isnan(table("r1").rank_correlation)
    assert abs(stats.spearmanr(*drawn("r1")).statistic) < 0.01


def test_lognormals_and_constants() -> None:
    prompt, output = drawn("lognormal:1000:0.5:300:0.2:1e6")
    assert np.median(prompt) == pytest.approx(1000, rel=0.01)
    assert np.log(prompt).std() == pytest.approx(0.5, rel=0.01)
    assert np.median(output) == pytest.approx(300, rel=0.01)
    assert abs(np.corrcoef(np.log(prompt), np.log(output))[0, 1]) < 0.01
    assert drawn("lognormal:1000:1:100:1:2000:150")[0].max() == 2000
    assert [set(values) for values in drawn("constant:64:3", 10)] == [{64}, {3}]


def test_presets_have_their_stated_figures() -> None:
    prompt, output = drawn("sharegpt-like")
    assert np.quantile(prompt, [0.5, 0.9]) == pytest.approx([1730, 5696], rel=0.02)
    assert np.quantile(output, [0.5, 0.9]) == pytest.approx([415, 834], rel=0.02)
    prompt, output = drawn("s1k-like")
    assert np.median(prompt) == pytest.approx(150, rel=0.02)
    assert np.median(output) == pytest.approx(4500, rel=0.02)
    assert np.log(output).std() == pytest.approx(0.6, rel=0.02)


def test_parts_draw_apart_and_fewer_are_the_first_of_more() -> None:
    for name in ("azure-conv", "qba", "s1k-like"):
        first, second = drawn(name, 1000), drawn(name, 1000, part=1)
        assert abs(stats.spearmanr(first[0], second[0]).statistic) < 0.15
        assert (first[0] != second[0]).any()
        assert all((few == many[:50]).all() for few, many in zip(drawn(name, 50), first, strict=True))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("azure", r"here: unknown lengths 'azure' \(did you mean 'azure-conv'\?\)"),
        ("r1:5", "here: r1: 1 arguments; write r1"),
        ("constant:5", "here: constant: 1 arguments; write constant:PROMPT:OUTPUT"),
        ("constant:5:0", "here: constant: OUTPUT: 0 must be finite and in"),
        ("constant:5:1.5", "here: constant: OUTPUT: 1.5 must be a whole number of tokens"),
        ("lognormal:9000", "here: lognormal: PROMPT_MEDIAN 9000 is above PROMPT_CAP 8192; give a larger cap"),
        ("lognormal:a", "here: lognormal: PROMPT_MEDIAN: 'a' is not a number"),
        ("lognormal:5:11", r"here: lognormal: PROMPT_SIGMA: 11 must be finite and in \[0, 10\]"),
        ("lognormal:1:1:1:1:1:1:1", "7 arguments; write lognormal:PROMPT_MEDIAN"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        drawn(text, 5)


def test_every_source_says_what_it_is() -> None:
    for name, source in SOURCES.items():
        assert source.name == name
        assert source.about
        assert source.form.startswith(name)
