"""Each of the five waits has its own event, and its own reason in older records."""

from __future__ import annotations

import pytest

from streamquake.harness.verdict.evidence.drain import not_drained
from streamquake.harness.verdict.evidence.waits import NOT_MET, Wait, failed_waits
from streamquake.reports.record.event import Action
from tests.harness.histories import Story


@pytest.mark.parametrize("wait", Wait)
def test_each_wait_has_its_own_event(wait: Wait) -> None:
    story = Story().at(9, NOT_MET[wait], reason=f"{wait}: not within 5 s: x")
    (failed,) = failed_waits(story.history())
    assert (failed.wait, failed.at_s) == (wait, 9)
    assert len(set(NOT_MET.values())) == len(Wait)


@pytest.mark.parametrize("wait", Wait)
def test_old_records_name_the_wait_in_the_reason(wait: Wait) -> None:
    story = Story().at(9, Action.NOT_RECOVERED, reason=f"{wait}: not within 5 s: x")
    assert [failed.wait for failed in failed_waits(story.history())] == [wait]


def test_a_reason_without_a_wait_counts_as_recovery() -> None:
    story = Story().at(9, Action.NOT_RECOVERED, reason="flink/taskmanager-1 ended")
    assert [failed.wait for failed in failed_waits(story.history())] == [Wait.RECOVERY]


def test_a_run_is_drained_when_recorded_so_and_nothing_is_in_flight() -> None:
    story = Story().at(5, Action.CHECKPOINT_COMPLETED, checkpoint=7, persisted_bytes=0)
    assert not_drained(story.history()) == "the run ended before it was drained"
    assert not_drained(story.at(6, Action.DRAINED).history()) is None
    in_flight = story.at(5.5, Action.CHECKPOINT_COMPLETED, checkpoint=8, persisted_bytes=4_000_000)
    assert "8, still held 4,000,000 bytes" in (not_drained(in_flight.history()) or "")
    later = in_flight.at(7, Action.CHECKPOINT_COMPLETED, checkpoint=9, persisted_bytes=0)
    assert not_drained(later.history()) is None


@pytest.mark.parametrize(
    ("persisted", "drained"),
    [(56, True), (256, True), (57, False), (264, False), (4_000_000, False)],
)
def test_headers_of_empty_channels_hold_no_record(persisted: int, drained: bool) -> None:
    """Four tasks send to four: 16 channels with two ends each, of 8 bytes each."""
    vertices = [{"id": name, "name": name, "parallelism": 4} for name in ("a", "b", "c")]
    joined = [{"from": "a", "to": "b", "ship": "HASH"}]
    story = Story().at(1, Action.JOB_SUBMITTED, vertices=vertices, edges=joined)
    story.at(5, Action.CHECKPOINT_COMPLETED, checkpoint=7, persisted_bytes=persisted)
    story.at(6, Action.DRAINED)
    assert (not_drained(story.history()) is None) == drained


def test_a_run_that_was_not_drained_names_the_failed_wait() -> None:
    story = Story().at(5, Action.INPUT_NOT_READ, reason="input read to its end: not within 1 s")
    assert not_drained(story.history()) == "input read to its end: not within 1 s"
