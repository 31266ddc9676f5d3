"""The parts of the timeline that are computed from events."""

from __future__ import annotations

from typing import Any

from streamquake.reports.record.event import Action, Event, Kind
from streamquake.reports.record.history import History
from streamquake.reports.run import timeline
from streamquake.reports.run.checkpoint_bars import checkpoint_bars
from streamquake.reports.run.task_lanes import TaskSpan, lanes
from streamquake.reports.run.timeline import PhaseSpan, TimelineMark

BEGAN_MS = 1_795_230_000_000


def history(*events: tuple[float, Action, dict[str, object]]) -> History:
    return History(
        Event(
            index=index,
            at_ns=round(at_s * 1e9),
            process="test",
            kind=Kind.INFO,
            action=action,
            value=value,
        )
        for index, (at_s, action, value) in enumerate(events)
    )


def test_a_phase_ends_where_the_next_begins_and_the_last_with_the_history() -> None:
    spans = timeline.phases(
        history(
            (0, Action.PHASE, {"phase": "deploy"}),
            (9.5, Action.PHASE, {"phase": "steady"}),
            (12, Action.DRAINED, {"lag": 0}),
        )
    )
    assert spans == (
        PhaseSpan(phase="deploy", begin_s=0, end_s=9.5),
        PhaseSpan(phase="steady", begin_s=9.5, end_s=12),
    )


def test_a_probe_has_a_span_for_each_result() -> None:
    def answer(at_s: float, *, met: bool, check: str = "up") -> tuple[float, Action, Any]:
        value = {"check": check, "met": met, "asked_s": at_s, "reason": None if met else "HTTP 503"}
        return at_s, Action.PROBE_ANSWERED, value

    found = timeline.probe_spans(
        history(
            answer(1, met=True),
            answer(2, met=True, check="other"),
            answer(5, met=False),
            answer(8, met=True),
            answer(20, met=True),
        )
    )
    assert found["other"] == ()
    assert [(span.begin_s, span.end_s, span.met, span.reason) for span in found["up"]] == [
        *((1, 5, True, ""), (5, 8, False, "HTTP 503"), (8, 20, True, "")),
    ]


def checkpoint_fields(number: int, at_s: float) -> dict[str, object]:
    trigger_ms = BEGAN_MS + round(at_s * 1e3)
    return {"checkpoint": number, "type": "CHECKPOINT", "trigger_ms": trigger_ms}


def test_an_open_checkpoint_ends_where_its_job_is_restored() -> None:
    """The JobManager that triggered it was killed, so its end was never recorded."""
    bars = checkpoint_bars(
        history(
            (9.0, Action.JOB_RESTORED, {"checkpoint": 6}),
            (10.0, Action.CHECKPOINT_TRIGGERED, checkpoint_fields(7, 10.0)),
            (18.0, Action.JOB_RESTORED, {"checkpoint": 6}),
            (20.0, Action.CHECKPOINT_TRIGGERED, checkpoint_fields(8, 20.0)),
            (30.0, Action.DRAINED, {"lag": 0}),
        )
    )
    assert [(bar.state, bar.begin_s, bar.end_s) for bar in bars] == [
        ("open", 10, 18),
        ("open", 20, 30),
    ]


def test_checkpoints_have_the_times_of_the_engine_not_of_the_polls() -> None:
    bars = checkpoint_bars(
        history(
            (10.0, Action.CHECKPOINT_TRIGGERED, checkpoint_fields(1, 10.0)),
            (
                10.9,
                Action.CHECKPOINT_COMPLETED,
                {**checkpoint_fields(1, 10.0), "duration_ms": 400, "persisted_bytes": 9},
            ),
            (12.7, Action.CHECKPOINT_TRIGGERED, checkpoint_fields(2, 12.0)),
            (14.0, Action.CHECKPOINT_FAILED, {**checkpoint_fields(2, 12.0), "reason": "expired"}),
            (15.5, Action.CHECKPOINT_TRIGGERED, checkpoint_fields(3, 15.0)),
            (16.0, Action.DRAINED, {}),
        )
    )
    assert [(b.checkpoint, b.state, b.begin_s, b.end_s) for b in bars] == [
        (1, "completed", 10.0, 10.4),
        (2, "failed", 12.0, 14.0),
        (3, "open", 15.0, 16.0),
    ]
    assert bars[0].detail == {"duration_ms": 400, "persisted_bytes": 9}
    assert bars[1].detail == {"reason": "expired"}


