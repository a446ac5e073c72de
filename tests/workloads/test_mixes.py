from __future__ import annotations

import numpy as np
import pytest

from tailrace.errors import UserError
from tailrace.workloads import Workload, generate

MANY = 50_000
TEXT = "constant:10:1@0.8 class=chat class_weight=4 tenant=web ttft_slo_s=1 tpot_slo_s=0.05 priority=-1"
TEXT += " + constant:20:2@0.2 class=think"


def made(**given: object) -> Workload:
    return generate("gamma", {"requests": MANY, **given})


def test_a_parts_lengths_class_tenant_and_slos_go_together() -> None:
    workload = made(lengths=TEXT)
    think = workload.output_tokens == 2
    assert think.mean() == pytest.approx(0.2, abs=0.006)
    assert (workload.prompt_tokens == np.where(think, 20, 10)).all()
    assert workload.class_names == ("chat", "think")
    assert workload.class_weights == (4.0, 1.0)
    assert (workload.class_id == think).all()
    assert workload.tenant_names == ("web", "default")
    assert (workload.tenant == think).all()
    assert (workload.priority == np.where(think, 0, -1)).all()
    assert (workload.ttft_slo_s == np.where(think, np.inf, 1)).all()
    assert (workload.tpot_slo_s == np.where(think, np.inf, 0.05)).all()


def test_classes_and_tenants_are_independent_of_lengths() -> None:
    given = {"lengths": "constant:10:1+constant:20:2", "tenants": "a@0.7+b@0.3"}
    workload = made(classes="high@0.5 weight=2 ttft_slo_s=0.5 + low@0.5", **given)
    high = workload.class_id == 0
    assert workload.class_names == ("high", "low")
    assert workload.class_weights == (2.0, 1.0)
    assert high.mean() == pytest.approx(0.5, abs=0.01)
    assert (workload.ttft_slo_s == np.where(high, 0.5, np.inf)).all()
    assert workload.tenant.mean() == pytest.approx(0.3, abs=0.01)
    columns = np.array([workload.class_id, workload.tenant, workload.output_tokens])
    assert np.abs(np.corrcoef(columns) - np.eye(3)).max() < 0.02


def test_shares_that_drift_over_time() -> None:
    workload = made(rate_rps=50, classes="high@sine:0.5:0.4:1000+low@0.5", lengths="r1")
    quarter = (workload.arrival_s // 250).astype(int)
    high = [float(np.mean(workload.class_id[quarter == q] == 0)) for q in range(4)]
    mean = np.mean([(w := 0.5 + 0.4 * np.sin(x)) / (w + 0.5) for x in np.linspace(0, np.pi / 2, 500)])
    assert high[0] == pytest.approx(mean, abs=0.02)
    assert high[1] == pytest.approx(mean, abs=0.02)
    assert max(high[2:]) < 0.4


def test_other_shares_leave_each_parts_lengths_as_they_are() -> None:
    few, many = (made(lengths=f"azure-conv@{1 - share}+s1k-like@{share}") for share in (0.2, 0.7))
    alone = made(lengths="azure-conv")
    same = few.prompt_tokens == many.prompt_tokens
    assert 0.49 < same.mean() < 0.55  # those that did not change sides, and a few by chance
    assert 0.79 < np.mean(few.prompt_tokens == alone.prompt_tokens) < 0.82
    assert (few.arrival_s == alone.arrival_s).all()


def test_the_mix_of_70_percent_reasoning_has_its_papers_tail() -> None:
    # arXiv 2606.18431, mix-2: decode P99 over 16k tokens, as stated in the article on it.
    output = made(lengths="azure-conv@0.3+s1k-like@0.7").output_tokens
    assert 16_000 < np.quantile(output, 0.99) < 20_000


def test_notes_say_where_lengths_come_from() -> None:
    workload = made(lengths="azure-conv@0.8+r1@0.2")
    assert [note.split(":")[0] for note in workload.description["notes"]] == ["lengths azure-conv", "lengths r1"]
    assert "not published" in workload.description["notes"][1]
    cut = made(lengths="lognormal:100:1:10:1:200:1e6").description["notes"][0]
    count = int(np.count_nonzero(made(lengths="lognormal:100:1:10:1:200:1e6").prompt_tokens == 200))
    assert cut.endswith(f"; {count} of {MANY} prompts are cut to 200 tokens")
    assert 0.2 < count / MANY < 0.3  # Pr(Z > ln 2)
    assert "classes" not in workload.description["parameters"]
    poisson = generate("poisson", {"lengths": "r1"}).description["parameters"]
    assert poisson == {"rate_rps": 4.0, "requests": 1000, "seed": 0, "lengths": "r1"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lengths": "r2"}, "workload gamma: lengths: unknown lengths 'r2'"),
        ({"lengths": "r1 ttft_slo_s=0"}, "workload gamma: lengths: ttft_slo_s: 0 must be finite and above 0"),
        ({"lengths": "r1 class_weight=2"}, "class_weight=2 without a class; add class=NAME"),
        ({"lengths": "r1 class=a class_weight=2+r1 class=a"}, "class 'a' has two weights, 2 and 1; give it one"),
        ({"lengths": "r1 class=a", "classes": "b"}, "classes: class is set by lengths too; keep one"),
        ({"lengths": "r1 tenant=a", "tenants": "b"}, "tenants: tenant is set by lengths too; keep one"),
        ({"classes": "a:2"}, "workload gamma: classes: a: a name takes no arguments; write a@SHARE"),
        ({"classes": "a wait=2"}, "classes: a: unknown setting 'wait' .*'weight'"),
        ({"classes": "a weight=0"}, "classes: a: weight: 0 must be finite and above 0"),
        ({"classes": "a priority=1.5"}, "must be a whole number"),
        ({"tenants": "a weight=2"}, r"tenants: a: unknown setting 'weight' \(it has none\)"),
        ({"classes": "a@0+b@0"}, "all shares are 0"),
        ({"lengths": ""}, "lengths: a part is empty"),
    ],
)
def test_mistakes(given: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        generate("gamma", {"requests": 10, **given})
