"""Requests to change a running load: made by any thread, applied by the sending thread."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from streamquake.harness.experiment.workload import WorkloadFinished

ANSWER_S = 10
"""The sending thread polls the requests at least every few hundredths of a second."""


@dataclass(frozen=True, kw_only=True)
class ChangeRequest:
    """A disturbance to begin, or with no parameters to end."""

    disturbance: str
    parameters: Mapping[str, Any] | None
    answer: Future[int] = field(default_factory=Future)
    """The first record that it affects."""


class ChangeRequests:
    """The queue of requests; closed when there is nothing left to send."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[ChangeRequest] = []
        self._end: int | None = None

    @property
    def any(self) -> bool:
        return bool(self._waiting)

    @property
    def over(self) -> bool:
        return self._end is not None

    def give(self, disturbance: str, parameters: Mapping[str, Any] | None) -> int:
        """Wait until the request is applied; returns the first record that it affects.

        When the load has finished, ending a disturbance returns at once, and beginning one raises
        WorkloadFinished. Raises TimeoutError when the sending thread does not take the request.
        """
        order = ChangeRequest(disturbance=disturbance, parameters=parameters)
        with self._lock:
            self._waiting.append(order)
            if self._end is not None:
                self._reject(self._end)
        return order.answer.result(ANSWER_S)

    def waiting(self) -> list[ChangeRequest]:
        """Take all requests."""
        if not self._waiting:
            return []
        with self._lock:
            taken, self._waiting = self._waiting, []
        return taken

    def close(self, end: int) -> None:
        """No record from `end` on is sent; may be called again."""
        with self._lock:
            self._end = end if self._end is None else self._end
            self._reject(self._end)

    def _reject(self, end: int) -> None:
        for order in self._waiting:
            if order.parameters is None:
                order.answer.set_result(end)
            else:
                order.answer.set_exception(
                    WorkloadFinished(
                        f"the workload had sent all of its records (up to {end:,}), so "
                        f"{order.disturbance} affected no record; give it more `records`, or "
                        "inject earlier"
                    )
                )
        self._waiting = []
