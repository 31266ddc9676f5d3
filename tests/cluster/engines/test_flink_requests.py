"""The follower and the queries about a job, on recorded answers of a JobManager."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.flink import follow as flink_follow
from streamquake.cluster.engines.flink import job as flink_job
from streamquake.cluster.engines.flink.follow import JobFollower, follow
from streamquake.cluster.engines.flink.positions import positions, topics
from streamquake.cluster.engines.flink.rest import FlinkError, FlinkUnreachable
from streamquake.reports.record.event import Action, EventDraft
from streamquake.topologies.errors import root_cause
from tests.cluster.engines.recorded import JOB, answer
from tests.event_drafts import undeclared_fields
from tests.fakes import fake_cluster


class RecordedRest:
    """A fake of FlinkRest; tests change `answers`, and None makes it unreachable."""

    def __init__(self) -> None:
        self.posted: list[tuple[str, Mapping[str, Any]]] = []
        vertices = [vertex["id"] for vertex in answer("job")["vertices"]]
        self.answers: dict[str, Any] | None = {
            f"/jobs/{JOB}": answer("job"),
            f"/jobs/{JOB}/plan": answer("plan"),
            f"/jobs/{JOB}/checkpoints": answer("checkpoints"),
            f"/jobs/{JOB}/checkpoints/config": answer("config"),
            f"/jobs/{JOB}/exceptions": answer("exceptions"),
            "/taskmanagers": answer("taskmanagers"),
            "/jobs": {"jobs": [{"id": JOB, "status": "RUNNING"}]},
        }
        for number, vertex in enumerate(vertices):
            details = f"/jobs/{JOB}/checkpoints/details/1/subtasks/{vertex}"
            self.answers[f"/jobs/{JOB}/vertices/{vertex}"] = answer(f"vertex-{number}")
            self.answers[f"/jobs/{JOB}/vertices/{vertex}/subtasks/metrics"] = []
            self.answers[details] = answer(f"checkpoint-vertex-{number}")

    def get(self, path: str, **parameters: str) -> Any:
        if self.answers is None:
            raise FlinkUnreachable(path)
        if path not in self.answers:
            raise FlinkError(404, f"{path} not found")
        return self.answers[path]

    def post(self, path: str, document: Mapping[str, Any]) -> Any:
        self.posted.append((path, document))

    def __enter__(self) -> RecordedRest:
        return self

    def __exit__(self, *what: object) -> None:
        return


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> RecordedRest:
    rest = RecordedRest()
    monkeypatch.setattr(flink_job, "jobmanager", lambda cluster, service: rest)
    return rest


def follower(
    rest: RecordedRest,
    notes: list[EventDraft],
    samples: list[tuple[str, str, float]],
    cluster: Cluster | None = None,
) -> JobFollower:
    def measure(series: str, where: str, value: float) -> None:
        samples.append((series, where, value))

    def emit(draft: EventDraft) -> None:
        assert undeclared_fields([draft]) == []
        notes.append(draft)

    cluster = cluster or fake_cluster()
    return JobFollower(cluster, "flink", JOB, rest, emit, measure)  # type: ignore[arg-type]


def test_the_first_poll_records_the_job_and_all_its_events(recorded: RecordedRest) -> None:
    notes: list[EventDraft] = []
    samples: list[tuple[str, str, float]] = []
    follower(recorded, notes, samples).poll()
    actions = {note.action for note in notes}
    assert notes[0].action == Action.JOB_SUBMITTED
    assert [len(region) for region in notes[0].value["regions"]] == [9]
    assert actions >= {
        Action.CHECKPOINT_COMPLETED,
        Action.JOB_RESTORED,
        Action.JOB_RESTARTING,
        Action.JOB_FAILING,
        Action.TASK_CHANGED,
    }
    (completed,) = [n for n in notes if n.action == Action.CHECKPOINT_COMPLETED]
    assert completed.value["alignment_ms"] == 252
    assert ("checkpoint_duration_ms", JOB) in [sample[:2] for sample in samples]


def test_no_event_is_recorded_while_the_jobmanager_is_unreachable(recorded: RecordedRest) -> None:
    notes: list[EventDraft] = []
    job_follower = follower(recorded, notes, [])
    job_follower.poll()
    count, answers, recorded.answers = len(notes), recorded.answers, None
    with pytest.raises(FlinkUnreachable):
        job_follower.poll()
    recorded.answers = answers
    job_follower.poll()
    assert len(notes) == count
    assert not job_follower.ended


def test_a_job_that_the_jobmanager_no_longer_knows_is_recorded_as_lost(
    recorded: RecordedRest,
) -> None:
    notes: list[EventDraft] = []
    cluster = fake_cluster()
    job_follower = follower(recorded, notes, [], cluster)
    job_follower.poll()
    recorded.answers = {"/jobs": {"jobs": []}}
    cluster.clock.sleep(1)
    job_follower.poll()
    assert (notes[-1].action, notes[-1].value["state"]) == (Action.JOB_ENDED, "LOST")
    assert job_follower.ended


def test_a_job_that_failed_during_setup_is_recorded_without_a_graph(recorded: RecordedRest) -> None:
    assert recorded.answers is not None
    detail = recorded.answers[f"/jobs/{JOB}"]
    detail.update({"state": "FAILED", "vertices": []})
    detail["timestamps"]["FAILED"] = 1795232756000
    del recorded.answers[f"/jobs/{JOB}/plan"], recorded.answers[f"/jobs/{JOB}/checkpoints/config"]
    notes: list[EventDraft] = []
    follower(recorded, notes, []).poll()

    assert [note.action for note in notes][:2] == [Action.JOB_SUBMITTED, Action.JOB_FAILING]
    assert notes[0].value["submitted_ms"] == 1795232740700
    (ended,) = [note for note in notes if note.action == Action.JOB_ENDED]
    assert (ended.value["state"], ended.value["ended_ms"]) == ("FAILED", 1795232756000)
    assert ended.value["cause"]


def test_a_job_is_recorded_after_its_graph_was_built(recorded: RecordedRest) -> None:
    assert recorded.answers is not None
    detail = recorded.answers[f"/jobs/{JOB}"]
    vertices, notes = detail["vertices"], []  # type: tuple[Any, list[EventDraft]]
    detail.update({"state": "INITIALIZING", "vertices": []})
    job_follower = follower(recorded, notes, [])
    job_follower.poll()
    assert notes == []
    detail.update({"state": "RUNNING", "vertices": vertices})
    job_follower.poll()
    assert len(notes[0].value["vertices"]) == 3


def test_a_checkpoint_that_completed_with_the_jobs_end_is_recorded(
    recorded: RecordedRest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that is stopped with a savepoint may have ended before the savepoint was polled."""
    assert recorded.answers is not None
    recorded.answers[f"/jobs/{JOB}"]["state"] = "FINISHED"
    monkeypatch.setattr(flink_follow, "jobmanager", lambda cluster, service: recorded)
    monkeypatch.setattr(JobFollower, "poll_checkpoints", only_after_the_end(JobFollower))
    notes: list[EventDraft] = []
    follow(fake_cluster(), "flink", JOB, notes.append, lambda *_: None, threading.Event())
    assert Action.CHECKPOINT_COMPLETED in [note.action for note in notes]


