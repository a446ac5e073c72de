"""PSF, AA and QBA against §III of the paper: the hooks one by one, then whole runs."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from tailrace import hooks, params
from tailrace.config import engine
from tailrace.latency import Latency, PiecewiseParams
from tailrace.policies.quota import AA, PSF, QBA
from tailrace.sim.run import Instance, simulate
from tailrace.table import LONG, PREFILL, SHORT, WAITING, RequestTable, allocate
from tailrace.workloads.workload import Workload

LATENCY = Latency("paper", PiecewiseParams(), None, "")


class Bench:
    """A policy's hooks on a table of ``n`` waiting requests that arrived at 0, 1, 2, …"""

    def __init__(self, policy: Any, n: int, long: set[int] | frozenset[int] = frozenset(), **given: Any) -> None:
        self.policy, self.n = policy, n
        self.params = params.build(policy.Params, given, policy.name)
        self.records, self.table = allocate(RequestTable, n)
        self.records["arrival_s"], self.records["seq"] = np.arange(n), np.arange(n)
        self.records["predicted_class"] = [LONG if i in long else SHORT for i in range(n)]
        self.records["phase"] = WAITING
        self.state, self.scratch = policy.make_state(self.params, n), policy.make_scratch(self.params, n)

    @property
    def aging(self) -> tuple[int, int]:
        """``(shorts counted, debts)``"""
        return int(self.state.aging.shorts[0]), int(self.state.aging.debts[0])

    def keys(self, now: float) -> list[int]:
        """The tier of each row; the first waiting ones of each lane are shown to ``prepare``."""
        waiting = [i for i in range(self.n) if self.records["phase"][i] == WAITING]
        lanes = [
            [i for i in waiting if self.policy.lane(self.table, i, self.state, self.params) == k] for k in range(3)
        ]
        seen = waiting if self.policy.sees_all(self.params) else [rows[0] for rows in lanes if rows]
        live = np.array(seen, dtype=np.int64)
        self.policy.prepare(self.table, live, now, self.state, self.scratch, None, self.params)
        rows = range(self.n)
        return [self.policy.key(self.table, i, now, self.state, self.scratch, None, self.params)[0] for i in rows]

    def admit(self, row: int, now: float, first: bool = True) -> None:
        tier = self.keys(now)[row]
        self.records["phase"][row] = PREFILL
        self.policy.on_admit(self.table, row, first, tier, now, self.state, self.params)

    def prefilled(self, row: int) -> None:
        self.policy.on_prefill_done(self.table, row, 0.0, self.state, self.params)

    def abort(self, row: int) -> None:
        self.policy.on_remove(self.table, row, hooks.ABORTED, 0.0, self.state, self.params)


def in_debt(**given: Any) -> Bench:
    """QBA after k = 2 completed short prefills; rows 4, 5 and 6 are long, and θ is 10 s."""
    bench = Bench(QBA, 9, {4, 5, 6}, k=2, **given)
    bench.state.aging.threshold_s[0] = 10.0
    for row in (0, 1):
        bench.admit(row, 1.0)
        bench.prefilled(row)
    return bench


def test_psf_is_short_first() -> None:
    table = allocate(RequestTable, 2)
    table[0]["predicted_class"] = [LONG, SHORT]
    assert [PSF.key(table[1], row, 9e9, None, None, None, None)[0] for row in (0, 1)] == [1, 0]


def test_the_counter_advances_at_completed_short_prefills_only() -> None:
    bench = Bench(QBA, 8, {5, 6}, k=3)
    for row in (0, 1):
        bench.admit(row, 1.0)
    assert bench.aging == (0, 0)
    bench.prefilled(0)
    bench.prefilled(5)  # a long one
    assert bench.aging == (1, 0)
    bench.prefilled(1)
    bench.prefilled(2)
    assert bench.aging == (3, 1)


def test_a_recomputed_prefill_does_not_count_again() -> None:
    """Not even where the prefill delivers no token, so that none tells of the first time."""
    bench = Bench(QBA, 8, k=3)
    bench.prefilled(0)
    bench.prefilled(0)
    assert bench.aging == (1, 0)


def test_the_counter_is_frozen_while_a_debt_is_pending() -> None:
    bench = in_debt()
    for row in (2, 3, 7, 8):
        bench.prefilled(row)
    assert bench.aging == (2, 1)


def test_debts_accumulate_when_asked_to() -> None:
    bench = in_debt(debts="accumulate")
    for row in (2, 3, 7):
        bench.prefilled(row)
    assert bench.aging == (1, 2)


