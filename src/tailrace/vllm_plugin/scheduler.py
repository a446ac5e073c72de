"""The scheduler class vLLM loads: its own, with a tailrace policy's order.

Tied to vLLM's version, as `facts` is. Six methods are overridden; KV, prefix cache, LoRA,
structured output, speculative decoding, connectors and aborts stay vLLM's.
"""

from __future__ import annotations

import functools
import logging
import time
from collections import deque
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.request_queue import SchedulingPolicy
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.request import RequestStatus

import vllm

from .. import hooks, latency, params
from ..errors import UserError, nearest
from ..registry import POLICIES
from ..rules import EngineRules, merge
from . import TESTED
from .asks import Classes, columns
from .facts import Cache, engine_rules, limits
from .honour import host_memory, settle
from .host import MOST_TOKENS, Decision, PolicyHost, Step
from .learning import FIRST, StepTimes
from .queue import RankedQueue

__all__ = ["make_scheduler", "options"]

log = logging.getLogger("vllm.tailrace")

NO_COST = "piecewise:constant_s=0,per_token_s=0"
LEARNED = "learned"
KNOWN = ("policy", "params", "latency", "classes", "min_service_tokens", "any_vllm")


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
    if not isinstance(found.get("params", {}), Mapping):
        raise UserError(f'--additional-config: tailrace.params={found["params"]!r} must be an object, e.g. {{"k": 5}}')
    return dict(found)


def _learned(cls: type[hooks.Policy]) -> StepTimes:
    """What learns step times. Raises UserError for a policy whose keys would not follow."""
    if cls.keys != hooks.EVERY_STEP:
        raise UserError(
            f"--additional-config: tailrace.latency={LEARNED!r} is for policies that rank anew in every step; "
            f"{cls.name} keeps its keys: give a latency model"
        )
    return StepTimes()


