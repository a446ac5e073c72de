from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from tailrace.errors import UserError
from tailrace.table import LONG, SHORT
from tailrace.workloads import Workload, apply, generate, long_class, settings

TOLD = ("predicted_output_tokens", "predicted_class", "true_class", "predictions")


@pytest.fixture(scope="module")
def workload() -> Workload:
    return generate("qba", {"requests": 20_000, "seed": 5})


def test_only_what_is_told_changes(workload: Workload) -> None:
    for spec in ("oracle", "none", "label:eps_sl=0.1", "noise"):
        told = apply(workload, spec)
        for field in dataclasses.fields(Workload):
            if field.name not in TOLD:
                assert getattr(told, field.name) is getattr(workload, field.name)
        assert not told.predicted_class.flags.writeable


def test_oracle(workload: Workload) -> None:
    told = apply(apply(workload, "none"), "oracle")
    assert (told.predicted_output_tokens == workload.output_tokens).all()
    assert (told.predicted_class == told.true_class).all()
    assert (told.true_class == (workload.output_tokens > np.quantile(workload.output_tokens, 0.85))).all()
    assert told.digest() == workload.digest()


def test_none_tells_the_cap(workload: Workload) -> None:
    told = apply(workload, "none")
    assert set(told.predicted_output_tokens) == {4096}
    assert set(told.predicted_class) == {SHORT}
    assert (told.true_class == workload.true_class).all()
    longer = Workload.of([0, 1], [1, 1], [5, 9000], name="x")
    assert set(apply(longer, "none").predicted_output_tokens) == {9000}


def test_label_without_errors_is_the_true_class(workload: Workload) -> None:
    told = apply(workload, "label")
    assert (told.predicted_class == workload.true_class).all()
    short = workload.output_tokens[workload.true_class == SHORT]
    long = workload.output_tokens[workload.true_class == LONG]
    assert set(told.predicted_output_tokens) == {round(short.mean()), round(long.mean())}


def test_label_errors_have_their_rates(workload: Workload) -> None:
    told = apply(workload, "label:eps_sl=0.1,eps_ls=0.3")
    short, long = workload.true_class == SHORT, workload.true_class == LONG
    assert told.predicted_class[short].mean() == pytest.approx(0.1, abs=0.01)
    assert 1 - told.predicted_class[long].mean() == pytest.approx(0.3, abs=0.04)


def test_label_shares_are_the_papers(workload: Workload) -> None:
    # arXiv 2610.17795, equations (6) and (7): arrival rates of the predicted classes.
    eps_sl, eps_ls = 0.1, 0.3
    told = apply(workload, f"label:eps_sl={eps_sl},eps_ls={eps_ls}")
    long = float(workload.true_class.mean())
    short = 1 - long
    assert 1 - told.predicted_class.mean() == pytest.approx((1 - eps_sl) * short + eps_ls * long, abs=0.01)
    assert told.predicted_class.mean() == pytest.approx(eps_sl * short + (1 - eps_ls) * long, abs=0.01)


def test_each_direction_of_error_leaves_the_other_class_alone(workload: Workload) -> None:
    short = workload.true_class == SHORT
    assert (apply(workload, "label:eps_sl=0.4").predicted_class[~short] == LONG).all()
    assert (apply(workload, "label:eps_ls=0.4").predicted_class[short] == SHORT).all()


def test_label_errors_are_nested_over_their_levels(workload: Workload) -> None:
    wrong = [
        apply(workload, f"label:eps_sl={eps},eps_ls={eps}").predicted_class != workload.true_class
        for eps in (0, 0.05, 0.2, 0.4, 1)
    ]
    for low, high in itertools.pairwise(wrong):
        assert not (low & ~high).any()
        assert low.sum() < high.sum()
    assert wrong[-1].all()


def test_label_draws_are_paired_over_rates_and_lengths_of_other_runs() -> None:
    slow, fast = (apply(generate("qba", {"rate_rps": rate}), "label:eps_sl=0.2") for rate in (10, 40))
    assert (slow.predicted_class == fast.predicted_class).all()


def test_label_length_depends_on_the_label_alone(workload: Workload) -> None:
    told = apply(workload, "label:eps_sl=0.2,eps_ls=0.4")
    exact = apply(workload, "label")
    assert len(set(zip(told.predicted_class, told.predicted_output_tokens, strict=True))) == 2
    assert set(told.predicted_output_tokens) == set(exact.predicted_output_tokens)


