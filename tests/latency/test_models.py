"""Each latency model against numbers worked out by hand, compiled and not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace import _jit, hooks
from tailrace.latency import (
    PRESETS,
    PiecewiseParams,
    ProfiledParams,
    RooflineParams,
    StepShape,
    step_seconds,
    step_shape,
)

PIECEWISE = PiecewiseParams()
PROFILED = ProfiledParams(0.01, 1e-9, 2e-9, 1e-4, 3e-8, 5e-8, 2e-5)
# 100 flop/s and 10 B/s make hand arithmetic possible.
ROOFLINE = RooflineParams(2.0, 4.0, 50.0, 3.0, 100.0, 10.0, 0.5, 0.25)
ALL = (PIECEWISE, PROFILED, ROOFLINE)

MIXED = step_shape(prefills=[(100, 0), (50, 200)], decodes=[(1, 1000), (1, 500), (1, 10)])


@_jit.entry
def evaluate(shape: Any, tokens: int, kv_tokens: int, cost: Any) -> tuple[float, float, float, float, float]:
    return (
        step_seconds(shape, cost),
        hooks.chunk_s(tokens, kv_tokens, cost),
        hooks.decode_s(tokens, kv_tokens, cost),
        hooks.constant_s(cost),
        hooks.remaining_s(tokens, 7, kv_tokens, cost),
    )


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAILRACE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def test_shape_sums() -> None:
    assert MIXED._asdict() == {
        "tokens": 153,
        "seqs": 5,
        "prefill_seqs": 2,
        "prefill_tokens": 150,
        "prefill_sq": 100 * 100 + 50 * 50,
        "prefill_cross": 50 * 200,
        "prefill_kv": 200,
        "decode_seqs": 3,
        "decode_tokens": 3,
        "decode_kv": 1510,
    }
    assert step_shape() == StepShape(*[0] * 10)


@pytest.mark.parametrize(("tokens", "seconds"), [(1, 0.003), (64, 0.003), (65, 0.00302), (128, 0.003 + 64 * 2e-5)])
def test_piecewise(tokens: int, seconds: float) -> None:
    assert step_seconds(step_shape([(tokens, 999)]), PIECEWISE) == pytest.approx(seconds)


def test_piecewise_margins() -> None:
    assert hooks.chunk_s(100, 5, PIECEWISE) == pytest.approx(0.002)
    assert hooks.decode_s(8, 5, PIECEWISE) == pytest.approx(1.6e-4)
    assert hooks.constant_s(PIECEWISE) == 0.003


def test_profiled() -> None:
    prefill = 1e-9 * 12_500 + 2e-9 * 10_000 + 1e-4 * 150 + 3e-8 * 200
    decode = 5e-8 * 1510 + 2e-5 * 3
    assert step_seconds(MIXED, PROFILED) == pytest.approx(0.01 + prefill + decode)


def test_profiled_is_the_sum_of_its_margins() -> None:
    margins = hooks.chunk_s(100, 0, PROFILED) + hooks.chunk_s(50, 200, PROFILED)
    margins += sum(hooks.decode_s(1, kv, PROFILED) for kv in (1000, 500, 10))
    assert step_seconds(MIXED, PROFILED) == pytest.approx(hooks.constant_s(PROFILED) + margins)


def test_profiled_counts_each_token_of_a_decode_block() -> None:
    shape = step_shape(decodes=[(8, 100), (8, 300)])
    assert step_seconds(shape, PROFILED) == pytest.approx(0.01 + 8 * (5e-8 * 400 + 2 * 2e-5))
    assert hooks.decode_s(8, 100, PROFILED) == pytest.approx(8 * (5e-8 * 100 + 2e-5))


def test_roofline_bound_by_memory() -> None:
    # flops 2·1 + 4·20 = 82 -> 0.82 s; bytes 50 + 3·(20 + 1) = 113 -> 11.3 s
    assert step_seconds(step_shape(decodes=[(1, 20)]), ROOFLINE) == pytest.approx(0.5 + 0.25 + 11.3)
    assert hooks.decode_s(1, 20, ROOFLINE) == pytest.approx(6.3 + 0.25)
    assert hooks.constant_s(ROOFLINE) == pytest.approx(0.5 + 5.0)


def test_roofline_bound_by_compute() -> None:
    # flops 2·40 + 4·(40·30 + 40²/2) = 8,080 -> 80.8 s; bytes 50 + 3·(30 + 40) = 260 -> 26 s
    assert step_seconds(step_shape([(40, 30)]), ROOFLINE) == pytest.approx(0.5 + 80.8)
    assert hooks.chunk_s(40, 30, ROOFLINE) == pytest.approx(80.8)


def test_roofline_decode_block_reads_its_kv_once() -> None:
    # flops 2·4 + 4·4·20 = 328 -> 3.28 s; bytes 50 + 3·(20 + 4) = 122 -> 12.2 s
    assert step_seconds(step_shape(decodes=[(4, 20)]), ROOFLINE) == pytest.approx(0.5 + 0.25 + 12.2)


@pytest.mark.parametrize("cost", ALL, ids=lambda cost: type(cost).__name__)
def test_nothing_costs_nothing(cost: Any) -> None:
    assert hooks.chunk_s(0, 1000, cost) == 0.0
    assert hooks.decode_s(0, 1000, cost) == 0.0


@pytest.mark.parametrize("cost", ALL, ids=lambda cost: type(cost).__name__)
@pytest.mark.parametrize("shape", [MIXED, step_shape([(7, 3)]), step_shape(decodes=[(8, 90), (3, 40)]), step_shape()])
def test_compiled_equals_python(shape: StepShape, cost: Any) -> None:
    compiled = evaluate(shape, 31, 77, cost)
    assert compiled == pytest.approx(evaluate.py_func(shape, 31, 77, cost), rel=1e-14)


REQUESTS = st.lists(st.tuples(st.integers(1, 4096), st.integers(0, 32_768)), max_size=6)


@pytest.mark.parametrize("cost", ALL, ids=lambda cost: type(cost).__name__)
@given(prefills=REQUESTS, decodes=st.lists(st.integers(0, 32_768), max_size=6), chunk=st.integers(1, 2048))
@settings(max_examples=50, deadline=None)
def test_more_work_never_takes_less_time(
    cost: Any, prefills: list[tuple[int, int]], decodes: list[int], chunk: int
) -> None:
    outputs = [(1, kv) for kv in decodes]
    before = step_seconds(step_shape(prefills, outputs), cost)
    assert before >= hooks.constant_s(cost) * (1 - 1e-12)
    assert step_seconds(step_shape([*prefills, (chunk, 0)], outputs), cost) >= before
    assert step_seconds(step_shape(prefills, [*outputs, (1, chunk)]), cost) >= before
    longer = [(q + 1, kv + 1) for q, kv in prefills]
    assert step_seconds(step_shape(longer, outputs), cost) >= before
    assert hooks.chunk_s(chunk + 1, 5, cost) > hooks.chunk_s(chunk, 5, cost)


def test_runs_without_the_compiler() -> None:
    code = """
