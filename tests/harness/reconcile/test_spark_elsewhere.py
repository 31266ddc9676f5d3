"""A session on another master than this process: what is awaited of it, and what is said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JError

from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.waiting import NotReadyInTime
from streamquake.harness.reconcile import spark_session as module
from streamquake.harness.reconcile.spark_session import SparkMasterError, await_executor


class Session:
    """A session whose context has so many stores of blocks, one answer after the other."""

    def __init__(self, *stores: int) -> None:
        self._stores: Iterator[int] = iter(stores)
        self.sparkContext = self._jsc = self
        self.asked = 0

    def sc(self) -> Session:
        return self

    def getExecutorMemoryStatus(self) -> Session:
        return self

    def size(self) -> int:
        self.asked += 1
        return next(self._stores, 1)


def test_the_first_executor_is_awaited_beside_the_driver() -> None:
    session: Any = Session(1, 1, 3)
    await_executor(session, FakeClock())
    assert session.asked == 3


def test_a_missing_executor_is_reported_within_a_limit() -> None:
    session: Any = Session()
    with pytest.raises(NotReadyInTime, match="no executor has registered"):
        await_executor(session, FakeClock())


def test_a_master_that_gives_no_executor_is_left_with_what_to_look_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped: list[Any] = []
    session: Any = Session()
    monkeypatch.setattr(module, "SystemClock", FakeClock)
    monkeypatch.setattr(module, "stop_spark", stopped.append)
    with pytest.raises(
        SparkMasterError, match=r"spark://m:7077: executor: .* no executor has registered"
    ):
        module._start_on_master("spark://m:7077", lambda: session)
    assert stopped == [session]


def test_a_master_that_accepts_no_application_differs_from_a_bug() -> None:
    def refused() -> Any:
        raise Py4JError("Cannot call methods on a stopped SparkContext")

    with pytest.raises(
        SparkMasterError, match=r"did not accept .*spark\.executor\.memory"
    ) as caught:
        module._start_on_master("spark://m:7077", refused)
    assert isinstance(caught.value, OSError), "what the surroundings are to blame for"
