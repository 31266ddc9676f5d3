"""What uses a session in the background: it gets the session, and never disturbs the others."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from streamquake.harness.reconcile import spark_session
from streamquake.harness.reconcile.spark_session import JavaMissing, SparkInBackground


class Session:
    """A session whose jobs end when they are cancelled; `cancelled` counts the calls."""

    def __init__(self) -> None:
        self.cancelled = 0
        self.sparkContext = self
        self._job_may_end = threading.Event()

    def run_job(self) -> None:
        self._job_may_end.wait()
        self._job_may_end.clear()
        raise RuntimeError("Job 1 cancelled")

    def cancelAllJobs(self) -> None:
        self.cancelled += 1
        self._job_may_end.set()


SESSION: Any = Session()


@pytest.fixture(autouse=True)
def stopped(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    sessions: list[Any] = []
    monkeypatch.setattr(spark_session, "stop_spark", sessions.append)
    return sessions


def background(session: Any = SESSION) -> SparkInBackground:
    return SparkInBackground(jars=tuple, start=lambda master, jars: session)


def test_a_user_works_with_the_session_until_another_gets_it(stopped: list[Any]) -> None:
    session: Any = Session()
    ended = threading.Event()

    def work(given: Any) -> None:
        assert given == session
        try:
            given.run_job()
        finally:
            ended.set()

    spark = background(session)
    spark.use(work)
    assert spark.get() == session
    assert ended.is_set()
    assert session.cancelled > 0
    before = session.cancelled
    assert spark.get() == session
    assert session.cancelled == before
    spark.stop()
    assert stopped == [session]


def test_a_user_that_has_ended_is_not_cancelled() -> None:
    session: Any = Session()
    done = threading.Event()
    spark = background(session)
    spark.use(lambda given: done.set())
    done.wait()
    assert spark._user is not None
    spark._user.join()
    assert spark.get() == session
    assert session.cancelled == 0


def test_an_error_of_a_user_has_no_effect(capfd: pytest.CaptureFixture[str]) -> None:
    def work(session: Any) -> None:
        raise RuntimeError("no space left")

    spark = background()
    spark.use(work)
    assert spark.get() == SESSION
    spark.stop()
    assert capfd.readouterr().err == ""


def test_a_session_that_cannot_start_has_no_user() -> None:
    used: list[Any] = []

    def fail(master: str, jars: Any) -> Any:
        raise JavaMissing("no java")

    spark = SparkInBackground(jars=tuple, start=fail)
    spark.use(used.append)
    spark.stop()
    with pytest.raises(JavaMissing, match="no java"):
        spark.get()
    assert used == []
