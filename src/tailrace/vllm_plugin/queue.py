"""vLLM's RequestQueue interface over a policy's order. Imports neither vllm nor torch.

The order is given a step: the first few at once, the rest from a callback when vLLM looks
further. Within the step ``peek`` and ``pop`` agree. A request that is put back or preempted
meanwhile comes after those still to be looked at; the next step's order finds it. A barred
request waits unseen: it was preempted for another and must not take its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = ["RankedQueue"]


def _nobody() -> list[Any]:
    return []


def _room() -> int:
    return 1


class RankedQueue:
    """Waiting requests by request_id; without an order, in the order of coming."""

    def __init__(self) -> None:
        self._requests: dict[str, Any] = {}
        self._front: list[Any] = []
        self._more: Callable[[], list[Any]] = _nobody
        self._barred: set[str] = set()
        self._left: Callable[[], int] = _room
        self.taken: list[Any] = []
        """Requests popped since the last call of `order`."""

    def bound(self, left: Callable[[], int]) -> None:
        """Seem empty whenever ``left`` says that no more may be taken."""
        self._left = left

    def order(self, front: Iterable[Any], more: Callable[[], list[Any]] = _nobody) -> None:
        """Set the order of this step: ``front``, then what ``more`` yields until it is empty."""
        self._front = list(front)[::-1]
        self._more = more
        self.taken.clear()

    def bar(self, names: Iterable[str]) -> None:
        """Hide these until the next call of `bar`."""
        self._barred = set(names)

    def add_request(self, request: Any) -> None:
        """Put a request at the end."""
        self._requests[request.request_id] = request

    def pop_request(self) -> Any:
        """Take the first request. Raises IndexError when none waits."""
        request = self.peek_request()
        del self._requests[request.request_id]
        self.taken.append(request)
        return request

    def peek_request(self) -> Any:
        """The first request. Raises IndexError when none waits."""
        while True:
            while self._front:
                request = self._front[-1]
                name = request.request_id
                if self._requests.get(name) is request and name not in self._barred:
                    return request
                self._front.pop()
            self._front = self._more()[::-1]
            if not self._front:
                break
        for name, request in self._requests.items():
            if name not in self._barred:
                return request
        raise IndexError("no request waits")

    def prepend_request(self, request: Any) -> None:
        """Put a request back."""
        self._requests[request.request_id] = request

    def prepend_requests(self, requests: Iterable[Any]) -> None:
        """Put requests back."""
        for request in requests:
            self._requests[request.request_id] = request

    def remove_request(self, request: Any) -> None:
        """Take a request out wherever it is. Raises ValueError if it does not wait."""
        if self._requests.pop(request.request_id, None) is None:
            raise ValueError(f"request {request.request_id} does not wait")

    def remove_requests(self, requests: Iterable[Any]) -> None:
        """Take those of ``requests`` out that wait."""
        for request in requests:
            self._requests.pop(request.request_id, None)

    def __bool__(self) -> bool:
        if self._left() <= 0:
            return False
        if not self._barred:
            return bool(self._requests)
        return len(self._requests) > sum(name in self._requests for name in self._barred)

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._requests.values()))

    def __contains__(self, request: Any) -> bool:
        return self._requests.get(getattr(request, "request_id", "")) is request
