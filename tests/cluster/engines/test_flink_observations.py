"""The watches on recorded answers: every change becomes one event of the history."""

from __future__ import annotations

import copy
from typing import Any

from streamquake.cluster.engines.flink.checkpoints import CheckpointWatch, phases
from streamquake.cluster.engines.flink.states import LOST, StateWatch
from streamquake.cluster.engines.flink.tasks import NodeNames, TaskWatch, host_of
from streamquake.reports.record.event import Action, Kind
from tests.cluster.engines.recorded import JOB, answer

VERTICES = [answer(f"vertex-{n}") for n in range(3)]
NODES = {f"flink-taskmanager-{n}": f"flink/taskmanager-{n}" for n in (1, 2, 3)}


def names() -> NodeNames:
    return NodeNames(NODES, lambda: answer("taskmanagers")["taskmanagers"])


def running(vertices: list[Any], attempt: int) -> list[Any]:
    changed = copy.deepcopy(vertices)
    for vertex in changed:
        for subtask in vertex["subtasks"]:
            subtask.update({"status": "RUNNING", "attempt": attempt})
    return changed


def test_a_checkpoint_that_ran_between_two_polls_has_all_its_events() -> None:
    watch = CheckpointWatch(JOB)
    drafts = [each.draft(0, "flink") for each in watch.poll(answer("checkpoints"))]
    assert [(each.action, each.value.get("checkpoint"), each.kind) for each in drafts] == [
        (Action.CHECKPOINT_TRIGGERED, 1, Kind.INVOKE),
        (Action.CHECKPOINT_ACKNOWLEDGED, 1, Kind.INFO),
        (Action.CHECKPOINT_ALL_ACKNOWLEDGED, 1, Kind.INFO),
        (Action.CHECKPOINT_COMPLETED, 1, Kind.OK),
        (Action.CHECKPOINT_TRIGGERED, 2, Kind.INVOKE),
        (Action.CHECKPOINT_FAILED, 2, Kind.FAIL),
        (Action.JOB_RESTORED, 1, Kind.INFO),
    ]
    assert list(watch.poll(answer("checkpoints"))) == []


def test_a_checkpoint_in_progress_is_recorded_as_it_advances() -> None:
    document = answer("checkpoints")
    last = document["history"][0]
    last.update({"status": "IN_PROGRESS", "num_acknowledged_subtasks": 0})
    watch = CheckpointWatch(JOB)
    assert [s.action for s in watch.poll(document)][4:6] == [
        Action.CHECKPOINT_TRIGGERED,
        Action.JOB_RESTORED,
    ]
    last["num_acknowledged_subtasks"] = 4
    (observation,) = watch.poll(document)
    assert (observation.value["acknowledged"], observation.value["subtasks"]) == (4, 9)
    last.update({"status": "FAILED", "failure_message": "Checkpoint expired before completing."})
    (observation,) = watch.poll(document)
    assert observation.value["reason"] == "Checkpoint expired before completing."


def test_a_second_restore_from_the_same_checkpoint_is_recorded_again() -> None:
    watch, document = CheckpointWatch(JOB), answer("checkpoints")
    assert Action.JOB_RESTORED in [s.action for s in watch.poll(document)]
    document["latest"]["restored"]["restore_timestamp"] += 500
    (observation,) = watch.poll(document)
    assert (observation.action, observation.value["checkpoint"]) == (Action.JOB_RESTORED, 1)
    assert observation.value["path"].endswith("/chk-1")


def test_the_phases_of_a_checkpoint_are_those_of_its_slowest_subtask() -> None:
    found = phases({str(n): answer(f"checkpoint-vertex-{n}") for n in range(3)})
    assert found["alignment_ms"] == 252  # the one task behind the file sink
    assert found["unaligned_subtasks"] == 0


def test_the_node_of_a_task_is_remembered_after_its_taskmanager_is_forgotten() -> None:
    listed = answer("taskmanagers")["taskmanagers"]
    known = NodeNames(NODES, lambda: listed)
    removed = listed[0]["id"]
    assert known.node(removed) == NODES[host_of(listed[0])]
    listed.clear()
    assert known.node(removed).startswith("flink/taskmanager-")
    assert known.node("unknown:6122-0") == "unknown:6122-0"
    assert known.node("(unassigned)") == ""


def test_a_task_is_recorded_once_for_each_attempt_and_state() -> None:
    watch = TaskWatch(JOB, names())
    first = list(watch.poll(running(VERTICES, attempt=0)))
    assert [s.action for s in first] == [Action.TASK_CHANGED] * 9 + [Action.JOB_RUNNING]
    assert list(watch.poll(running(VERTICES, attempt=0))) == []
    one = running(VERTICES, attempt=0)
    one[0]["subtasks"][2]["attempt"] = 1
    (moved,) = watch.poll(one)
    assert (moved.value["subtask"], moved.value["attempt"]) == (2, 1)


def test_a_job_runs_again_when_every_task_does() -> None:
    watch = TaskWatch(JOB, names())
    list(watch.poll(running(VERTICES, attempt=0)))
    failed = running(VERTICES, attempt=0)
    failed[1]["subtasks"][0]["status"] = "FAILED"
    assert [s.action for s in watch.poll(failed)] == [Action.TASK_CHANGED]
    again = running(VERTICES, attempt=1)
    assert [s.action for s in watch.poll(again)][-1] == Action.JOB_RUNNING


def test_a_job_runs_beside_finished_tasks() -> None:
    """Those of a source that ends."""
    vertices = running(VERTICES, attempt=0)
    for subtask in vertices[0]["subtasks"]:
        subtask["status"] = "FINISHED"
    assert list(TaskWatch(JOB, names()).poll(vertices))[-1].action == Action.JOB_RUNNING

    for vertex in vertices:
        for subtask in vertex["subtasks"]:
            subtask["status"] = "FINISHED"
    observed = [s.action for s in TaskWatch(JOB, names()).poll(vertices)]
    assert observed == [Action.TASK_CHANGED] * 9


def test_a_restart_between_two_polls_is_detected_by_its_time_stamp() -> None:
    watch, detail = StateWatch(JOB), answer("job")
    detail["state"] = "RUNNING"
    (observation,) = watch.poll(detail)
    assert (observation.action, observation.value["restart"]) == (Action.JOB_RESTARTING, 1)
    assert list(watch.poll(detail)) == []
    detail["timestamps"]["RESTARTING"] += 700
    (observation,) = watch.poll(detail)
    assert observation.value["restart"] == 2


def test_failures_are_recorded_once_with_their_root_cause_oldest_first() -> None:
    watch = StateWatch(JOB)
    older, newer = watch.failures(answer("exceptions"))
    assert "Connection unexpectedly closed by remote task manager" in older.value["cause"]
    assert newer.value["cause"].endswith("Could not acquire the minimum required resources.")
    assert newer.value["cause"].startswith("org.apache.flink.runtime.jobmanager")
    assert list(watch.failures(answer("exceptions"))) == []


def test_the_end_of_a_failed_job_is_recorded_once_with_its_cause() -> None:
    watch, detail = StateWatch(JOB), answer("job")
    list(watch.poll(detail))
    list(watch.failures(answer("exceptions")))
    detail["state"] = "FAILED"
    (observation,) = watch.poll(detail)
    assert (observation.action, observation.kind, observation.value["state"]) == (
        Action.JOB_ENDED,
        Kind.FAIL,
        "FAILED",
    )
    assert observation.error == observation.value["cause"] != ""
    assert watch.ended
    assert list(watch.end(LOST)) == []