def only_after_the_end(follower_class: type[JobFollower]) -> Callable[[JobFollower], None]:
    """A poll that observes nothing before the job's end."""
    poll = follower_class.poll_checkpoints

    def late(self: JobFollower) -> None:
        if self.ended:
            poll(self)

    return late


def test_a_checkpoint_without_details_is_still_recorded(recorded: RecordedRest) -> None:
    assert recorded.answers is not None
    for path in [p for p in recorded.answers if "details" in p]:
        del recorded.answers[path]
    notes: list[EventDraft] = []
    follower(recorded, notes, []).poll()
    (completed,) = [n for n in notes if n.action == Action.CHECKPOINT_COMPLETED]
    assert "alignment_ms" not in completed.value
    assert completed.value["duration_ms"] > 0


def test_a_job_that_does_not_run_has_a_reason_with_its_cause(recorded: RecordedRest) -> None:
    reason = flink_job.pending(fake_cluster(), "flink", JOB)
    assert reason is not None
    assert reason.startswith("the job is RESTARTING: org.apache.flink")
    assert recorded.answers is not None
    recorded.answers[f"/jobs/{JOB}"]["state"] = "RUNNING"
    assert "0 of 4 tasks of Source" in str(flink_job.pending(fake_cluster(), "flink", JOB))


