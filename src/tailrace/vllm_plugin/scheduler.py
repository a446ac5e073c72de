"""The scheduler class vLLM loads: its own, with a tailrace policy's order.

The one file tied to vLLM's version. Four methods are overridden; KV, prefix cache, LoRA,
structured output, speculative decoding, connectors and aborts stay vLLM's.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Mapping
from typing import Any

from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.request_queue import SchedulingPolicy
from vllm.v1.core.sched.scheduler import Scheduler

import vllm

from .. import hooks, latency, params
from ..errors import UserError, nearest
from ..registry import POLICIES
from ..table import LONG, SHORT
from . import TESTED
from .honour import settle
from .host import PolicyHost
from .queue import RankedQueue

__all__ = ["make_scheduler", "options"]

log = logging.getLogger("vllm.tailrace")

NO_COST = "piecewise:constant_s=0,per_token_s=0"
KNOWN = ("policy", "params", "latency", "any_vllm")


def options(config: Any) -> dict[str, Any]:
    """The ``tailrace`` part of vLLM's ``--additional-config``. Raises UserError for a stray key."""
    extra = getattr(config, "additional_config", None) or {}
    found = extra.get("tailrace", {}) if isinstance(extra, Mapping) else {}
    if not isinstance(found, Mapping):
        raise UserError('--additional-config: "tailrace" must hold settings, e.g. {"policy": "qba"}')
    for name in found:
        if name not in KNOWN:
            raise UserError(f"--additional-config: tailrace has no setting {name!r}{nearest(str(name), KNOWN)}")
    if "policy" not in found:
        raise UserError('--additional-config: tailrace needs a policy: {"tailrace": {"policy": "qba"}}')
    if vllm.__version__ not in TESTED and not found.get("any_vllm"):
        tested = ", ".join(TESTED)
        raise UserError(
            f'vLLM {vllm.__version__} is untested with tailrace (tested: {tested}); "any_vllm": true goes on'
        )
    return dict(found)


class _Tailrace:
    """Overrides over vLLM's scheduler; `make_scheduler` puts them before the right base class."""

    clock = staticmethod(time.time)
    """Requests carry wall-clock arrivals, so this is the one clock."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        found = options(self.vllm_config)  # type: ignore[attr-defined]
        cls = POLICIES.get(str(found["policy"]))
        values = params.build(cls.Params, found.get("params", {}), f"policy {cls.name}")
        honoured, refused = settle(cls, values)
        cost = latency.build(str(found.get("latency", NO_COST))).cost
        self.host = PolicyHost(cls, values, cost)
        self.host.warm()
        self._whole = honoured.get("order_scope") == "all"
        self._by_hook = honoured.get("victim") == "hook"
        # Under vLLM's priority policy the victim is the running request of largest priority,
        # which is how a policy's own choice reaches it; the waiting keep our order.
        self.policy = SchedulingPolicy.PRIORITY if self._by_hook else SchedulingPolicy.FCFS
        self.waiting = RankedQueue()
        self._under_way: list[tuple[Any, list[tuple[str, int, bool]], float]] = []
        log.warning(
            "tailrace: policy %s %s; honoured %s; refused %s",
            cls.name, params.show(values), honoured or "none", refused or "none",
        )  # fmt: skip

    def add_request(self, request: Any) -> None:
        if request.request_id not in self.requests:  # type: ignore[attr-defined]
            self.host.arrive(request.request_id, _columns(request), self.clock())
        super().add_request(request)  # type: ignore[misc]

    def note_preempted(self, name: str) -> None:
        """A running request was preempted between steps, by somebody else's hand."""
        self.host.commit([name], [], [], self.clock())

    def schedule(self, *args: Any, **kwargs: Any) -> Any:
        now = self.clock()
        running = {r.request_id: r for r in self.running}  # type: ignore[has-type]
        names = [r.request_id for r in self.waiting]
        waiting, order = self.host.rank(names, list(running), self._whole, now)
        self.waiting.reorder(waiting)
        if self._whole:
            self.running = [running[name] for name in order]
        if self._by_hook:
            for place, name in enumerate(self.host.victim_order(list(running), now)):
                running[name].priority = -place
        output = super().schedule(*args, **kwargs)  # type: ignore[misc]
        self._note(output, now)
        return output

    def _note(self, output: Any, now: float) -> None:
        """Tell the policy what was scheduled."""
        starts = {r.req_id for r in output.scheduled_new_reqs} | set(output.scheduled_cached_reqs.resumed_req_ids)
        admitted = [name for name in output.num_scheduled_tokens if name in starts]
        items = [
            (name, count, not self.requests[name].is_prefill_chunk)  # type: ignore[attr-defined]
            for name, count in output.num_scheduled_tokens.items()
        ]
        ends = [(name, count, last and self._in_prefill(name, admitted)) for name, count, last in items]
        self.host.commit(output.preempted_req_ids or (), admitted, ends, now)
        self._under_way.append((output, ends, now))

    def _in_prefill(self, name: str, admitted: list[str]) -> bool:
        return name in admitted or self.host.in_prefill(name)

    def update_from_output(self, scheduler_output: Any, model_runner_output: Any) -> Any:
        before = {name: self.requests[name] for name in scheduler_output.num_scheduled_tokens if name in self.requests}  # type: ignore[attr-defined]
        made = {name: request.num_output_tokens for name, request in before.items()}
        result = super().update_from_output(scheduler_output, model_runner_output)  # type: ignore[misc]
        items, began = self._taken(scheduler_output)
        now = self.clock()
        done = [
            (name, count, last, before[name].num_output_tokens - made[name], name not in self.requests)  # type: ignore[attr-defined]
            for name, count, last in items
            if name in before
        ]
        self.host.complete(done, now - began, now)
        return result

    def _taken(self, output: Any) -> tuple[list[tuple[str, int, bool]], float]:
        """What was noted of a step; notes of older steps, which never came back, go."""
        while self._under_way:
            noted, items, began = self._under_way.pop(0)
            if noted is output:
                return items, began
        return [], self.clock()

    def finish_requests(self, request_ids: Any, finished_status: Any) -> Any:
        ended = super().finish_requests(request_ids, finished_status)  # type: ignore[misc]
        for request in ended:
            self.host.remove(request.request_id, hooks.ABORTED, self.clock())
        return ended


def _columns(request: Any) -> dict[str, float]:
    """What the table may know of a vLLM request."""
    sampling = getattr(request, "sampling_params", None)
    extra = (getattr(sampling, "extra_args", None) or {}) if sampling is not None else {}
    longest = getattr(request, "max_tokens", 0) or 0
    return {
        "arrival_s": request.arrival_time,
        "prompt_tokens": request.num_prompt_tokens,
        "predicted_output_tokens": int(extra.get("tailrace_predicted_output_tokens", longest)),
        "predicted_class": LONG if extra.get("tailrace_predicted_class", "short") == "long" else SHORT,
        "priority": request.priority,
        "weight": 1.0,
        "ttft_slo_s": float("inf"),
        "tpot_slo_s": float("inf"),
    }


@functools.cache
def _class(base: type) -> type:
    return type(f"Tailrace{base.__name__}", (_Tailrace, base), {})


def make_scheduler(*args: Any, **kwargs: Any) -> Any:
    """What ``--scheduler-cls tailrace.vllm_plugin.TailraceScheduler`` calls."""
    config = kwargs.get("vllm_config") or args[0]
    base = AsyncScheduler if config.scheduler_config.async_scheduling else Scheduler
    return _class(base)(*args, **kwargs)
