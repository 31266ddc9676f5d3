"""Requests to change a running load: any thread submits them, the sending thread applies them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from streamquake.harness.experiment.workload import WorkloadFinished

REQUEST_TIMEOUT_S = 10
"""Far above the poll interval of the sending thread, a few hundredths of a second."""


@dataclass(frozen=True, kw_only=True)
class ChangeRequest:
    """A request to begin a disturbance, or without parameters to end it."""

    disturbance: str
    parameters: Mapping[str, Any] | None
    first_record: Future[int] = field(default_factory=Future)
    """Resolves to the first record that the request affects."""


class ChangeRequests:
    """The queue of requests; closed when all records are sent."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[ChangeRequest] = []
        self._end: int | None = None

    @property
    def has_any(self) -> bool:
        return bool(self._waiting)

    @property
    def is_closed(self) -> bool:
        return self._end is not None

    def submit(self, disturbance: str, parameters: Mapping[str, Any] | None) -> int:
        """Submit a request and wait until it is applied. Returns the first record that it affects.

        When the load has finished, ending a disturbance returns at once, and beginning one raises
        WorkloadFinished. Raises TimeoutError if the sending thread does not apply the request in
        time.
        """
        request = ChangeRequest(disturbance=disturbance, parameters=parameters)
        with self._lock:
            self._waiting.append(request)
            if self._end is not None:
                self._reject(self._end)
        return request.first_record.result(REQUEST_TIMEOUT_S)

    def take_all(self) -> list[ChangeRequest]:
        """Remove and return all queued requests."""
        if not self._waiting:
            return []
        with self._lock:
            taken, self._waiting = self._waiting, []
        return taken

    def close(self, end: int) -> None:
        """Reject all further requests, because no record from `end` on is sent; may run twice."""
        with self._lock:
            self._end = end if self._end is None else self._end
            self._reject(self._end)

    def _reject(self, end: int) -> None:
        for request in self._waiting:
            if request.parameters is None:
                request.first_record.set_result(end)
            else:
                request.first_record.set_exception(
                    WorkloadFinished(
                        f"the workload had sent all of its records (up to {end:,}), so "
                        f"{request.disturbance} affected no record; give it more `records`, or "
                        "inject earlier"
                    )
                )
        self._waiting = []