def test_a_checkpoint_without_a_recorded_trigger_is_shown() -> None:
    ended = {**checkpoint_fields(7, 20.0), "duration_ms": 500}
    (bar,) = checkpoint_bars(history((20.5, Action.CHECKPOINT_COMPLETED, ended)))
    assert (bar.begin_s, bar.end_s, bar.state) == (20.0, 20.5, "completed")


def test_checkpoints_without_a_time_stamp_of_the_engine_have_the_time_of_observation() -> None:
    (bar,) = checkpoint_bars(
        history(
            (3, Action.CHECKPOINT_TRIGGERED, {"checkpoint": 1}),
            (4, Action.CHECKPOINT_COMPLETED, {"checkpoint": 1}),
        )
    )
    assert (bar.begin_s, bar.end_s) == (3, 4)


def task(vertex: str, subtask: int, attempt: int, state: str) -> dict[str, object]:
    return {
        "vertex": vertex,
        "subtask": subtask,
        "attempt": attempt,
        "state": state,
        "node": f"flink/taskmanager-{subtask + 1}",
    }


def test_lanes_are_in_the_order_of_the_vertices_with_a_span_for_each_state() -> None:
    vertices = [{"id": "v1", "name": "Source"}, {"id": "v2", "name": "Sink"}]
    found = lanes(
        history(
            (1, Action.JOB_SUBMITTED, {"vertices": vertices}),
            (2, Action.TASK_CHANGED, task("v2", 0, 0, "running")),
            (2, Action.TASK_CHANGED, task("v1", 1, 0, "DEPLOYING")),
            (3, Action.TASK_CHANGED, task("v1", 1, 0, "RUNNING")),
            (5, Action.TASK_CHANGED, task("v1", 1, 0, "FAILED")),
            (6, Action.TASK_CHANGED, task("v1", 1, 1, "RUNNING")),
            (4, Action.TASK_CHANGED, task("unknown", 0, 0, "RUNNING")),
            (9, Action.DRAINED, {}),
        )
    )
    assert [(lane.vertex, lane.subtask) for lane in found] == [
        ("Source", 1),
        ("Sink", 0),
        ("unknown", 0),
    ]
    node = "flink/taskmanager-2"
    assert found[0].spans == (
        TaskSpan(state="DEPLOYING", attempt=0, node=node, begin_s=2, end_s=3),
        TaskSpan(state="RUNNING", attempt=0, node=node, begin_s=3, end_s=5),
        TaskSpan(state="FAILED", attempt=0, node=node, begin_s=5, end_s=6),
        TaskSpan(state="RUNNING", attempt=1, node=node, begin_s=6, end_s=9),
    )


def test_marks_have_the_event_and_its_node() -> None:
    found = timeline.marks(
        history(
            (1, Action.CONTAINER_DIED, {"node": "flink/taskmanager-2", "exit_code": 137}),
            (2, Action.JOB_RESTORED, {"job": "j", "checkpoint": 4}),
            (3, Action.JOB_RUNNING, {"job": "j"}),
        )
    )
    assert found == (
        TimelineMark(row="nodes", what="died", at_s=1, detail="flink/taskmanager-2, exit code 137"),
        TimelineMark(row="job", what="restored", at_s=2, detail="checkpoint 4"),
        TimelineMark(row="job", what="running", at_s=3),
    )


def test_an_empty_history_has_nothing_to_draw() -> None:
    nothing = History()
    assert timeline.end_s(nothing) == 0
    assert timeline.phases(nothing) == ()
    assert checkpoint_bars(nothing) == ()
    assert lanes(nothing) == ()
