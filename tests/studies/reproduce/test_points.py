"""Points over seeds: kept as they are made, gone on with, the same on any number of processes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tailrace.errors import UserError
from tailrace.studies.reproduce import points
from tailrace.studies.reproduce.measure import MEASURES
from tailrace.studies.reproduce.points import Point, sample
from tailrace.studies.reproduce.traffic import Generated

FCFS = Point(Generated("qba:rate_rps=32,requests=120"), "fcfs", "qba", "")
PSF = dataclasses.replace(FCFS, policy="psf")


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder of numbers."""
    monkeypatch.setattr(points, "folder", lambda: tmp_path)
    return tmp_path


def _same(a: Any, b: Any) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key], equal_nan=True) for key in a)


def test_a_sample_has_a_row_a_seed_whatever_the_processes(kept: Path) -> None:
    alone = sample([FCFS, PSF], 12, workers=1, cache=False)
    assert list(kept.iterdir()) == []
    assert alone[FCFS].shape == alone[PSF].shape == (12, len(MEASURES))
    assert _same(alone, sample([PSF, FCFS, PSF], 12, workers=2, cache=False) | {})
    for seed in (0, 11):
        (row,) = points._run(points._Task((PSF,), (seed,)))
        assert np.array_equal(alone[PSF][seed], row[0], equal_nan=True)


def test_what_was_finished_is_not_run_again(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = sample([FCFS], 12, workers=1)
    assert len(list(kept.glob("*.npy"))) == 2  # ten seeds, and two
    ran: list[points._Task] = []
    run = points._run
    monkeypatch.setattr(points, "_run", lambda task: ran.append(task) or run(task))  # type: ignore[func-returns-value]
    told: list[int] = []
    assert _same(first, sample([FCFS], 12, workers=1, done=told.append))
    assert ran == []
    assert told == [12]
    more = sample([FCFS], 20, workers=1)
    assert [task.seeds for task in ran] == [tuple(range(10, 20))]  # a block of another length is another one
    assert np.array_equal(more[FCFS][:12], first[FCFS], equal_nan=True)


def test_a_damaged_file_is_made_again(kept: Path) -> None:
    first = sample([FCFS], 5, workers=1)
    (file,) = kept.glob("*.npy")
    file.write_bytes(file.read_bytes()[:100])
    assert _same(first, sample([FCFS], 5, workers=1))
    np.save(file, np.zeros((5, 2)))
    assert _same(first, sample([FCFS], 5, workers=1))
    assert list(kept.glob("*.tmp")) == []


def test_every_input_counts_in_the_key() -> None:
    others = {
        "traffic": Generated("qba:rate_rps=33,requests=120"),
        "policy": "qba:k=3",
        "engine": "qba:kv_tokens=4096",
        "latency": "piecewise:per_seq_s=1e-5",
        "predictions": "label:eps_sl=0.1",
        "skipped": 0.1,
        "measure": "tails",
    }
    assert others.keys() == {field.name for field in dataclasses.fields(Point)}
    changed: list[Any] = [dataclasses.replace(FCFS, **{name: value}) for name, value in others.items()]  # type: ignore[arg-type]
    keys = {points._key(point, (0, 1)) for point in [FCFS, *changed]} | {points._key(FCFS, (0, 2))}
    assert len(keys) == 9


def test_jitter_is_drawn_anew_with_each_seed() -> None:
    one_load = Point(Generated("deterministic:gap_s=0,requests=80"), "fcfs", "qba:step_jitter=0.3", "")
    rows = sample([one_load, dataclasses.replace(one_load, engine="qba")], 3, workers=1, cache=False)
    jittered, plain = (rows[point][:, 0] for point in rows)
    assert len(set(jittered)) == 3
    assert len(set(plain)) == 1


def test_a_mistake_surfaces_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points, "_run", lambda task: pytest.fail("ran"))
    with pytest.raises(UserError, match="did you mean"):
        sample([FCFS, dataclasses.replace(FCFS, policy="fcsf")], 5, workers=1)


def test_points_that_see_the_same_requests_go_together_but_not_all_of_them() -> None:
    many = [dataclasses.replace(FCFS, policy=f"qba:k={k}") for k in range(1, 12)]
    other = dataclasses.replace(FCFS, predictions="none")
    tasks = points._tasks([(point, (0, 1)) for point in [*many, other]])
    assert [len(task.points) for task in tasks] == [points.MOST_POINTS, 11 - points.MOST_POINTS, 1]
    assert [point for task in tasks for point in task.points] == [*many, other]