def test_a_drain_needs_two_later_checkpoints_the_last_after_files_were_closed(
    recorded: RecordedRest,
) -> None:
    assert recorded.answers is not None
    history = recorded.answers[f"/jobs/{JOB}/checkpoints"]["history"]
    history[0]["status"] = "COMPLETED"
    (late, early) = (history[0]["trigger_timestamp"], history[1]["trigger_timestamp"])
    assert early < late

    def drained(since_ms: int) -> bool:
        return (
            flink_job.drain_pending(fake_cluster(), "flink", JOB, since_ms, writes_files=True)
            is None
        )

    assert drained(late - flink_job.FILE_SETTLE_MS)
    assert not drained(early - 1), "the files may not have been closed"
    assert not drained(early + 1), "one checkpoint is not enough"
    recorded.answers = None
    assert not drained(0)


@pytest.mark.parametrize(("persisted", "drained"), [(8, True), (9, False), (80_000, False)])
def test_a_checkpoint_with_records_in_flight_does_not_complete_the_drain(
    recorded: RecordedRest, persisted: int, drained: bool
) -> None:
    assert recorded.answers is not None
    history = recorded.answers[f"/jobs/{JOB}/checkpoints"]["history"]
    history[0]["status"] = "COMPLETED"
    late_ms = history[0]["trigger_timestamp"]
    history[0]["persisted_data"] = history[1]["persisted_data"] = persisted
    since_ms = late_ms - flink_job.FILE_SETTLE_MS
    pending = flink_job.drain_pending(fake_cluster(), "flink", JOB, since_ms, writes_files=True)
    assert (pending is None) == drained


@pytest.mark.parametrize(
    ("begun", "elapsed_ms", "triggered"),
    [
        ([], 0, True),
        ([(-500, "IN_PROGRESS")], 100, False),
        ([(100, "IN_PROGRESS")], 200, False),
        ([(100, "COMPLETED")], 1_999, False),
        ([(100, "COMPLETED")], 2_000, True),
        ([(-500, "FAILED"), (100, "COMPLETED")], 2_000, True),
        ([(100, "FAILED")], 2_000, False),
        ([(100, "COMPLETED"), (1_800, "COMPLETED")], 2_000, True),
    ],
)
def test_a_drain_triggers_each_checkpoint_when_it_is_due(
    recorded: RecordedRest, begun: list[tuple[int, str]], elapsed_ms: int, triggered: bool
) -> None:
    """Not beside another one, and not after a failure, which counts towards those tolerated."""
    assert recorded.answers is not None
    cluster = fake_cluster()
    since_ms = cluster.clock.epoch_ms() - elapsed_ms
    recorded.answers[f"/jobs/{JOB}/checkpoints"]["history"] = [
        {"trigger_timestamp": since_ms + at_ms, "status": status} for at_ms, status in begun
    ]

    pending = flink_job.drain_pending(cluster, "flink", JOB, since_ms, writes_files=False)

    assert pending is not None
    request = (f"/jobs/{JOB}/checkpoints", {"checkpointType": "CONFIGURED"})
    assert recorded.posted == [request] * triggered


@pytest.mark.parametrize(("writes_files", "drained"), [(True, False), (False, True)])
def test_a_job_without_files_is_drained_sooner(
    recorded: RecordedRest, writes_files: bool, drained: bool
) -> None:
    assert recorded.answers is not None
    recorded.answers[f"/jobs/{JOB}/checkpoints"]["history"] = [
        {"trigger_timestamp": at_ms, "status": "COMPLETED"} for at_ms in (1_100, 3_500)
    ]
    pending = flink_job.drain_pending(
        fake_cluster(), "flink", JOB, 1_000, writes_files=writes_files
    )
    assert (pending is None) == drained


