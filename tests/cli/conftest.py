"""Calling the command line as a user does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tailrace.cli import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def tailrace(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Call the command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["tailrace", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        return Outcome(int(left.value.code or 0), out, err)

    return call


@pytest.fixture
def refused(tailrace: Any, tmp_path: Path) -> Any:
    """Check that a call is one line of complaint, status 2, and nothing written."""

    def check(arguments: Sequence[str], message: str) -> None:
        shown = tailrace(*arguments)
        assert shown.code == 2
        assert message in shown.err
        assert shown.err.startswith("tailrace: ")
        assert shown.err.count("\n") == 1
        assert shown.out == ""
        assert list(tmp_path.iterdir()) == []

    return check


def heavy_imports(*arguments: str) -> tuple[str, list[str]]:
    """What a call prints in a process of its own, and which large packages it imported."""
    text = f"import sys; sys.argv = {['tailrace', *arguments]!r}\nimport tailrace\nfrom tailrace.cli import main\n"
    text += "try: main()\nexcept SystemExit: pass\n"
    text += "heavy = {'numba', 'numpy', 'matplotlib', 'pyarrow', 'scipy', 'torch', 'vllm'}\n"
    text += "print('imported:', *sorted(heavy & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    printed, _, found = shown.stdout.rpartition("imported:")
    return printed, found.split()


@pytest.fixture
def imports() -> Callable[..., tuple[str, list[str]]]:
    """`heavy_imports`."""
    return heavy_imports
