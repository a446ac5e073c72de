"""The bar that people see."""

from __future__ import annotations

import io

import pytest

from tailrace.cli.progress import advancing, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _advanced(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    told: list[float] = []
    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setattr("rich.progress.Progress.advance", lambda self, task, by=1: told.append(by))
    return told


def test_it_moves_on_by_one_for_each_run_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    told = _advanced(monkeypatch)
    with progress(3, quiet=False) as done:
        for index in (2, 0, 1):
            done(index)
    assert told == [1, 1, 1]


def test_it_moves_on_by_as_many_as_have_come_to_be_known(monkeypatch: pytest.MonkeyPatch) -> None:
    told = _advanced(monkeypatch)
    with advancing(30, quiet=False) as done:
        done(20)
        done(10)
    assert told == [20, 10]


def test_nobody_sees_it_where_it_would_be_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    told = _advanced(monkeypatch)
    with advancing(30, quiet=True) as done:
        done(20)
    with advancing(1, quiet=False) as done:
        done(1)
    assert told == []