def test_a_debt_promotes_the_oldest_aged_long_request_and_only_it() -> None:
    bench = in_debt()
    assert bench.keys(14.0) == [1, 1, 1, 1, 2, 2, 2, 1, 1]  # row 4 has waited 10 s: not more than θ
    assert bench.keys(14.5) == [1, 1, 1, 1, 0, 2, 2, 1, 1]
    assert bench.keys(50.0) == [1, 1, 1, 1, 0, 2, 2, 1, 1]


def test_without_a_debt_nobody_is_promoted() -> None:
    bench = Bench(QBA, 9, {4, 5}, k=2)
    bench.state.aging.threshold_s[0] = 1.0
    assert bench.keys(50.0) == [1, 1, 1, 1, 2, 2, 1, 1, 1]


def test_only_the_promoted_admission_clears_the_debt() -> None:
    bench = in_debt()
    bench.admit(2, 20.0)  # short
    bench.admit(5, 20.0)  # long, but not the promoted one
    assert bench.aging == (2, 1)
    bench.admit(4, 20.0)
    assert bench.aging == (0, 0)
    assert bench.keys(50.0)[6] == 2  # one promotion a cycle: nobody is promoted again
    bench.prefilled(2)
    bench.prefilled(3)
    assert bench.keys(50.0)[6] == 0


@pytest.mark.parametrize("debts", ["frozen", "accumulate"])
def test_an_abort_gives_the_debt_back(debts: str) -> None:
    bench = in_debt(debts=debts)
    bench.admit(4, 20.0)
    assert bench.aging == (0, 0)
    bench.abort(4)
    assert bench.aging[1] == 1
    assert bench.keys(50.0)[5] == 0


def test_an_abort_after_the_first_token_gives_nothing_back() -> None:
    bench = in_debt()
    bench.admit(4, 20.0)
    bench.records["generated_tokens"][4] = 1
    bench.abort(4)
    assert bench.aging == (0, 0)


def test_a_preempted_promoted_request_keeps_its_place_and_pays_once() -> None:
    bench = in_debt()
    bench.admit(4, 20.0)
    for row in (2, 3):  # a second debt is earned meanwhile
        bench.prefilled(row)
    bench.records["phase"][4] = WAITING
    assert QBA.lane(bench.table, 4, bench.state, bench.params) == 2
    assert bench.keys(50.0)[4:6] == [0, 0]  # it and the next one; it arrived first
    bench.admit(4, 50.0, first=False)
    assert bench.aging == (2, 1)  # the debt is the other's
    bench.admit(5, 50.0)
    assert bench.aging == (0, 0)


def test_aa_puts_every_aged_long_request_first() -> None:
    bench = Bench(AA, 6, {2, 3, 4})
    bench.state.aging.threshold_s[0] = 10.0
    assert bench.keys(13.5) == [1, 1, 0, 0, 2, 1]


@pytest.mark.parametrize("policy", [AA, QBA])
@pytest.mark.parametrize(("reference", "window"), list(product(("history_long", "history_all"), (1, 7, 50, 0))))
def test_the_threshold_is_numpys_quantile(policy: Any, reference: str, window: int) -> None:
    rng = np.random.default_rng(window)
    long = set(np.flatnonzero(rng.random(300) < 0.5).tolist())
    given: dict[str, Any] = {"reference": reference, "window": window, "min_samples": 5 if window != 1 else 1}
    bench = Bench(policy, 300, long, aging_quantile=0.8, **given)
    waits: list[float] = []
    for row in range(300):
        wait = float(rng.choice([0.0, 1.0, rng.exponential()]))  # many equal ones leave the window too
        bench.policy.on_admit(bench.table, row, True, 1, row + wait, bench.state, bench.params)
        if row in long or reference == "history_all":
            waits.append(row + wait - row)
        kept = waits[-window:] if window else waits
        want = np.quantile(kept, 0.8) if len(kept) >= given["min_samples"] else np.inf
        assert bench.state.aging.threshold_s[0] == pytest.approx(want, rel=1e-12), row


@pytest.mark.parametrize("policy", [AA, QBA])
def test_the_queue_as_reference(policy: Any) -> None:
    bench = Bench(policy, 41, set(range(0, 41, 2)), reference="queue", min_samples=10)
    bench.keys(100.0)
    assert bench.scratch.ranking.threshold_s[0] == pytest.approx(np.quantile(100.0 - np.arange(41), 0.8))
    bench.records["phase"][9:] = PREFILL  # nine wait: too few
    bench.keys(100.0)
    assert np.isinf(bench.scratch.ranking.threshold_s[0])


