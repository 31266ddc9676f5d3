"""The classes of events: the JSON of the record is kept unchanged, and typed fields read it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamquake.harness.workloads.sending.ranges import SendStatus
from streamquake.reports.record.event import EVENT_CLASSES, Action, Event, Kind
from streamquake.reports.record.event_field import MissingField
from streamquake.reports.record.fault_events import FaultInEffect, ObservedFaultEvent
from streamquake.reports.record.history import History, read_history, usual_kind
from streamquake.reports.record.job_events import (
    MOST_SUBTASKS,
    JobSubmitted,
    TaskAttempt,
    TaskChanged,
)
from streamquake.reports.record.run_events import NodeRevived, PhaseBegan
from tests.event_drafts import undeclared_fields
from tests.reports.sample_run import write_sample_run

pytestmark = pytest.mark.slow

RECORDED = Path("harness/selftest/record/run/history.jsonl").resolve()


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """A history that a run recorded, and that of the sample run."""
    return RECORDED, write_sample_run(tmp_path_factory.mktemp("runs")).history


def event(action: Action, **value: object) -> Event:
    return Event(
        index=0, at_ns=7, process="test", kind=usual_kind(action), action=action, value=value
    )


def test_recorded_events_are_unchanged_after_reading_and_writing(
    histories: tuple[Path, ...],
) -> None:
    for path in histories:
        lines = path.read_text("utf-8").splitlines()[1:]
        assert [e.to_json() for e in read_history(path)] == [json.loads(line) for line in lines]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.sampled_from(Action), st.dictionaries(st.text().map("later_{}".format), JSON))
def test_fields_of_later_versions_are_kept(action: Action, value: dict[str, object]) -> None:
    document = event(action, **value).to_json()
    assert Event.from_json(document).to_json() == document


def test_an_unknown_key_of_an_event_is_damage() -> None:
    """A later version that adds a key has another schema."""
    document = event(Action.DRAINED, lag=0).to_json()
    with pytest.raises(TypeError, match="host"):
        Event.from_json({**document, "host": "a"})


@given(st.sampled_from(Action), st.sampled_from(Kind))
def test_a_kind_that_the_action_cannot_have_is_damage(action: Action, kind: Kind) -> None:
    document = {**event(action).to_json(), "kind": kind}
    allowed = EVENT_CLASSES[action].kinds
    if kind in allowed:
        assert Event.from_json(document).kind == kind
    else:
        expected = " or ".join(allowed)
        with pytest.raises(TypeError, match=f"`{action}` to be {expected}, got {kind}"):
            Event.from_json(document)


def test_every_action_has_exactly_one_class() -> None:
    assert set(EVENT_CLASSES) == set(Action)
    assert len(set(EVENT_CLASSES.values())) == len(Action)
    for action in Action:
        assert type(event(action)) is EVENT_CLASSES[action]


def test_the_fields_of_recorded_events_belong_to_their_classes(
    histories: tuple[Path, ...],
) -> None:
    for path in histories:
        assert undeclared_fields(read_history(path)) == []


def test_a_field_that_its_class_does_not_have_is_undeclared() -> None:
    written = [event(Action.PHASE, phase="load"), event(Action.PHASE, fase="load")]
    assert undeclared_fields(written) == ["phase: fase"]


def test_a_history_finds_events_by_their_class() -> None:
    began, seen = event(Action.PHASE, phase="load"), event(Action.FAULT_IN_EFFECT, step=0)
    ended, restarted = event(Action.FAULT_ENDED_EARLY, step=0), event(Action.NODE_REVIVED)
    history = History([began, seen, ended, restarted])

    assert [each.phase for each in history.of(PhaseBegan)] == ["load"]
    assert history.of(ObservedFaultEvent) == (seen, ended), (
        "a base class finds the events of all its subclasses"
    )
    assert history.of(FaultInEffect, NodeRevived) == (seen, restarted)
    assert history.of(Action.FAULT_IN_EFFECT) == (seen,)
    assert history.first(NodeRevived) is restarted
    assert history.first(NodeRevived, after_ns=8) is None
    assert history.of() == ()


def test_a_field_that_old_records_lack_has_its_default() -> None:
    (effect,) = History([event(Action.FAULT_IN_EFFECT, step=0)]).of(FaultInEffect)
    assert (effect.nodes, effect.evidence, effect.fault) == (None, None, "")
    assert effect.moment_ns == 7, "when it was recorded"


def test_a_required_field_that_is_missing_raises_an_error() -> None:
    (changed,) = History([event(Action.TASK_CHANGED, vertex="v")]).of(TaskChanged)
    assert changed.name == "v"
    message = "event 0, `task changed`, is recorded without its `subtask`"
    with pytest.raises(MissingField, match=re.escape(message)):
        assert changed.subtask


@pytest.mark.parametrize("status", ["acknowledged", "failed", "unknown", "maybe", None, 7])
def test_a_send_has_one_of_three_results(status: object) -> None:
    document = event(Action.SENT, first=0, last=0, count=1, status=status).to_json()
    if status in {each.value for each in SendStatus}:
        assert Event.from_json(document).to_json() == document
    else:
        with pytest.raises(TypeError, match=f"acknowledged, failed, unknown, got {status}"):
            Event.from_json(document)


def test_a_field_may_have_another_name_in_the_record() -> None:
    (ended,) = History([event(Action.TASK_ATTEMPT, kind="ExecutorLostFailure")]).of(TaskAttempt)
    assert (ended.kind, ended.ended_by) == (Kind.INFO, "ExecutorLostFailure")


def _submitted(parallelism: float) -> JobSubmitted:
    vertex = {"id": "v", "name": "map", "parallelism": parallelism}
    (submitted,) = History([event(Action.JOB_SUBMITTED, vertices=[vertex])]).of(JobSubmitted)
    return submitted


def test_a_vertex_has_at_most_as_many_subtasks_as_a_job_can_have() -> None:
    assert [v["parallelism"] for v in _submitted(MOST_SUBTASKS).vertices] == [MOST_SUBTASKS]
    for parallelism in (MOST_SUBTASKS + 1, 10**12, 1e18):
        with pytest.raises(ValueError, match="at most 32,768 for the vertex map"):
            assert _submitted(parallelism).vertices
