"""A session on another master than this process waits for an executor, and reports its absence."""

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
    """A session whose context reports these numbers of block stores, one at each poll."""

    def __init__(self, *stores: int) -> None:
        self._stores: Iterator[int] = iter(stores)
        self.sparkContext = self._jsc = self
        self.polls = 0

    def sc(self) -> Session:
        return self

    def getExecutorMemoryStatus(self) -> Session:
        return self

    def size(self) -> int:
        self.polls += 1
        return next(self._stores, 1)


def test_the_session_waits_for_an_executor_beside_the_driver() -> None:
    session: Any = Session(1, 1, 3)
    await_executor(session, FakeClock())
    assert session.polls == 3


def test_a_missing_executor_is_reported_within_a_limit() -> None:
    session: Any = Session()
    with pytest.raises(NotReadyInTime, match="no executor has registered"):
        await_executor(session, FakeClock())


def test_a_master_without_an_executor_is_reported_and_its_session_is_stopped(
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


def test_a_master_that_rejects_the_application_is_reported() -> None:
    def reject_application() -> Any:
        raise Py4JError("Cannot call methods on a stopped SparkContext")

    with pytest.raises(
        SparkMasterError, match=r"did not accept .*spark\.executor\.memory"
    ) as caught:
        module._start_on_master("spark://m:7077", reject_application)
    assert isinstance(caught.value, OSError), "an error of the environment"
