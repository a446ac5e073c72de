"""Shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.hookimpl(tryfirst=True)  # before xdist looks for the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one policy go to one process, which then compiles it once (``--dist loadgroup``)."""
    for item in items:
        given = getattr(getattr(item, "callspec", None), "params", {})
        policy = given.get("policy", given.get("name"))
        if isinstance(policy, str):
            item.add_marker(pytest.mark.xdist_group(policy.removeprefix("plugin:")))


@pytest.fixture
def azure_trace() -> Path:
    """The Azure 2023 conversation trace, from $TAILRACE_DATA or ../shared/data."""
    folder = Path(os.environ.get("TAILRACE_DATA", Path(__file__).parents[2] / "shared" / "data"))
    path = folder / "azure_llm_2023_conv.csv"
    if not path.exists():
        pytest.skip("the Azure trace is not here; set TAILRACE_DATA to the folder that holds it")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], Path]:
    """Writes text, byte for byte, to trace.csv and returns its path."""

    def write(text: str) -> Path:
        path = tmp_path / "trace.csv"
        path.write_bytes(text.encode())
        return path

    return write
