"""Work on several outputs at the same time ends in order, also after errors and interruptions."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from streamquake.harness.reconcile import parallel_jobs
from streamquake.harness.reconcile.parallel_jobs import in_parallel

LIMIT_S = 30


class Session:
    """A session whose job ends when it is cancelled."""

    def __init__(self) -> None:
        self.sparkContext = self
        self.cancelled = threading.Event()

    def cancelAllJobs(self) -> None:
        self.cancelled.set()


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

    def interrupted(futures: Any) -> None:
        running.wait()
        raise KeyboardInterrupt

    monkeypatch.setattr(parallel_jobs, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(work, [1, 2, 3], session)
    assert sorted(began) == [1, 2]