class _Tailrace:
    """Overrides over vLLM's scheduler; `make_scheduler` puts them before the right base class."""

    clock = staticmethod(time.time)
    """Requests carry wall-clock arrivals, so this is the one clock."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        found = options(self.vllm_config)  # type: ignore[attr-defined]
        cls = POLICIES.get(str(found["policy"]))
        values = params.build(cls.Params, found.get("params", {}), f"policy {cls.name}")
        memory = host_memory(self.vllm_config.kv_transfer_config)  # type: ignore[attr-defined]
        honoured, refused = settle(cls, values, memory)
        if hasattr(cls, "step_limits"):
            refused["step_limits"] = "a limit of sequences"
        timing = str(found.get("latency", LEARNED if hasattr(cls, "step_limits") else NO_COST))
        times = _learned(cls) if timing == LEARNED else None
        cost = times.cost if times else latency.build(timing).cost
        # Whatever keeps a preempted request's KV, to vLLM it starts anew, and is found computed.
        rules = merge(engine_rules(self), {**honoured, "evict": "recompute"}, cls.name)
        connected = self.connector is not None  # type: ignore[attr-defined]
        cached = connected or getattr(self.cache_config, "enable_prefix_caching", False)  # type: ignore[attr-defined]
        self.host = PolicyHost(
            cls, values, cost, limits(self), rules, cache=Cache(self) if cached else None, times=times
        )
        self.host.warm()
        self._classes = Classes(found.get("classes"))
        self._whole = rules.order_scope == "all"
        self._by_hook = rules.victim == "hook"
        self._puts_aside = hasattr(self, "skipped_waiting")
        self._min_service_tokens = service_tokens(found)
        self.displaced, self.in_vain = 0, 0
        """Requests preempted for a waiting one, and how many of these for one that did not start."""
        # Under vLLM's priority policy the victim is the running request of largest priority,
        # which is how a policy's own choice reaches it; the waiting keep our order.
        self.policy = SchedulingPolicy.PRIORITY if self._by_hook else SchedulingPolicy.FCFS
        self.waiting = RankedQueue()
        if not self._puts_aside:
            self.kv_holding_waiting = RankedQueue()
        self._coming: list[Any] = []
        """Requests whose KV was being loaded when the step began."""
        self._most = limits(self).max_seqs
        if connected and rules.may_preempt_at_cap:
            self.waiting.bound(self._seats_left)
        self._under_way: deque[tuple[Any, Step]] = deque()
        log.warning(
            "tailrace: policy %s %s; honoured %s; refused %s",
            cls.name, params.show(values), honoured or "none", refused or "none",
        )  # fmt: skip
        if times:
            log.warning(
                "tailrace: step times are learned; until %d steps are measured no seconds bind",
                FIRST,
            )
        if connected or rules.may_preempt_at_cap or rules.may_preempt_for_kv or "evict" in refused:
            log.warning("tailrace: preempted requests are %s", memory)

    def add_request(self, request: Any) -> None:
        if request.request_id not in self.requests:  # type: ignore[attr-defined]
            request.tailrace_priority = request.priority
            self._arrive(request)
        super().add_request(request)  # type: ignore[misc]

    def _arrive(self, request: Any) -> None:
        """Tell the policy of a request: its first input, or a session's next."""
        extra = getattr(getattr(request, "sampling_params", None), "extra_args", None) or {}
        longest = min(request.max_tokens or 1, MOST_TOKENS)
        known = {
            "arrival_s": request.arrival_time,
            "prompt_tokens": request.num_prompt_tokens,
            "priority": request.tailrace_priority,
        }
        self.host.arrive(request, {**known, **columns(extra, longest, self._classes)}, longest, self.clock())

    def _update_request_as_session(self, session: Any, update: Any) -> None:
        super()._update_request_as_session(session, update)  # type: ignore[misc]
        self.host.remove(session.request_id, hooks.FINISHED, self.clock())
        self._arrive(session)

    def reset_prefix_cache(self, *args: Any, **kwargs: Any) -> Any:
        running = list(self.running)
        done = super().reset_prefix_cache(*args, **kwargs)  # type: ignore[misc]
        lost = [request.request_id for request in running if request.status == RequestStatus.PREEMPTED]
        if lost:
            self.host.note({}, {}, lost, self.clock())
        return done

    def schedule(self, *args: Any, **kwargs: Any) -> Any:
        now = self.clock()
        if self._puts_aside:
            self._gather()
        free = self.kv_cache_manager.block_pool.get_num_free_blocks()  # type: ignore[attr-defined]
        resting = self.num_waiting_for_streaming_input  # type: ignore[attr-defined]
        decision = self.host.decide(self.running, free, now, resting)  # type: ignore[has-type]
        if decision.running is not None:
            self.running = decision.running
        gone = self._displace(decision, *args, **kwargs) if decision.displaced else ()
        if self._by_hook:
            for place, request in enumerate(self.host.victim_order(self.running, now)):
                request.priority = -place
        self.waiting.order(decision.front, lambda: self.host.more(now))
        self._coming = self._load(decision)
        if decision.most_tokens is None:
            output = super().schedule(*args, **kwargs)  # type: ignore[misc]
        else:
            output = self._within(decision.most_tokens, *args, **kwargs)
        if gone:
            self._check(gone, output)
        self._note(output, decision)
        return output

    def _gather(self) -> None:
        """vLLM 0.30 keeps requests that it put aside in a queue of their own and takes them
        first; later ones put them back into the waiting. Here all of them wait in one order."""
        aside = [
            request
            for request in self.skipped_waiting  # type: ignore[attr-defined]
            if not request.num_computed_tokens and request.status != RequestStatus.WAITING_FOR_REMOTE_KVS
        ]
        if aside:
            self.skipped_waiting.remove_requests(aside)  # type: ignore[attr-defined]
            self.waiting.prepend_requests(aside)

    @property
    def _holding(self) -> Any:
        """Requests that wait and hold KV: a connector loads it, or has."""
        return self.skipped_waiting if self._puts_aside else self.kv_holding_waiting  # type: ignore[attr-defined]

    def _load(self, decision: Decision) -> list[Any]:
        """Those of them whose KV is on the way; vLLM takes all before others that wait, by rank."""
        if not self._holding:
            return []
        if not self._puts_aside:
            self.kv_holding_waiting.order(decision.front)
        return [request for request in self._holding if request.status == LOADING]

    def _seats_left(self) -> int:
        """Places for waiting requests, less one for each whose KV a connector loads: it was chosen to
        run next, and if another took its place meanwhile that one would be displaced for it."""
        coming = sum(request.status == LOADING for request in (*self._coming, *self.waiting.taken))
        return int(self._most - len(self.running) - self.num_waiting_for_streaming_input - coming)  # type: ignore[attr-defined]

    def _within(self, most_tokens: int, *args: Any, **kwargs: Any) -> Any:
        """vLLM's own step, of at most ``most_tokens`` tokens."""
        before = self.max_num_scheduled_tokens  # type: ignore[has-type]
        self.max_num_scheduled_tokens = min(before, most_tokens)
        try:
            return super().schedule(*args, **kwargs)  # type: ignore[misc]
        finally:
            self.max_num_scheduled_tokens = before

    # ── displacing a running request for a waiting one ───────────────────────────────

    def _displace(self, decision: Decision, throttle_prefills: bool = False) -> list[tuple[Any, Any]]:
        """Preempt before the step, as only then the same step may admit; barred from it.

        Not where vLLM admits nobody, or the one who gains is not ready to start (its grammar is
        compiled, its KV is on the way). Returns (displaced, gaining) pairs.
        """
        unpaused = self._pause_state.name == "UNPAUSED"  # type: ignore[attr-defined]
        if throttle_prefills or not unpaused:
            return []
        pairs = [
            (loser, winner)
            for loser, winner in zip(decision.displaced, decision.gaining, strict=True)
            if self._ready(winner)
        ]
        gone = {loser.request_id for loser, _ in pairs}
        self.running = [request for request in self.running if request.request_id not in gone]
        for loser, _ in pairs:
            self._preempt_request(  # type: ignore[attr-defined]
                loser, time.monotonic(), drop_stale_output=self.requires_kv_delivery  # type: ignore[attr-defined]
            )  # fmt: skip
        self.waiting.bar(gone)
        self.displaced += len(gone)
        return pairs

    def _ready(self, request: Any) -> bool:
        if request.status == LOADING:
            return request.request_id in self.finished_recving_kv_req_ids  # type: ignore[attr-defined]
        return request.status in READY and (request in self.waiting or request in self._holding)

    def _check(self, gone: list[tuple[Any, Any]], output: Any) -> None:
        """Count who was displaced in vain, and leave them alone for a while. Not in vain if KV is
        loaded for the one who gains."""
        self.waiting.bar(())
        for loser, winner in gone:
            if winner.request_id not in output.num_scheduled_tokens and winner.status != LOADING:
                self.in_vain += 1
                if self.in_vain & (self.in_vain - 1) == 0:  # 1, 2, 4, …
                    log.warning("tailrace: %d of %d displaced in vain", self.in_vain, self.displaced)
                self.host.protect(loser.request_id, self._min_service_tokens)

    # ── what happened ────────────────────────────────────────────────────────────────

    def _note(self, output: Any, decision: Decision) -> None:
        """Tell the policy what was scheduled; the started in the order of their start."""
        cached = output.scheduled_cached_reqs
        new = output.scheduled_new_reqs
        admitted = {request.req_id: request.num_computed_tokens for request in new} if new else {}
        if cached.resumed_req_ids:
            found = {**dict(zip(cached.req_ids, cached.num_computed_tokens, strict=True)), **admitted}
            started = admitted.keys() | cached.resumed_req_ids
            admitted = {name: found[name] for name in output.num_scheduled_tokens if name in started}
        step = self.host.commit(decision, output.num_scheduled_tokens, admitted, output.preempted_req_ids or ())
        self._under_way.append((output, step))

    def update_from_output(self, scheduler_output: Any, model_runner_output: Any) -> Any:
        result = super().update_from_output(scheduler_output, model_runner_output)  # type: ignore[misc]
        step = self._taken(scheduler_output)
        if step is None:
            return result
        now, requests = self.clock(), self.host.requests_of(step)
        outputs = list(map(len, map(OUTPUT, requests)))
        finished = list(map(OVER.__contains__, map(STATUS, requests)))
        self.host.complete(step, outputs, list(map(COMPUTED, requests)), finished, now)
        return result

    def _taken(self, output: Any) -> Step | None:
        """What was noted of a step; notes of older steps, which never came back, go."""
        while self._under_way:
            noted, step = self._under_way.popleft()
            if noted is output:
                return step
        return None

    def finish_requests(self, request_ids: Any, finished_status: Any) -> Any:
        ended = super().finish_requests(request_ids, finished_status)  # type: ignore[misc]
        for request in ended:
            self.host.remove(request.request_id, hooks.ABORTED, self.clock())
        return ended


