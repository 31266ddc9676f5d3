"""A Spark session that several runs share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError

from streamquake.harness.reconcile import spark_session
from streamquake.harness.reconcile.spark_session import JavaMissing, SparkInBackground


class Session:
    """A session that stores its number and how often its cache was cleared."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.cleared = 0
        self.has_ended = False
        self.catalog = self

    def clearCache(self) -> None:
        if self.has_ended:
            raise Py4JNetworkError("Answer from Java side is empty")
        self.cleared += 1


class Starts:
    """Starts sessions; the first `failing` starts fail."""

    def __init__(self, failing: int = 0) -> None:
        self.sessions: list[Session] = []
        self._failing = failing

    def __call__(self, master: str, jars: Sequence[Path]) -> Any:
        if self._failing:
            self._failing -= 1
            raise JavaMissing("no java")
        self.sessions.append(Session(len(self.sessions)))
        return self.sessions[-1]

    def background(self) -> SparkInBackground:
        return SparkInBackground(jars=lambda: (), start=self)


@pytest.fixture(autouse=True)
def stopped(monkeypatch: pytest.MonkeyPatch) -> list[Session]:
    """The sessions that were stopped."""
    stopped: list[Session] = []
    monkeypatch.setattr(spark_session, "stop_spark", stopped.append)
    return stopped


def test_a_reset_session_is_used_again_without_what_it_cached(stopped: list[Session]) -> None:
    starts = Starts()
    spark = starts.background()
    first: Any = spark.get()
    spark.reset()
    assert first.cleared == 1
    assert spark.is_warm
    assert spark.get() is first
    assert stopped == []


def test_a_session_that_ended_is_started_again(stopped: list[Session]) -> None:
    starts = Starts()
    spark = starts.background()
    first: Any = spark.get()
    first.has_ended = True
    spark.reset()
    assert not spark.is_warm
    again: Any = spark.get()
    assert again.number == 1
    assert stopped == [first]


def test_a_failed_start_is_tried_again_by_the_next_run() -> None:
    spark = Starts(failing=1).background()
    with pytest.raises(JavaMissing):
        spark.get()
    spark.reset()
    again: Any = spark.get()
    assert again.number == 0


def test_the_reset_of_a_session_that_was_never_started_starts_none() -> None:
    starts = Starts()
    starts.background().reset()
    assert starts.sessions == []