def test_a_resumed_request_is_not_observed_again() -> None:
    bench = Bench(AA, 3, {0, 1, 2})
    bench.admit(0, 5.0)
    bench.admit(0, 9.0, first=False)
    assert bench.state.aging.held[0] == 1


def starving(n: int = 600, every: int = 50) -> Workload:
    """Twice the requests that the engine can serve; one of ``every`` is long."""
    rng = np.random.default_rng(3)
    long = np.arange(n) % every == every // 2
    return Workload.of(
        np.arange(n) / 200.0,
        rng.integers(80, 200, n),
        np.where(long, 300, rng.integers(60, 120, n)),
        name="starving",
        predicted_class=long.astype(int),
    )


def run(policy: Any, workload: Workload, **given: Any) -> Any:
    return simulate(workload, policy, params.build(policy.Params, given, policy.name), engine("qba"), LATENCY).requests


@pytest.mark.parametrize("k", [1, 3, 10])
def test_an_aged_long_request_waits_for_a_bounded_number_of_shorts(k: int) -> None:
    """Each debt takes k completed short prefills and goes to the oldest. Of those behind a
    request's own place in the line nobody counts, and few more complete while a debt waits."""
    chosen = params.build(QBA.Params, {"k": k, "aging_quantile": 0.0, "min_samples": 1}, "qba")
    workload = starving(every=4)
    run_ = Instance(workload, QBA, chosen, engine("qba"), LATENCY)
    table, long = run_.buffers.table, np.flatnonzero(workload.predicted_class == LONG)
    line, served, passed = np.full(len(workload), -1), np.zeros(len(workload), dtype=int), 0
    run_.engine.state.aging.threshold_s[0] = 0.0  # aged as soon as it waits
    while run_.advance(steps=1) == 1:
        run_.engine.state.aging.threshold_s[0] = 0.0
        done = (table["attained_tokens"] >= table["prompt_tokens"]) & (workload.predicted_class == SHORT)
        passed, before = int(done.sum()), passed
        for place, row in enumerate(row for row in long if table["phase"][row] == WAITING):
            line[row] = place if line[row] < 0 else line[row]
            served[row] += passed - before
            assert served[row] <= (line[row] + 1) * (k + 3) + 10, (row, line[row], served[row])
    assert served.max() >= 10 * k, "nobody had to wait"


def test_psf_starves_where_qba_does_not() -> None:
    workload = starving()
    long = workload.predicted_class == LONG
    psf, qba = run(PSF, workload), run(QBA, workload, reference="history_all")
    assert np.nanmax(qba.wait_s[long]) < 0.7 * np.nanmax(psf.wait_s[long])
    assert np.nanmean(psf.wait_s[~long]) <= np.nanmean(qba.wait_s[~long])


def test_with_too_few_samples_nobody_is_aged() -> None:
    """As long as no long request starts there is no history of long ones: QBA is PSF then."""
    workload = starving()
    psf, qba = run(PSF, workload), run(QBA, workload, reference="history_long")
    np.testing.assert_array_equal(psf.started_s, qba.started_s)


def test_psf_starts_by_class_then_arrival() -> None:
    n = 40
    long = (np.arange(n) * 7) % 5 < 2
    workload = Workload.of(np.arange(n) * 1e-9, 128, 8, name="at once", predicted_class=long.astype(int))
    config = engine("qba", {"max_seqs": 1})
    psf: Any = PSF
    requests = simulate(workload, psf, psf.Params(), config, LATENCY).requests
    first = int(np.argmin(requests.started_s))
    order = [int(i) for i in np.argsort(requests.started_s, kind="stable") if i != first]
    assert order == sorted((i for i in range(n) if i != first), key=lambda i: (long[i], i))


OPTIONS = list(product(("history_long", "history_all", "queue"), (0, 1, 50)))


@pytest.mark.parametrize(("reference", "window"), OPTIONS)
def test_every_option_runs(reference: str, window: int) -> None:
    workload = starving(150)
    given: dict[str, Any] = {"reference": reference, "window": window, "min_samples": 1}
    assert (run(AA, workload, **given).reason == 1).all()
    for debts in ("frozen", "accumulate"):
        assert (run(QBA, workload, debts=debts, **given).reason == 1).all()