def test_label_quantile_moves_the_true_class(workload: Workload) -> None:
    told = apply(workload, "label:quantile=0.5")
    assert (told.true_class == long_class(workload.output_tokens, 0.5)).all()
    assert told.true_class.mean() == pytest.approx(0.5, abs=0.01)


def test_label_with_no_long_request() -> None:
    same = generate("deterministic", {"output": 50})
    told = apply(same, "label:eps_sl=1")
    assert set(told.true_class) == {SHORT}
    assert set(told.predicted_class) == {LONG}
    assert set(told.predicted_output_tokens) == {50}


def test_noise_has_mean_one_and_its_cv(workload: Workload) -> None:
    told = apply(workload, "noise:cv=0.5")
    factor = told.predicted_output_tokens / workload.output_tokens
    assert factor.mean() == pytest.approx(1, abs=0.02)
    assert factor.std() == pytest.approx(0.5, abs=0.03)
    cutoff = np.quantile(workload.output_tokens, 0.85)
    assert (told.predicted_class == (told.predicted_output_tokens > cutoff)).all()
    assert (told.true_class == workload.true_class).all()


def test_noise_is_lognormal_and_paired_over_its_levels(workload: Workload) -> None:
    long = workload.output_tokens > 200  # where rounding does not matter
    normals = []
    for cv in (0.2, 0.5, 1.0):
        told = apply(workload, f"noise:cv={cv}")
        sigma = np.sqrt(np.log1p(cv**2))
        logs = np.log(told.predicted_output_tokens[long] / workload.output_tokens[long])
        normals.append((logs + sigma**2 / 2) / sigma)
        assert normals[-1].mean() == pytest.approx(0, abs=0.03)
        assert normals[-1].std() == pytest.approx(1, abs=0.02)
    assert np.abs(normals[0] - normals[2]).max() < 0.1  # the same draws, wider


def test_noise_of_nothing_is_the_truth_and_much_stays_in_range(workload: Workload) -> None:
    assert (apply(workload, "noise:cv=0").predicted_output_tokens == workload.output_tokens).all()
    much = apply(workload, "noise:cv=100").predicted_output_tokens
    assert much.min() == 1
    assert much.max() <= 2**31


@pytest.mark.parametrize("spec", ["label:eps_sl=0.3", "noise:cv=0.3"])
def test_seed_is_the_workloads_unless_given(spec: str) -> None:
    seeded = [generate("qba", {"seed": seed}) for seed in (3, 4)]
    same_lengths = dataclasses.replace(seeded[0], description=seeded[1].description)
    three, four = apply(seeded[0], spec), apply(same_lengths, spec)
    assert (three.predicted_output_tokens != four.predicted_output_tokens).any()
    given = apply(seeded[0], f"{spec},seed=4")
    assert (given.predicted_output_tokens == four.predicted_output_tokens).all()
    bare = dataclasses.replace(seeded[0], description={})
    zero = apply(seeded[0], f"{spec},seed=0")
    assert (apply(bare, spec).predicted_output_tokens == zero.predicted_output_tokens).all()


@pytest.mark.parametrize(
    ("spec", "canonical"),
    [
        ("oracle", "oracle"),
        (" none ", "none"),
        ("label", "label:quantile=0.85,eps_sl=0,eps_ls=0"),
        ("label:eps_ls=.40", "label:quantile=0.85,eps_sl=0,eps_ls=0.4"),
        ("label:seed=0", "label:quantile=0.85,eps_sl=0,eps_ls=0,seed=0"),
        ("noise:seed=3", "noise:cv=0.5,seed=3"),
    ],
)
def test_setting_is_written_one_way(workload: Workload, spec: str, canonical: str) -> None:
    told = apply(workload, spec)
    assert told.predictions == canonical
    assert apply(workload, canonical).digest() == told.digest()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("orakle", r"unknown predictions 'orakle' \(did you mean 'oracle'\?\)"),
        ("label:eps=1", "predictions label: unknown parameter 'eps'"),
        ("label:eps_sl=1.1", r"eps_sl=1.1 is outside \[0, 1\]"),
        ("noise:cv=-1", "cv=-1 is outside"),
        ("noise:cv=x", "cv=x must be a number"),
        ("oracle:seed=1", r"predictions oracle: unknown parameter 'seed' \(it has none\)"),
        ("noise:cv", "'cv' is not key=value"),
    ],
)
def test_mistakes(workload: Workload, spec: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        apply(workload, spec)


def test_settings_document_themselves() -> None:
    assert list(settings()) == ["oracle", "none", "label", "noise"]
    assert all(cls.__doc__ for cls in settings().values())
