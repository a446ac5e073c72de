"""docs/metrics.md names everything that a result says."""

from __future__ import annotations

from pathlib import Path

from tailrace.exports.parquet import COLUMNS

from ..exports.watched_runs import watched

TEXT = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")


def test_every_metric_and_column_is_defined() -> None:
    result = watched().result.summary()
    names = [*COLUMNS, *result["metrics"]["wait_s"]]
    names += [key for part in ("metrics", "slo", "gain", "starvation") for key in result[part]]
    names += [key for key in result["counts"] if key != "preemptions"]
    names += ["load_state", "queueing", "recompute_tax", *(f"fairness.{key}" for key in result["fairness"])]
    names += [f"throughput.{key}" for key in result["throughput"]]
    assert [name for name in names if f"`{name}`" not in TEXT] == []
