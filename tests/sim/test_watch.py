"""What is seen step by step adds up to what the loop itself counts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tailrace.sim.instance import DRAINED
from tailrace.sim.watch import token_times

from ..exports.watched_runs import N, instance, watched
from .tokens import in_time


@pytest.mark.parametrize("steps_in_flight", [1, 2])
def test_steps_tokens_and_spells_are_the_runs(steps_in_flight: int) -> None:
    seen = watched(steps_in_flight)
    plain = instance(steps_in_flight)
    assert plain.advance() == DRAINED
    expected = plain.result()
    assert seen.result.summary() == expected.summary()
    r, counters = expected.requests, expected.counters
    assert r.preemptions.sum() > 0
    done = r.reason == 1
    assert done.sum() == N - 1

    assert len(seen.steps) == counters["steps"]
    assert sum(s.prefill_tokens for s in seen.steps) == counters["prefill_tokens"]
    assert sum(s.decode_tokens for s in seen.steps) == counters["decode_tokens"]
    assert sum(s.preempted for s in seen.steps) == counters["preemptions"]
    assert all(a.end_s <= b.begin_s for a, b in itertools.pairwise(seen.steps))
    assert seen.steps[-1].running == 0

    times, starts = token_times(seen)
    np.testing.assert_array_equal(np.diff(starts), r.generated_tokens)
    np.testing.assert_array_equal(times[starts[:-1][done]], r.first_token_s[done])
    np.testing.assert_array_equal(times[starts[1:][done] - 1], r.finish_s[done])
    gaps = np.array([np.diff(times[a:b]).max(initial=0) for a, b in itertools.pairwise(starts)])
    np.testing.assert_allclose(gaps, r.gap_max_s)

    first_on_time, later_on_time = in_time(seen)
    assert r.first_on_time.tolist() == [bool(count) for count in first_on_time]
    assert r.on_time_tokens.tolist() == later_on_time
    assert 0 < r.on_time_tokens[done & (r.on_time_tokens >= 0)].sum() < r.generated_tokens[done].sum() // 2

    np.testing.assert_array_equal(np.bincount(seen.spell_row, minlength=N)[done], r.preemptions[done] + 1)
    first = np.full(N, np.inf)
    np.minimum.at(first, seen.spell_row, seen.spell_begin_s)
    np.testing.assert_allclose(first[done], r.started_s[done], atol=1e-12)
    assert (seen.spell_end_s >= seen.spell_begin_s).all()
