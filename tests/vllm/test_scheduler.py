"""The plugin in vLLM's real Scheduler, where something happens that no step planned."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed here; run scripts/vllm")

from tailrace.errors import UserError
from tailrace.vllm_plugin.offline import OfflineScheduler, Settings

pytestmark = pytest.mark.plain


def _offline(policy: str, **settings: Any) -> OfflineScheduler:
    return OfflineScheduler(Settings(tailrace={"policy": policy}, **settings))


def _ask(offline: OfflineScheduler, row: int, prompt: int, output: int, **given: Any) -> Any:
    """Add a request; with ``resumable`` it is a session, and asking again is its next input."""
    from vllm.sampling_params import SamplingParams
    from vllm.v1.request import Request

    told = {"tailrace_predicted_output_tokens": given.pop("predicted", output)}
    request = Request(
        request_id=f"{row:09d}",
        prompt_token_ids=[row] * prompt,
        sampling_params=SamplingParams(max_tokens=output, ignore_eos=True, extra_args=told),
        pooling_params=None,
        arrival_time=offline.now,
        **given,
    )
    offline.scheduler.add_request(request)
    return request


def _steps(offline: OfflineScheduler, count: int) -> None:
    for _ in range(count):
        offline.now += 1
        offline.schedule()
        if offline.under_way:
            offline.complete()


def _running(offline: OfflineScheduler) -> list[int]:
    return [int(request.request_id) for request in offline.scheduler.running]


@pytest.mark.parametrize("policy", ["fcfs", "qba", "srpt"])
def test_a_reset_of_the_prefix_cache_costs_nobody_its_place(policy: str) -> None:
    offline = _offline(policy, max_seqs=2)
    for row in range(1, 5):
        offline.now += 1
        _ask(offline, row, 20, 100)
    _steps(offline, 10)
    before = _running(offline)
    offline.scheduler.reset_prefix_cache(reset_running_requests=True)
    _steps(offline, 1)
    assert sorted(_running(offline)) == sorted(before) == [1, 2]
    _steps(offline, 300)
    assert offline.ended == 4


def _idle_session(offline: OfflineScheduler, **given: Any) -> Any:
    from vllm.v1.request import RequestStatus

    session = _ask(offline, 1, 20, 2, resumable=True, **given)
    _steps(offline, 6)
    assert session.status == RequestStatus.WAITING_FOR_STREAMING_REQ
    return session


@pytest.mark.parametrize("predicted", [1, 1000])
def test_an_idle_session_is_in_nobodys_way(predicted: int) -> None:
    """It holds a place at the cap; a short request displaces a long one all the same."""
    offline = _offline("srpt", max_seqs=3)
    _idle_session(offline, predicted=predicted)
    for row in (2, 3):
        _ask(offline, row, 100, 300)
    _steps(offline, 4)
    assert _running(offline) == [2, 3]
    _ask(offline, 9, 100, 5)
    _steps(offline, 6)
    assert "000000009" not in offline.scheduler.requests
    assert (offline.scheduler.displaced, offline.scheduler.in_vain) == (1, 0)


def test_a_sessions_next_input_is_a_request_of_its_own() -> None:
    """Its length is the new one, its priority what the client said, not what chose victims."""
    offline = _offline("vllm_priority")
    for row in range(2, 5):
        _ask(offline, row, 20, 60)
    session = _idle_session(offline, priority=7)
    host = offline.scheduler.host
    assert session.request_id not in host.rows
    _ask(offline, 1, 20, 200, resumable=True, priority=7)
    assert host.records["priority"][session.tailrace_row] == 7
    assert host._rows_state["output_tokens"][session.tailrace_row] == 200
    _steps(offline, 100)
    assert session.num_output_tokens > 90


def test_a_client_may_ask_for_ever() -> None:
    offline = _offline("srpt")
    endless = _ask(offline, 1, 5, 10**19, predicted=1)
    _steps(offline, 3)
    assert endless.num_output_tokens == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"params": {}}, "tailrace needs a policy"),
        ({"policy": "qba", "parms": {}}, "did you mean 'params'"),
        ({"policy": "qba", "params": ["k"]}, "must be an object"),
        ({"policy": "qba", "params": {"k": 10**30}}, "k=1000000000000000000000000000000 is outside"),
        ({"policy": "qab"}, "did you mean 'qba'"),
        ({"policy": "qba", "min_service_tokens": 2**63}, "must be a whole number"),
        ({"policy": "qba", "classes": {"gold": 4}}, "must be an object of weight"),
        ({"policy": "sarathi"}, "engine rules alone"),
        ({"policy": "prefill_first"}, "policy prefill_first is engine rules alone"),
        ({"policy": "srpt", "latency": "learned"}, "srpt keeps its keys: give a latency model"),
    ],
)
def test_mistakes_in_the_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        OfflineScheduler(Settings(tailrace=settings))