READY = (RequestStatus.WAITING, RequestStatus.PREEMPTED)
"""States from which vLLM starts a request at once."""
LOADING = RequestStatus.WAITING_FOR_REMOTE_KVS
"""It holds blocks that a connector fills; then it starts."""
OVER = {status for status in RequestStatus if RequestStatus.is_finished(status)}
OVER.add(RequestStatus.WAITING_FOR_STREAMING_REQ)
"""Finished, or a session between two inputs: each of them is a request of its own to a policy."""
OUTPUT, COMPUTED, STATUS = map(attrgetter, ("_output_token_ids", "num_computed_tokens", "status"))
"""Read of every request in every step; vLLM's own properties would be a Python call each."""


def service_tokens(found: Mapping[str, Any]) -> int:
    """The setting ``min_service_tokens``. Raises UserError."""
    value = found.get("min_service_tokens", EngineRules.min_service_tokens)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= params.MOST:
        raise UserError(f"--additional-config: tailrace.min_service_tokens={value!r} must be a whole number, 0 or more")
    return value


@functools.cache
def _class(base: type) -> type:
    return type(f"Tailrace{base.__name__}", (_Tailrace, base), {})


def make_scheduler(*args: Any, **kwargs: Any) -> Any:
    """What ``--scheduler-cls tailrace.vllm_plugin.TailraceScheduler`` calls."""
    config = kwargs.get("vllm_config") or args[0]
    base = AsyncScheduler if config.scheduler_config.async_scheduling else Scheduler
    return _class(base)(*args, **kwargs)
