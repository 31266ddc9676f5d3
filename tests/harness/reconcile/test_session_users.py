"""What uses a session in the background: it gets the session, and never disturbs the others."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from streamquake.harness.reconcile import spark_session
from streamquake.harness.reconcile.spark_session import JavaMissing, SparkInBackground

SESSION: Any = "the session"


@pytest.fixture(autouse=True)
def stopped(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    sessions: list[Any] = []
    monkeypatch.setattr(spark_session, "stop_spark", sessions.append)
    return sessions


def background(session: Any = SESSION) -> SparkInBackground:
    return SparkInBackground(jars=tuple, start=lambda master, jars: session)


def test_a_user_works_with_the_session_while_others_get_it(stopped: list[Any]) -> None:
    used: list[Any] = []
    may_end = threading.Event()

    def work(session: Any) -> None:
        used.append(session)
        may_end.wait()

    spark = background()
    spark.use(work)
    assert spark.get() == SESSION
    assert stopped == []
    may_end.set()
    spark.stop()
    assert (used, stopped) == ([SESSION], [SESSION])


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
