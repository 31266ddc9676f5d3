"""Work on several outputs at the same time ends in order, also after errors and interruptions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import wait
from typing import Any

import pytest

from streamquake.harness.reconcile import parallel_jobs
from streamquake.harness.reconcile.parallel_jobs import in_parallel

LIMIT_S = 10


class Session:
    """A session whose job ends when it is cancelled."""

    def __init__(self) -> None:
        self.sparkContext = self
        self.cancelled = threading.Event()
        self.error: Exception | None = None

    def cancelAllJobs(self) -> None:
        self.cancelled.set()
        if self.error is not None:
            raise self.error


def run(work: Any, items: Any, session: Any = None) -> Any:
    return in_parallel(work, items, lambda: session)


def test_two_items_are_worked_on_at_the_same_time_and_keep_their_order() -> None:
    meeting = threading.Barrier(2, timeout=LIMIT_S)

    def work(item: str) -> str:
        meeting.wait()
        return item.upper()

    assert run(work, ["one", "other"]) == ["ONE", "OTHER"]
    assert run(work, []) == []


def test_an_error_is_raised_after_the_other_work_has_ended() -> None:
    failed, ended = threading.Event(), threading.Event()

    def work(item: str) -> None:
        if item == "bad":
            failed.set()
            raise ValueError(item)
        assert failed.wait(LIMIT_S)
        ended.set()

    session = Session()
    with pytest.raises(ValueError, match="bad"):
        run(work, ["bad", "good"], session)
    assert ended.is_set()
    assert not session.cancelled.is_set()


def test_an_interruption_cancels_the_jobs_and_what_has_not_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began: list[int] = []
    running = threading.Barrier(3, timeout=LIMIT_S)
    session = Session()

    def work(item: int) -> None:
        began.append(item)
        running.wait()
        assert session.cancelled.wait(LIMIT_S)

    interrupt_wait(monkeypatch, running.wait)
    with pytest.raises(KeyboardInterrupt):
        run(work, [1, 2, 3], session)
    assert sorted(began) == [1, 2]


def test_an_interruption_cancels_jobs_that_begin_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query may just be planned when the jobs are cancelled."""
    session = Session()

    def work(item: int) -> None:
        assert session.cancelled.wait(LIMIT_S)
        session.cancelled.clear()
        assert session.cancelled.wait(LIMIT_S), "its second job was not cancelled"
        ended.append(item)

    ended: list[int] = []
    interrupt_wait(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        run(work, [1], session)
    assert ended == [1]


def test_an_interruption_stays_one_where_the_session_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = Session()
    session.error = ConnectionRefusedError("no virtual machine")
    interrupt_wait(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        run(lambda item: session.cancelled.wait(LIMIT_S), [1], session)


def interrupt_wait(
    monkeypatch: pytest.MonkeyPatch, before: Callable[[], object] = lambda: None
) -> None:
    """Interrupt the first wait, after a call of `before`."""
    interruptions = iter([KeyboardInterrupt])

    def interrupted(futures: Any, timeout: float | None = None) -> Any:
        for interruption in interruptions:
            before()
            raise interruption
        return wait(futures, timeout)

    monkeypatch.setattr(parallel_jobs, "wait", interrupted)
