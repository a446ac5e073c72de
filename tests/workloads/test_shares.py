from __future__ import annotations

import math

import numpy as np
import pytest

from tailrace.errors import UserError
from tailrace.workloads.shares import choose, terms

KEYS = ("class", "ttft_slo_s")
TIMES = np.array([0.0, 25.0, 50.0, 100.0, 1000.0])


def share_at(share: str) -> list[float]:
    (term,) = terms(f"a@{share}", "here", ())
    return [float(value) for value in term.share.at(TIMES)]


def test_terms_have_names_arguments_shares_and_settings() -> None:
    first, second = terms("a:1:2e+1@0.8 class=x ttft_slo_s=.5+ b", "here", KEYS)
    assert (first.name, first.args, first.settings) == ("a", ("1", "2e+1"), {"class": "x", "ttft_slo_s": ".5"})
    assert first.share.at(TIMES).tolist() == [0.8] * 5
    assert (second.name, second.args, second.settings) == ("b", (), {})
    assert second.share.at(TIMES).tolist() == [1.0] * 5


def test_shares_over_time() -> None:
    assert share_at("drift:0.8:0.2:100") == pytest.approx([0.8, 0.65, 0.5, 0.2, 0.2])
    assert share_at("sine:0.5:0.5:100") == pytest.approx([0.5, 1.0, 0.5, 0.5, 0.5])
    assert share_at("sine:0.5:0.3:100:0.25") == pytest.approx([0.8, 0.5, 0.2, 0.8, 0.8])
    assert share_at("steps:50:1:2:3") == [1, 1, 2, 3, 3]  # the 20th step is the third of them again
    assert min(share_at("sine:1:1:100:0.75")) == 0


def test_choice_follows_the_weights_and_is_nested() -> None:
    draws = np.random.default_rng(1).random(100_000)
    times = np.linspace(0, 100, len(draws))
    which = choose(terms("a@6+b@3+c@1", "here", ()), times, draws, "here")
    assert np.bincount(which) / len(draws) == pytest.approx([0.6, 0.3, 0.1], abs=0.005)
    more = choose(terms("a@8+b@1+c@1", "here", ()), times, draws, "here")
    assert (more[which == 0] == 0).all()  # who was of a part is of it when it grows
    drifting = choose(terms("a@drift:1:0:100+b@drift:0:1:100", "here", ()), times, draws, "here")
    for low, high in ((0, 10), (45, 55), (90, 100)):
        among = (times >= low) & (times < high)
        assert drifting[among].mean() == pytest.approx((low + high) / 200, abs=0.02)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "here: a part is empty"),
        ("a + ", "here: a part is empty"),
        ("a@", "'a@' is not NAME@SHARE"),
        ("@0.5", "'@0.5' is not NAME"),
        ("a @0.5", "'@0.5' is not key=value"),
        ("a class", "'class' is not key=value"),
        ("a clas=x", r"here: a: unknown setting 'clas' \(did you mean 'class'\?\)"),
        ("a class=x class=y", "here: a: 'class' is given twice"),
        ("a@0.5+a@0.5", "'a' is named twice; add up its shares"),
        ("a@-1", "share -1: -1 must be finite and 0 or more"),
        ("a@nan", "share nan: nan must be finite"),
        ("a@inf", "share inf: inf must be finite"),
        ("a@0.5x", "share 0.5x: '0.5x' is not a number"),
        ("a@drift", "share drift: write drift:FROM:TO:SECONDS"),
        ("a@drft:1:2:3", r"unknown shape 'drft' \(did you mean 'drift'\?\)"),
        ("a@drift:1:2", "write drift:FROM:TO:SECONDS"),
        ("a@drift:1:2:0", "0 must be finite and above 0"),
        ("a@sine:0.5:0.6:10", "the amplitude is above the mean"),
        ("a@steps:0:1:2", "0 must be finite and above 0"),
        ("a@steps:10", "write steps:SECONDS:A:B:…"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        terms(text, "here", KEYS)
    assert str(caught.value).startswith("here: ")


def test_no_share_left() -> None:
    both = terms("a@drift:1:0:100+b@steps:50:1:0", "here", ())
    with pytest.raises(UserError, match="here: all shares are 0 at 150 s"):
        choose(both, np.array([0.0, 150.0]), np.zeros(2), "here")
    assert math.isclose(sum(part.share.at(np.zeros(1))[0] for part in both), 2)
