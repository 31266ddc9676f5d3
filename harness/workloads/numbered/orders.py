"""Orders to a load that runs: given by any thread, taken by the one that sends."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from streamquake.harness.experiment.workload import WorkloadFinished

ANSWER_S = 10
"""The thread that sends looks for orders at least every few hundredths of a second."""


@dataclass(frozen=True, kw_only=True)
class ChangeRequest:
    """A disturbance to begin, or with no parameters to end."""

    disturbance: str
    parameters: Mapping[str, Any] | None
    answer: Future[int] = field(default_factory=Future)
    """The first record that it concerns."""


class ChangeRequests:
    """The line of orders; closed when there is nothing left to send."""

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
        """Wait until it is taken; returns the first record it concerns.

        Once the load is over, a disturbance ends without the producer, and beginning one raises
        WorkloadOver. Raises TimeoutError if the producer does not take it.
        """
        order = ChangeRequest(disturbance=disturbance, parameters=parameters)
        with self._lock:
            self._waiting.append(order)
            if self._end is not None:
                self._reject(self._end)
        return order.answer.result(ANSWER_S)

    def waiting(self) -> list[ChangeRequest]:
        """Take all orders."""
        if not self._waiting:
            return []
        with self._lock:
            taken, self._waiting = self._waiting, []
        return taken

    def close(self, end: int) -> None:
        """Nothing is sent from record `end` on; may be called again."""
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
                        f"{order.disturbance} changed no record; give it more `records`, or "
                        "inject the fault earlier"
                    )
                )
        self._waiting = []
