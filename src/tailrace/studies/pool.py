"""The same work on several processes, one outcome after the other."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from ..errors import UserError

__all__ = ["each"]

OUT_OF_BOUNDS: Final = "does a hook read outside its arrays? NUMBA_DISABLE_JIT=1 tailrace simulate … shows where"

Task = TypeVar("Task")
Made = TypeVar("Made")


def each(
    work: Callable[[Task], Made],
    tasks: Sequence[Task],
    workers: int = 0,
    done: Callable[[int, Made], None] | None = None,
) -> list[Made]:
    """``work`` of each task on ``workers`` processes (0 = one a core), in the tasks' order.

    ``done`` is called here, with a task's index and what it made, as it ends. An interrupt
    ends the processes at once.
    """
    count = min(workers or os.cpu_count() or 1, len(tasks))
    made: dict[int, Made] = {}
    if count <= 1:
        for index, task in enumerate(tasks):
            _note(made, index, work(task), done)
        return [made[index] for index in range(len(tasks))]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(count, context, _leave_ctrl_c_to_the_parent) as pool:
        futures = {pool.submit(work, task): index for index, task in enumerate(tasks)}
        try:
            for future in concurrent.futures.as_completed(futures):
                _note(made, futures[future], future.result(), done)
        except concurrent.futures.process.BrokenProcessPool:
            raise UserError(f"a worker process died; {OUT_OF_BOUNDS}") from None
        except BaseException:
            for process in list((getattr(pool, "_processes", None) or {}).values()):
                process.kill()  # compiled code hears nothing gentler
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [made[index] for index in range(len(tasks))]


def _note(made: dict[int, Made], index: int, outcome: Made, done: Callable[[int, Made], None] | None) -> None:
    made[index] = outcome
    if done is not None:
        done(index, outcome)


def _leave_ctrl_c_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