from tailrace import _jit, hooks
from tailrace.latency import PRESETS, step_seconds, step_shape
@_jit.entry
def run(shape, cost):
    return step_seconds(shape, cost) + hooks.chunk_s(10, 5, cost)
assert not _jit.ENABLED
print(all(run(step_shape([(100, 0)], [(1, 50)]), p.cost) > 0 for p in PRESETS.values()), len(PRESETS))
"""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"True {len(PRESETS)}"


def test_import_is_light() -> None:
    code = (
        "import sys, tailrace.latency; print([m for m in ('scipy.optimize', 'pyarrow', 'typer') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_only_the_door_imports_numba() -> None:
    import tailrace.latency

    folder = Path(tailrace.latency.__file__).parent
    assert [file.name for file in folder.glob("*.py") if "import numba" in file.read_text("utf-8")] == []


def test_the_piecewise_model_counts_sequences_if_told_to() -> None:
    cost = PIECEWISE._replace(per_seq_s=1e-4)
    assert step_seconds(MIXED, cost) == pytest.approx(step_seconds(MIXED, PIECEWISE) + 5e-4)
    assert hooks.decode_s(1, 50, cost) == pytest.approx(2e-5 + 1e-4)
    assert hooks.chunk_s(0, 50, cost) == 0.0
