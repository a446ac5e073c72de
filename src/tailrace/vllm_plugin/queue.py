"""vLLM's RequestQueue interface over a policy's order. Imports neither vllm nor torch.

The order is set once a step, before vLLM schedules; within the step, ``peek`` and ``pop``
agree and take from its front. A request that is preempted or put back meanwhile goes to
the front, where the next step's order finds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["RankedQueue"]


class RankedQueue:
    """Waiting requests by request_id, in the order last given."""

    def __init__(self) -> None:
        self._requests: dict[str, Any] = {}

    def reorder(self, names: Iterable[str]) -> None:
        """Set the order; ``names`` must be those that wait, each once."""
        ordered = {name: self._requests[name] for name in names}
        if len(ordered) != len(self._requests):
            raise ValueError("the new order does not name every waiting request")
        self._requests = ordered

    def add_request(self, request: Any) -> None:
        """Put a request at the end."""
        self._requests[request.request_id] = request

    def pop_request(self) -> Any:
        """Take the first request. Raises IndexError when none waits."""
        request = self.peek_request()
        del self._requests[request.request_id]
        return request

    def peek_request(self) -> Any:
        """The first request. Raises IndexError when none waits."""
        for request in self._requests.values():
            return request
        raise IndexError("no request waits")

    def prepend_request(self, request: Any) -> None:
        """Put a request at the front."""
        self._requests = {request.request_id: request, **self._requests}

    def prepend_requests(self, requests: Iterable[Any]) -> None:
        """Put requests at the front, in their own order."""
        self._requests = {**{r.request_id: r for r in requests}, **self._requests}

    def remove_request(self, request: Any) -> None:
        """Take a request out wherever it is. Raises ValueError if it does not wait."""
        if self._requests.pop(request.request_id, None) is None:
            raise ValueError(f"request {request.request_id} does not wait")

    def remove_requests(self, requests: Iterable[Any]) -> None:
        """Take those of ``requests`` out that wait."""
        for request in requests:
            self._requests.pop(request.request_id, None)

    def __bool__(self) -> bool:
        return bool(self._requests)

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._requests.values()))

    def __contains__(self, request: Any) -> bool:
        return getattr(request, "request_id", None) in self._requests
