"""A row a request, with a schema that says what each column is."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from tailrace.exports.parquet import COLUMNS, write_requests
from tailrace.sim.instance import DRAINED

from .watched_runs import N, instance, watched

OBJECTIVES = ("ttft_slo_s", "ttft_met", "tpot_met", "slo_met", "first_on_time", "on_time_tokens")


def test_rows_names_and_nulls(tmp_path: Path) -> None:
    path, result = tmp_path / "r.parquet", watched().result
    write_requests(str(path), [("srpt", result), ("again:x=1", result)])
    table = pq.read_table(path)
    assert table.column_names == list(COLUMNS)
    assert table.num_rows == 2 * N
    rows = table.to_pylist()
    assert [row["policy"] for row in rows[:: 2 * N - 1]] == ["srpt", "again:x=1"]
    assert (rows[1]["class"], rows[1]["tenant"], rows[1]["session"]) == ("basic", "b", None)
    assert rows[0]["true_class"] in ("short", "long")
    rejected = rows[N - 1]
    assert rejected["reason"] == "rejected"
    assert [rejected[name] for name in ("started_s", "wait_s", "e2e_s", "slowdown")] == [None] * 4
    for i, row in enumerate(rows[: N - 1]):
        assert row["reason"] == "finished"
        assert row["e2e_s"] == result.requests.finish_s[i] - result.requests.arrival_s[i]
        if i % 2:
            assert [row[name] for name in OBJECTIVES] == [None] * len(OBJECTIVES)
        else:
            assert row["ttft_met"] == row["first_on_time"] == (row["ttft_s"] < 0.2)
            assert row["on_time_tokens"] == result.requests.on_time_tokens[i]
            assert row["slo_met"] == (row["ttft_met"] and row["tpot_met"])
    slo = result.summary()["slo"]
    met = [row["slo_met"] for row in rows[:N] if row["slo_met"] is not None]
    assert slo["attainment"] == np.mean(met)


def test_the_schema_describes_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    write_requests(str(path), [("srpt", watched().result)])
    for field in pq.read_schema(path):
        assert field.metadata[b"description"].decode() == COLUMNS[field.name]


def test_sessions_are_numbers_and_none_is_null(tmp_path: Path) -> None:
    run = instance()
    session = np.arange(N) // 2
    session[0] = -1
    run.workload = copy.copy(run.workload)
    object.__setattr__(run.workload, "session", session)
    assert run.advance() == DRAINED
    path = tmp_path / "r.parquet"
    write_requests(str(path), [("srpt", run.result())])
    assert pq.read_table(path)["session"].to_pylist() == [None, *session[1:].tolist()]