@pytest.mark.parametrize(("running_ms", "observed"), [(2_999, {}), (3_000, {0: 42})])
def test_positions_of_a_recently_started_attempt_are_unknown(
    recorded: RecordedRest, running_ms: int, observed: dict[int, int]
) -> None:
    assert recorded.answers is not None
    for number in range(3):
        vertex = recorded.answers[f"/jobs/{JOB}/vertices/{answer(f'vertex-{number}')['id']}"]
        for task in vertex["subtasks"]:
            task.update({"status": "RUNNING", "status-duration": {"RUNNING": running_ms}})
    source = answer("vertex-0")["id"]
    mark = "Source__input[1].KafkaSourceReader.topic.in.partition"
    recorded.answers[f"/jobs/{JOB}/vertices/{source}/subtasks/metrics"] = [
        {"id": f"{mark}.0.currentOffset", "max": 41.0},
        {"id": f"{mark}.1.currentOffset", "max": -1.0},
    ]
    assert positions(recorded, JOB, "in") == observed  # type: ignore[arg-type]


@pytest.mark.parametrize(("behind", "observed"), [(11.0, {0: 12}), (-1.0, {})])
def test_the_position_is_the_lowest_of_several_sources_of_a_topic(
    recorded: RecordedRest, behind: float, observed: dict[int, int]
) -> None:
    assert recorded.answers is not None
    vertices = [answer(f"vertex-{number}")["id"] for number in range(3)]
    for vertex in vertices:
        for task in recorded.answers[f"/jobs/{JOB}/vertices/{vertex}"]["subtasks"]:
            task.update({"status": "RUNNING", "status-duration": {"RUNNING": 3_000}})
    for vertex, offset in zip(vertices, (behind, 41.0), strict=False):
        name = "Source__input.KafkaSourceReader.topic.in.partition.0.currentOffset"
        recorded.answers[f"/jobs/{JOB}/vertices/{vertex}/subtasks/metrics"] = [
            {"id": name, "max": offset}
        ]
    assert positions(recorded, JOB, "in") == observed  # type: ignore[arg-type]


def test_the_topics_of_a_job_are_those_of_its_sources(recorded: RecordedRest) -> None:
    assert recorded.answers is not None
    for number, topic in enumerate(("in", "pays.v2")):
        mark = f"Source__{topic}.KafkaSourceReader.topic.{topic}.partition"
        path = f"/jobs/{JOB}/vertices/{answer(f'vertex-{number}')['id']}/subtasks/metrics"
        ids = (f"{mark}.0.currentOffset", f"{mark}.11.currentOffset", f"{mark}.0.other", "numBytes")
        recorded.answers[path] = [{"id": name} for name in ids]
    assert topics(recorded, JOB) == {"in", "pays.v2"}  # type: ignore[arg-type]


def test_the_root_cause_is_the_innermost_one_without_frames() -> None:
    trace = (
        "a.A: outer\n\tat x\nCaused by: b.B: mid\n\tat y\nCaused by: c.C: inner\n  more\n\t... 3"
    )
    assert root_cause(trace) == "c.C: inner more"
    assert root_cause("") == ""


def test_the_job_is_recorded_before_its_checkpoints(recorded: RecordedRest) -> None:
    notes: list[EventDraft] = []
    job_follower = follower(recorded, notes, [])
    job_follower.poll_checkpoints()
    assert notes == []
    job_follower.poll_job()
    job_follower.poll_checkpoints()
    actions = [note.action for note in notes]
    assert actions.index(Action.JOB_SUBMITTED) < actions.index(Action.CHECKPOINT_TRIGGERED)


def test_an_error_in_the_checkpoint_thread_ends_the_follower(
    recorded: RecordedRest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: JobFollower) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(flink_follow, "jobmanager", lambda cluster, service: recorded)
    monkeypatch.setattr(JobFollower, "poll_checkpoints", fail)
    with pytest.raises(ZeroDivisionError):
        flink_follow.follow(
            fake_cluster(),
            "flink",
            JOB,
            lambda note: None,
            lambda *sample: None,
            threading.Event(),
        )
