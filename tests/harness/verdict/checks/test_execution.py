"""Execution: evidence against the run's own verdict makes it undecided."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamquake.faults.fault import faults
from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.model import ExistingJob
from streamquake.harness.verdict.checks.execution import Execution
from streamquake.harness.verdict.evidence.sent_times import load_ended_ns
from streamquake.harness.verdict.evidence.waits import NOT_MET
from streamquake.harness.workloads.numbered import Numbered
from streamquake.reports.record.event import Action, Event, Kind
from streamquake.reports.record.history import History
from streamquake.reports.record.metrics import Metrics
from streamquake.reports.record.outcome import Outcome
from tests.harness.histories import Story, experiment, no_spark

PLANNED = Numbered(records=1000, rate_per_s=100)
Change = Callable[[Story], Story]


def judged(
    story: Story,
    folder: Path,
    *,
    read: bool = True,
    records: int = 1000,
    existing: ExistingJob | None = None,
    job: bool = True,
    others: Collection[str] = (),
    in_order: bool = True,
) -> tuple[Outcome, str]:
    """The outcome and the summary. A test adds its events to those of a whole run: they are put in
    the order of their times, as a run records them, unless that is not wanted."""
    data = folder / "data"
    planned = PLANNED.model_copy(update={"records": records})
    tried = experiment().model_copy(update={"workload": planned})
    assert tried.job is not None
    promise = tried.job.promise.model_validate({"outputs": {"totals": {"kafka": "totals"}}})
    given = tried.job.model_copy(update={"promise": promise, "existing": existing})
    beside = dict.fromkeys(others, given)
    tried = tried.model_copy(update={"job": given if job else None, "other_jobs": beside})
    for name in tried.promise.outputs if read else ():
        (data / name).mkdir(parents=True)
        (data / name / "read.json").write_text("{}")
    events = list(story.history())
    if in_order:
        events.sort(key=lambda event: event.at_ns)
    result = Execution().check(
        JudgedRun(
            experiment=tried,
            history=History(replace(event, index=n) for n, event in enumerate(events)),
            data=data,
            metrics=folder / "metrics.parquet",
            spark=no_spark,
        )
    )
    return result.outcome, result.summary


def whole(*, count: int = 1000, done_s: float = 10.5, drained: bool = True) -> Story:
    story = (
        Story()
        .sent(0.5, 500)
        .at(
            done_s - 0.1,
            Action.SENT,
            first=500,
            last=count - 1,
            count=count - 500,
            status="unknown",
        )
    )
    story.at(done_s, Action.WORKLOAD_DONE)
    if drained:
        story.at(done_s + 14.5, Action.DRAINED)
    return story.at(done_s + 19.5, Action.PHASE, phase="tear down")


def test_a_run_that_went_as_planned_is_held(tmp_path: Path) -> None:
    assert judged(whole(), tmp_path)[0] == Outcome.HELD


def test_a_run_without_a_recorded_drain_is_undecided(tmp_path: Path) -> None:
    assert judged(whole(drained=False), tmp_path) == (
        Outcome.UNDECIDED,
        "incomplete: no drain is recorded",
    )


@pytest.mark.parametrize(
    ("in_order", "outcome"), [(True, Outcome.HELD), (False, Outcome.UNDECIDED)]
)
def test_a_time_that_is_not_in_the_order_of_the_record_makes_it_undecided(
    in_order: bool, outcome: Outcome, tmp_path: Path
) -> None:
    story = whole().at(12, Action.JOB_RUNNING, job="j")
    found, summary = judged(story, tmp_path, in_order=in_order)
    assert found == outcome
    message = "`job running` is recorded at 12.0 s, and `phase` before it at 30.0 s"
    assert (message in summary) == (not in_order)


@pytest.mark.parametrize("action", NOT_MET.values())
def test_a_wait_that_was_not_met_makes_it_undecided(tmp_path: Path, action: Action) -> None:
    story = whole().at(20, action, reason="outputs committed: not within 9 s: awaiting")
    assert judged(story, tmp_path) == (
        Outcome.UNDECIDED,
        "not met: outputs committed: not within 9 s: awaiting",
    )


def test_a_failed_part_of_the_harness_makes_it_undecided(tmp_path: Path) -> None:
    story = whole().at(20, Action.HARNESS_ERROR, part="follow-flink", error_text="KeyError: 'x'")
    outcome, summary = judged(story, tmp_path)
    assert outcome == Outcome.UNDECIDED
    assert "follow-flink: KeyError: 'x'" in summary


def test_a_clock_that_was_set_makes_it_undecided(tmp_path: Path) -> None:
    story = whole().at(20, Action.HOST_CLOCK_SET, by_s=-5.0)
    outcome, summary = judged(story, tmp_path)
    assert outcome == Outcome.UNDECIDED
    assert "the clock of the machine was set by -5.000 s" in summary


def test_a_node_that_was_given_up_makes_it_undecided(tmp_path: Path) -> None:
    story = whole().at(20, Action.NODE_GIVEN_UP, node="flink/taskmanager-1", exit_code=1, times=5)
    outcome, summary = judged(story, tmp_path)
    assert outcome == Outcome.UNDECIDED
    assert "flink/taskmanager-1 ended by itself 5 times" in summary


def test_a_load_that_broke_makes_it_undecided(tmp_path: Path) -> None:
    outcome, summary = judged(whole(count=999), tmp_path)
    assert outcome == Outcome.UNDECIDED
    assert "999 of 1,000 planned records were sent" in summary


def test_a_history_with_records_twice_makes_it_undecided(tmp_path: Path) -> None:
    twice = whole().at(20, Action.SENT, first=0, last=9, count=10, status="acknowledged")
    outcome, summary = judged(twice, tmp_path)
    assert outcome == Outcome.UNDECIDED
    assert "workload: the history contains twice the records 0 to 9" in summary


@pytest.mark.parametrize(("sent_s", "outcome"), [(10.5, Outcome.HELD), (28, Outcome.UNDECIDED)])
def test_sends_after_the_end_of_the_load_make_it_undecided(
    tmp_path: Path, sent_s: float, outcome: Outcome
) -> None:
    story = Story().sent(0.5, 500).at(10.5, Action.WORKLOAD_DONE)
    story.at(sent_s, Action.SENT, first=500, last=999, count=500, status="acknowledged")
    story.at(25, Action.DRAINED).at(30, Action.PHASE, phase="tear down")
    found, summary = judged(story, tmp_path)
    assert found == outcome
    message = "workload: 500 sends are recorded at 28.0 s, after its end"
    assert (summary == message) == (outcome == Outcome.UNDECIDED)


@pytest.mark.parametrize(
    ("error", "message"),
    [("the broker refused", "the broker refused"), (None, "its sender failed")],
)
def test_a_failed_sender_has_its_reason(tmp_path: Path, error: str | None, message: str) -> None:
    done = Event(
        index=9,
        at_ns=int(1e10),
        process="workload",
        kind=Kind.FAIL,
        action=Action.WORKLOAD_DONE,
        error=error,
    )
    events = [e for e in whole().history() if e.action != Action.WORKLOAD_DONE]
    story = Story()
    story.history = lambda: History([*events, done])  # type: ignore[method-assign]
    outcome, summary = judged(story, tmp_path)
    assert (outcome, f"workload: {message}" in summary) == (Outcome.UNDECIDED, True)


@pytest.mark.parametrize("first", [Kind.FAIL, Kind.OK])
def test_each_end_of_a_sender_counts(tmp_path: Path, first: Kind) -> None:
    kinds = [first, Kind.OK if first == Kind.FAIL else Kind.FAIL]
    done = next(e for e in whole().history() if e.action == Action.WORKLOAD_DONE)
    events = [e for e in whole().history() if e.action != Action.WORKLOAD_DONE]
    story = Story()
    story._events = [*events, *(replace(done, kind=kind) for kind in kinds)]
    assert judged(story, tmp_path) == (Outcome.UNDECIDED, "workload: its sender failed")


@pytest.mark.parametrize(
    ("later", "message"),
    [
        ((26, Action.DRAINED, {"lag": 100}), "it was drained while 100 records had not been"),
        ((24, Action.DRAINED, {"lag": 100}), "it was drained while 100 records had not been"),
        ((25.5, Action.WORKLOAD_DONE, {}), "it was drained before the load had ended"),
        ((26, Action.DRAINED, {}), ""),
    ],
)
def test_each_drain_and_each_end_of_the_load_counts(
    tmp_path: Path, later: tuple[float, Action, dict[str, int]], message: str
) -> None:
    at_s, action, value = later
    outcome, summary = judged(whole().at(at_s, action, **value), tmp_path)
    assert outcome == (Outcome.UNDECIDED if message else Outcome.HELD)
    assert message in summary


ENDS = (Action.JOB_ENDED, {"job": "j", "state": "CANCELED"})
RUNS = (Action.JOB_RUNNING, {"job": "next"})
FAILS = (Action.JOB_ENDED, {"job": "next", "state": "FAILED"})


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([], "the job next was submitted, and j before it did not end"),
        ([RUNS], "the job next was submitted, and j before it did not end"),
        ([FAILS], "the job next was submitted, and j before it did not end"),
        ([ENDS], "the job next was submitted, and nothing else is recorded of it"),
        ([ENDS, RUNS], ""),
        ([ENDS, FAILS], ""),
    ],
)
def test_a_job_replaces_one_that_ended(
    tmp_path: Path, events: list[tuple[Action, dict[str, str]]], message: str
) -> None:
    story = whole().at(0, Action.JOB_SUBMITTED, job="j").at(5, Action.JOB_SUBMITTED, job="next")
    for action, value in events:
        story.at(11, action, **value)
    found, summary = judged(story, tmp_path)
    assert found == (Outcome.UNDECIDED if message else Outcome.HELD), summary
    assert message in summary


def test_a_load_without_an_end_makes_it_undecided(tmp_path: Path) -> None:
    story = Story().sent(0.5, 1000).at(30, Action.PHASE, phase="tear down")
    assert "its end is not recorded" in judged(story, tmp_path)[1]


@pytest.mark.parametrize(("done_s", "outcome"), [(20.4, Outcome.HELD), (21.0, Outcome.UNDECIDED)])
def test_a_load_far_behind_its_plan_makes_it_undecided(
    tmp_path: Path, done_s: float, outcome: Outcome
) -> None:
    assert judged(whole(done_s=done_s), tmp_path)[0] == outcome


def test_a_fault_explains_that_the_load_is_behind(tmp_path: Path) -> None:
    kill = {"step": 0, "fault": "kill", "target": "x"}
    story = whole(done_s=40).at(5, Action.FAULT_CALLED, **kill)
    story.at(6, Action.FAULT_IN_EFFECT, **kill).at(20, Action.FAULT_HEALED, **kill)
    assert judged(story, tmp_path)[0] == Outcome.HELD


@pytest.mark.parametrize(
    ("after", "seen", "message"),
    [
        ("drain", {"enrich": None}, ""),
        ("drain", {"enrich": "the job is FAILED"}, "the job enrich did not run then: the job is"),
        ("drain", {"noise": None}, "whether the job enrich ran then is not recorded"),
        ("recovery", {"enrich": None}, "whether the other jobs ran then is not recorded"),
    ],
)
def test_other_jobs_must_be_recorded_to_run_at_the_drain(
    tmp_path: Path, after: str, seen: Mapping[str, str | None], message: str
) -> None:
    story = whole().at(25, Action.OTHER_JOBS_SEEN, after=after, jobs=seen)
    outcome, summary = judged(story, tmp_path, others=("enrich",))
    assert outcome == (Outcome.UNDECIDED if message else Outcome.HELD)
    assert message in summary


def test_other_jobs_are_not_expected_where_there_are_none(tmp_path: Path) -> None:
    story = whole().at(25, Action.OTHER_JOBS_SEEN, after="drain", jobs={"enrich": "ended"})
    assert judged(story, tmp_path)[0] == Outcome.HELD


def test_a_record_that_ends_early_makes_it_undecided(tmp_path: Path) -> None:
    events = list(whole().history())[:-1]
    story = Story()
    story.history = lambda: History(events)  # type: ignore[method-assign]
    assert "the last phase recorded is none" in judged(story, tmp_path)[1]


def test_an_output_that_was_not_read_makes_it_undecided(tmp_path: Path) -> None:
    outcome, summary = judged(whole(), tmp_path, read=False)
    assert (outcome, "the output totals was not read" in summary) == (Outcome.UNDECIDED, True)


@pytest.mark.parametrize(
    ("value", "again", "message"),
    [
        ({"exit_code": 1}, False, "hdfs/datanode-1 ended by itself with exit code 1"),
        ({"exit_code": 1}, True, ""),
        ({"exit_code": 0}, False, ""),  # a regular end
        ({"exit_code": None}, False, "ended by itself with an exit code that is not known"),
        ({"exit_code": None}, True, ""),
        ({}, False, "hdfs/datanode-1 ended by itself with an exit code that is not known"),
    ],
)
def test_a_node_that_ended_and_was_not_started_again_makes_it_undecided(
    tmp_path: Path, value: dict[str, Any], again: bool, message: str
) -> None:
    story = whole().at(20, Action.CONTAINER_DIED, node="hdfs/datanode-1", **value)
    if again:
        story.at(21, Action.CONTAINER_STARTED, node="hdfs/datanode-1")

    outcome, summary = judged(story, tmp_path)

    assert outcome == (Outcome.UNDECIDED if message else Outcome.HELD)
    assert message in summary


@pytest.mark.parametrize(
    ("action", "exit_code", "message"),
    [
        (Action.CONTAINER_DIED, 137, "hdfs/datanode-1 was ended by SIGKILL, which no fault did"),
        (Action.CONTAINER_DIED, 143, "hdfs/datanode-1 was ended by SIGTERM, which no fault did"),
        (Action.CONTAINER_DIED, 129, "hdfs/datanode-1 was ended by SIGHUP, which no fault did"),
        (Action.CONTAINER_DIED, 130, "hdfs/datanode-1 was ended by SIGINT, which no fault did"),
        (Action.CONTAINER_OOM, None, "hdfs/datanode-1 was out of memory, which no fault did"),
    ],
)
def test_a_node_that_was_ended_from_outside_makes_it_undecided(
    tmp_path: Path, action: Action, exit_code: int | None, message: str
) -> None:
    """Also where it was started again."""
    story = whole().at(20, action, node="hdfs/datanode-1", exit_code=exit_code)
    story.at(21, Action.CONTAINER_STARTED, node="hdfs/datanode-1")

    outcome, summary = judged(story, tmp_path)

    assert (outcome, message in summary) == (Outcome.UNDECIDED, True), summary


@pytest.mark.parametrize(
    ("fault", "ends", "message"),
    [
        ("kill", [("died", 6, 137), ("started", 9, None)], ""),
        # A process ends once: what ends in its place, or again, was not ended by the fault.
        ("kill", [("died", 6, 137), ("started", 8, None), ("died", 8.5, 137)], "SIGKILL"),
        ("kill", [("died", 6, 137), ("died", 7, 143), ("started", 9, None)], "SIGTERM"),
        ("kill", [("died", 6, 137), ("died", 11.5, 137), ("started", 12, None)], "SIGKILL"),
        ("kill", [("died", 6, 137), ("started", 9, None), ("died", 9.9, 1)], "exit code 1"),
        ("crash_loop", [("died", 6, 137), ("died", 7, 70), ("started", 9, None)], ""),
        ("oom_heap", [("died", 6, 137), ("started", 7, None), ("died", 8, 137)], ""),
        ("memory_limit", [("died", 6, 137), ("started", 7, None), ("died", 8, 137)], ""),
        ("memory_limit", [("died", 6, 143), ("started", 9, None)], "SIGTERM"),
        ("crash_loop", [("died", 6, 137), ("died", 7, 143), ("started", 9, None)], "SIGTERM"),
        ("oom_heap", [("died", 6, 137), ("died", 7, 143), ("started", 9, None)], "SIGTERM"),
        ("oom_heap", [("died", 6, 137), ("died", 7, 3)], ""),
        ("oom_heap", [("died", 6, 137), ("died", 7, None)], ""),
        ("crash_loop", [("died", 6, 137), ("died", 7, None)], ""),
        ("crash_loop", [("died", 6, 137), ("died", 7, 1)], "exit code 1"),
        ("crash_loop", [("died", at_s, 137) for at_s in (6, 7, 8)], "SIGKILL"),
        ("memory_limit", [("died", at_s, 137) for at_s in (6, 7, 8)], ""),
    ],
)
def test_a_fault_explains_as_many_ends_of_a_node_as_it_causes(
    tmp_path: Path, fault: str, ends: list[tuple[str, float, int | None]], message: str
) -> None:
    about = {"step": 0, "fault": fault, "target": "x", "nodes": ["hdfs/datanode-1"]}
    story = whole().at(5, Action.FAULT_CALLED, **about)
    story.at(10, Action.FAULT_HEALED, **about, seen_ns=int(10e9))
    for action, at_s, exit_code in ends:
        code = {} if exit_code is None else {"exit_code": exit_code}
        story.at(at_s, Action(f"container {action}"), node="hdfs/datanode-1", **code)

    outcome, summary = judged(story, tmp_path)

    assert outcome == (Outcome.UNDECIDED if message else Outcome.HELD), summary
    assert message in summary


@pytest.mark.parametrize(
    ("kills_s", "unexplained"),
    [((6, 10.5), 0), ((6, 9.95), 0), ((6, 9.8), 1), ((6, 8, 10.5), 1), ((6, 10.5, 10.8), 1)],
)
def test_the_injection_and_the_heal_of_a_crash_loop_kill_a_node_once_each(
    tmp_path: Path, kills_s: tuple[float, ...], unexplained: int
) -> None:
    about = {"step": 0, "fault": "crash_loop", "target": "x", "nodes": ["hdfs/datanode-1"]}
    story = whole().at(5, Action.FAULT_CALLED, **about)
    story.at(10, Action.HEAL_CALLED, **about)
    story.at(11, Action.FAULT_HEALED, **about, seen_ns=int(11e9))
    for died_s in kills_s:
        story.at(died_s, Action.CONTAINER_DIED, node="hdfs/datanode-1", exit_code=137)
        story.at(died_s + 0.1, Action.CONTAINER_STARTED, node="hdfs/datanode-1")
    assert judged(story, tmp_path)[1].count("SIGKILL") == unexplained


@pytest.mark.parametrize(
    ("action", "fault", "explains"),
    [
        (Action.CONTAINER_OOM, "memory_limit", True),
        (Action.CONTAINER_OOM, "oom_container", True),
        (Action.CONTAINER_OOM, "kill", False),
        (Action.CONTAINER_OOM, "pause", False),
        (Action.CONTAINER_DIED, "memory_limit", True),
        (Action.CONTAINER_DIED, "kill", True),
        (Action.CONTAINER_DIED, "pause", False),
    ],
)
def test_only_a_fault_that_takes_memory_explains_its_lack(
    tmp_path: Path, action: Action, fault: str, explains: bool
) -> None:
    about = {"step": 0, "fault": fault, "target": "x", "nodes": ["hdfs/datanode-1"]}
    story = whole().at(5, Action.FAULT_CALLED, **about)
    story.at(6, action, node="hdfs/datanode-1", exit_code=137)
    story.at(7, Action.CONTAINER_STARTED, node="hdfs/datanode-1")
    assert judged(story, tmp_path)[0] == (Outcome.HELD if explains else Outcome.UNDECIDED)


def test_a_node_that_a_fault_ended_is_no_problem(tmp_path: Path) -> None:
    kill = {"step": 0, "fault": "kill", "target": "x", "nodes": ["hdfs/datanode-1"]}
    story = whole().at(5, Action.FAULT_CALLED, **kill)
    story.at(6, Action.CONTAINER_DIED, node="hdfs/datanode-1", exit_code=137)

    assert judged(story, tmp_path)[0] == Outcome.HELD


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        ("oom_heap", Outcome.HELD),
        ("memory_limit", Outcome.HELD),
        ("pause", Outcome.UNDECIDED),
        ("sigstop", Outcome.UNDECIDED),
        ("cpu_limit", Outcome.UNDECIDED),
        ("of another version", Outcome.UNDECIDED),
    ],
)
@pytest.mark.parametrize("died_s", [6, 11])
def test_only_a_fault_that_ends_processes_explains_the_end_of_a_node(
    tmp_path: Path, fault: str, died_s: float, outcome: Outcome
) -> None:
    """Any other node would have been started again, also where it ends because of the fault."""
    about = {"step": 0, "fault": fault, "target": "x", "nodes": ["flink/taskmanager-1"]}
    story = whole().at(5, Action.FAULT_CALLED, **about)
    story.at(10, Action.FAULT_HEALED, **about, seen_ns=int(10e9))
    story.at(died_s, Action.CONTAINER_DIED, node="flink/taskmanager-1", exit_code=1)

    assert judged(story, tmp_path)[0] == outcome
    story.at(died_s + 0.5, Action.CONTAINER_STARTED, node="flink/taskmanager-1")
    assert judged(story, tmp_path / "started again")[0] == Outcome.HELD


def test_of_the_faults_of_a_process_two_let_it_live() -> None:
    of_process = {name for name, fault in faults.items() if fault.touches == "process"}
    ending = {name for name, fault in faults.items() if fault.ends_process}
    assert of_process - ending == {"pause", "sigstop"}
    assert ending - of_process == {"memory_limit"}


@pytest.mark.parametrize(
    ("died_s", "outcome"),
    [
        (4.9, Outcome.UNDECIDED),
        (6, Outcome.HELD),
        (11, Outcome.HELD),
        (12.5, Outcome.UNDECIDED),
        (10, Outcome.HELD),
        (12, Outcome.HELD),
        (4.96, Outcome.HELD),  # the stamp of the container engine is not more exact
    ],
)
def test_a_node_that_ended_before_its_fault_or_long_after_ended_by_itself(
    tmp_path: Path, died_s: float, outcome: Outcome
) -> None:
    kill = {"step": 0, "fault": "kill", "target": "x", "nodes": ["hdfs/datanode-1"]}
    story = whole().at(5, Action.FAULT_CALLED, **kill)
    story.at(10, Action.FAULT_HEALED, **kill, seen_ns=int(10e9))
    story.at(died_s, Action.CONTAINER_DIED, node="hdfs/datanode-1", exit_code=1)

    assert judged(story, tmp_path)[0] == outcome


@pytest.mark.parametrize(
    ("started_s", "died_s", "outcome"),
    [
        (4, 11, Outcome.HELD),
        (9, 9.5, Outcome.UNDECIDED),
        (9, 11, Outcome.UNDECIDED),
        (5, 11, Outcome.UNDECIDED),
    ],
)
def test_a_node_that_was_started_since_its_fault_ended_by_itself(
    tmp_path: Path, started_s: float, died_s: float, outcome: Outcome
) -> None:
    kill = {"step": 0, "fault": "kill", "target": "x", "nodes": ["hdfs/datanode-1"]}
    story = whole().at(5, Action.FAULT_CALLED, **kill)
    story.at(10, Action.FAULT_HEALED, **kill, seen_ns=int(10e9))
    story.at(started_s, Action.CONTAINER_STARTED, node="hdfs/datanode-1")
    story.at(died_s, Action.CONTAINER_DIED, node="hdfs/datanode-1", exit_code=1)

    assert judged(story, tmp_path)[0] == outcome


@pytest.mark.parametrize(
    ("fault", "died_s", "outcome"),
    [
        ("power_off", 6, Outcome.HELD),
        ("power_off", 5, Outcome.HELD),
        ("power_off", 9.9, Outcome.HELD),
        ("power_off", 4.9, Outcome.UNDECIDED),
        ("power_off", 10, Outcome.UNDECIDED),
        ("kill", 6, Outcome.UNDECIDED),
        ("of another version", 6, Outcome.UNDECIDED),
    ],
)
def test_a_sandbox_that_no_fault_ended_makes_it_undecided(
    tmp_path: Path, fault: str, died_s: float, outcome: Outcome
) -> None:
    """A kill ends only the process; the node's network remains. That the node was started again
    changes nothing: its network was gone."""
    node = "hdfs/datanode-1"
    about = {"step": 0, "fault": fault, "target": "x", "nodes": [node]}
    story = whole().at(5, Action.FAULT_CALLED, **about)
    story.at(10, Action.FAULT_HEALED, **about, seen_ns=int(10e9))
    story.at(died_s, Action.SANDBOX_DIED, node=node, exit_code=137)
    story.at(12, Action.CONTAINER_STARTED, node=node)

    found, summary = judged(story, tmp_path)

    assert found == outcome
    assert (f"the sandbox of {node} ended" in summary) == (outcome == Outcome.UNDECIDED)


def test_a_power_off_that_is_not_healed_yet_explains_the_end_of_a_sandbox(tmp_path: Path) -> None:
    about = {"step": 0, "fault": "power_off", "target": "x", "nodes": ["hdfs/datanode-1"]}
    story = whole().at(5, Action.FAULT_CALLED, **about)
    story.at(6, Action.SANDBOX_DIED, node="hdfs/datanode-1", exit_code=137)
    assert judged(story, tmp_path)[0] == Outcome.HELD
    story.at(7, Action.SANDBOX_DIED, node="hdfs/datanode-2", exit_code=137)
    assert judged(story, tmp_path / "2")[0] == Outcome.UNDECIDED


@pytest.mark.parametrize(
    ("fault", "revived_s", "lost", "outcome"),
    [
        ("power_off", 6, {"lost_network": True}, Outcome.HELD),
        ("power_off", 4.9, {"lost_network": True}, Outcome.UNDECIDED),
        ("power_off", 10, {"lost_network": True}, Outcome.UNDECIDED),
        ("kill", 6, {"lost_network": True}, Outcome.UNDECIDED),
        ("kill", 6, {"lost_network": False}, Outcome.HELD),  # its process had ended
        ("kill", 6, {}, Outcome.HELD),
    ],
)
def test_a_node_revived_without_its_network_had_lost_it(
    tmp_path: Path, fault: str, revived_s: float, lost: dict[str, Any], outcome: Outcome
) -> None:
    """The supervisor saw that the network was gone, also where the end of the sandbox is not
    recorded."""
    node = "flink/taskmanager-2"
    about = {"step": 0, "fault": fault, "target": "x", "nodes": [node]}
    story = whole().at(5, Action.FAULT_CALLED, **about)
    story.at(10, Action.FAULT_HEALED, **about, seen_ns=int(10e9))
    story.at(revived_s, Action.NODE_REVIVED, node=node, exit_code=None, times=1, **lost)

    found, summary = judged(story, tmp_path)

    assert found == outcome
    assert (f"{node} had lost its network" in summary) == (outcome == Outcome.UNDECIDED)


@pytest.mark.parametrize(("before_ns", "outcome"), [(1, Outcome.UNDECIDED), (0, Outcome.HELD)])
def test_a_drain_before_the_end_of_the_load_is_incomplete(
    tmp_path: Path, before_ns: int, outcome: Outcome
) -> None:
    events = whole().history()
    loaded_ns = next(e.at_ns for e in events if e.action == Action.WORKLOAD_DONE)
    story = Story()
    story._events = [
        replace(e, at_ns=loaded_ns - before_ns) if e.action == Action.DRAINED else e for e in events
    ]
    found, summary = judged(story, tmp_path)
    assert found == outcome
    message = "it was drained before the load had ended"
    assert (message in summary) == (outcome == Outcome.UNDECIDED)


def test_a_removal_before_its_fault_makes_no_load_late(tmp_path: Path) -> None:
    kill = {"step": 0, "fault": "kill", "target": "x"}
    story = whole().at(9, Action.FAULT_CALLED, **kill)
    story.at(9, Action.FAULT_IN_EFFECT, **kill).at(10, Action.FAULT_HEALED, **kill, seen_ns=1)

    assert judged(story, tmp_path)[0] == Outcome.HELD


def test_at_most_three_problems_are_named(tmp_path: Path) -> None:
    story = whole()
    for number in range(4):
        story.at(20, Action.HARNESS_ERROR, part=f"part-{number}", error_text="ended")
    assert judged(story, tmp_path)[1] == "; ".join(
        f"a part of the harness failed: part-{number}: ended" for number in range(3)
    )


def test_a_record_that_ends_early_names_its_last_phase(tmp_path: Path) -> None:
    story = Story()
    events = list(whole().history())[:-1]
    for event in events:
        story.at(event.at_s, event.action, **event.value)
    for phase in ("steady", "disturb", "drain"):
        story.at(29, Action.PHASE, phase=phase)
    assert "the last phase recorded is drain" in judged(story, tmp_path)[1]


@pytest.mark.parametrize(
    ("action", "job", "at_s", "outcome"),
    [
        (Action.JOB_RUNNING, "j", 10.0, Outcome.UNDECIDED),
        (Action.CHECKPOINT_TRIGGERED, "j", 10.0, Outcome.UNDECIDED),
        (Action.CHECKPOINT_TRIGGERED, "j", 5.0, Outcome.HELD),
        (Action.CHECKPOINT_TRIGGERED, "next", 10.0, Outcome.HELD),
    ],
)
@pytest.mark.parametrize("state", ["FINISHED", "CANCELED"])
def test_a_job_that_goes_on_after_its_end_makes_it_undecided(
    tmp_path: Path, state: str, action: Action, job: str, at_s: float, outcome: Outcome
) -> None:
    story = whole().at(4, Action.JOB_ENDED, job="j", state=state)
    story.at(at_s, action, job=job, checkpoint=7)
    found, summary = judged(story, tmp_path)
    assert found == outcome, summary
    assert (f"the job {state} at 4.0 s" in summary) == (outcome == Outcome.UNDECIDED)


def stamp(at_s: float) -> int:
    """A moment of the run's clock as a stamp of the engine, in milliseconds since the epoch."""
    return 1_700_000_000_000 + round(at_s * 1000)


@pytest.mark.parametrize(
    ("triggered_s", "acknowledged_s", "outcome"),
    [
        (4.5, 5.0, Outcome.HELD),
        (6.0, 7.0, Outcome.HELD),
        (6.0, 7.1, Outcome.UNDECIDED),  # 3 s after the end
        (7.1, 7.2, Outcome.UNDECIDED),
    ],
)
@pytest.mark.parametrize("end_seen_s", [4.1, 19.0])
def test_a_checkpoint_that_completes_after_the_end_of_its_job_makes_it_undecided(
    tmp_path: Path, end_seen_s: float, triggered_s: float, acknowledged_s: float, outcome: Outcome
) -> None:
    """By the engine's own stamps, also where the end is observed after the drain."""
    story = whole(done_s=5.5)
    story.at(1, Action.CHECKPOINT_ACKNOWLEDGED, ack_ms=stamp(1))  # observed at once
    story.at(
        acknowledged_s + 0.1,
        Action.CHECKPOINT_COMPLETED,
        job="j",
        checkpoint=7,
        trigger_ms=stamp(triggered_s),
        last_ack_ms=stamp(acknowledged_s),
    )
    story.at(end_seen_s, Action.JOB_ENDED, job="j", state="FAILED", ended_ms=stamp(4))
    found, summary = judged(story, tmp_path)
    assert found == outcome, summary
    assert ("the job FAILED at 4.0 s" in summary) == (outcome == Outcome.UNDECIDED)


@pytest.mark.parametrize(
    ("ended_s", "outcome"),
    [(7.4, Outcome.UNDECIDED), (7.5, Outcome.HELD), (11.0, Outcome.HELD)],
)
@pytest.mark.parametrize("state", ["FINISHED", "FAILED", "CANCELED"])
def test_a_job_that_read_what_was_sent_after_its_end_makes_it_undecided(
    tmp_path: Path, state: str, ended_s: float, outcome: Outcome
) -> None:
    """The last records were sent at 10.5 s."""
    story = whole().at(0, Action.JOB_SUBMITTED, job="j")
    story.at(10.5, Action.SENT, first=1000, last=1000, count=1, status="acknowledged")
    story.at(ended_s, Action.JOB_ENDED, job="j", state=state)
    found, summary = judged(story, tmp_path, records=1001)
    assert found == outcome, summary
    message = f"the last job {state} at {ended_s} s, and is recorded to have read what was sent"
    assert (message in summary) == (outcome == Outcome.UNDECIDED)


@pytest.mark.parametrize("submitted_s", [3.0, 5.0])
def test_another_job_may_read_what_was_sent_after_the_end_of_the_first(
    tmp_path: Path, submitted_s: float
) -> None:
    story = whole().at(0, Action.JOB_SUBMITTED, job="j")
    story.at(10.5, Action.SENT, first=1000, last=1000, count=1, status="acknowledged")
    story.at(4, Action.JOB_ENDED, job="j", state="CANCELED")
    story.at(submitted_s, Action.JOB_SUBMITTED, job="next").at(6, Action.JOB_RUNNING, job="next")
    assert judged(story, tmp_path, records=1001)[0] == Outcome.HELD


def test_a_job_that_is_submitted_again_may_read_what_was_sent_after_its_end(tmp_path: Path) -> None:
    story = whole().at(0, Action.JOB_SUBMITTED, job="j")
    story.at(10.5, Action.SENT, first=1000, last=1000, count=1, status="acknowledged")
    story.at(4, Action.JOB_ENDED, job="j", state="CANCELED").at(5, Action.JOB_SUBMITTED, job="j")
    assert judged(story, tmp_path, records=1001)[0] == Outcome.HELD


def test_a_job_that_the_run_did_not_start_may_leave_records_unread(tmp_path: Path) -> None:
    """Its drain is only the silence of its outputs."""
    story = whole().at(0, Action.JOB_SUBMITTED, job="j")
    story.at(10.5, Action.SENT, first=1000, last=1000, count=1, status="acknowledged")
    story.at(4, Action.JOB_ENDED, job="j", state="FAILED")
    assert judged(story, tmp_path, records=1001, existing=ExistingJob())[0] == Outcome.HELD


@pytest.mark.parametrize(("completed", "outcome"), [(7, Outcome.HELD), (6, Outcome.UNDECIDED)])
def test_a_commit_of_a_checkpoint_that_is_not_recorded_makes_it_undecided(
    tmp_path: Path, completed: int, outcome: Outcome
) -> None:
    """As if the engine was not observed any more, while the output still was."""
    story = whole().at(15, Action.CHECKPOINT_COMPLETED, job="j", checkpoint=completed)
    story.at(16, Action.SINK_COMMITTED, checkpoint=7, output="totals", end=9)
    found, summary = judged(story, tmp_path)
    assert found == outcome, summary
    message = "the output totals grew by the commit of checkpoint 7, whose completion is not"
    assert (message in summary) == (outcome == Outcome.UNDECIDED)


@pytest.mark.parametrize(
    ("completed_s", "output", "end", "message"),
    [
        (15, "totals", 2000, ""),
        (15, "totals", None, ""),  # an old record
        (17, "totals", 2000, "by the commit of checkpoint 7, whose completion is not recorded be"),
        (
            15,
            "totals",
            2001,
            "by the commit of checkpoint 7, and was not seen to end at 2,001",
        ),
        (15, "zzz", 2000, "an output zzz grew, which the experiment does not have"),
    ],
)
def test_a_commit_follows_a_checkpoint_and_a_growth(
    tmp_path: Path, completed_s: float, output: str, end: int | None, message: str
) -> None:
    story = whole()
    events = [
        (completed_s, Action.CHECKPOINT_COMPLETED, {"job": "j", "checkpoint": 7}),
        (15.5, Action.OUTPUT_SEEN, {"output": "totals", "end": 2000, "grown": 2000}),
        (16, Action.SINK_COMMITTED, {"checkpoint": 7, "output": output, "end": end}),
    ]
    for at_s, action, value in sorted(events, key=lambda event: event[0]):
        story.at(at_s, action, **value)
    found, summary = judged(story, tmp_path)
    assert found == (Outcome.UNDECIDED if message else Outcome.HELD), summary
    assert message in summary


@pytest.mark.parametrize(
    ("completed_s", "existing", "outcome"),
    [
        ((), None, Outcome.HELD),
        ((4.0, 10.4), None, Outcome.UNDECIDED),
        ((4.0, 10.5), None, Outcome.HELD),
        ((24.0,), None, Outcome.HELD),
        ((4.0,), ExistingJob(), Outcome.HELD),
    ],
)
def test_a_drain_without_a_checkpoint_since_the_load_makes_it_undecided(
    tmp_path: Path,
    completed_s: tuple[float, ...],
    existing: ExistingJob | None,
    outcome: Outcome,
) -> None:
    """The load ended at 10.5 s. As if the engine was not observed any more."""
    story = whole()
    story.at(10.5, Action.SENT, first=1000, last=1000, count=1, status="acknowledged")
    for number, at_s in enumerate(completed_s):
        story.at(at_s, Action.CHECKPOINT_COMPLETED, job="j", checkpoint=number)
    found, summary = judged(story, tmp_path, records=1001, existing=existing)
    assert found == outcome, summary
    assert ("no checkpoint is recorded to complete" in summary) == (outcome == Outcome.UNDECIDED)


@pytest.mark.parametrize(
    ("lag", "outcome"),
    [({}, Outcome.HELD), ({"lag": 0}, Outcome.HELD), ({"lag": 500}, Outcome.UNDECIDED)],
)
def test_a_drain_with_records_that_were_not_read_is_incomplete(
    tmp_path: Path, lag: dict[str, int], outcome: Outcome
) -> None:
    story = whole(drained=False).at(25, Action.DRAINED, **lag)
    found, summary = judged(story, tmp_path)
    assert found == outcome
    message = "it was drained while 500 records had not been read"
    assert (message in summary) == (outcome == Outcome.UNDECIDED)


@pytest.mark.parametrize(
    "times",
    [
        {"acknowledged_until_ns": 2**62},
        {"acknowledged_until_ns": -1},
        {"acknowledged_until_ns": 1, "pauses_ns": [[1, 2**62]]},
        {"acknowledged_until_ns": 1, "sent_by": [[0, 9, 2**62]]},
    ],
)
def test_an_acknowledgement_after_its_event_makes_it_undecided(
    tmp_path: Path, times: dict[str, Any]
) -> None:
    story = whole()
    first = story.history()[0]
    changed = History([replace(first, value={**first.value, **times}), *story.history()[1:]])
    problems = list(PLANNED.send_problems(changed))
    assert problems == ["event 0 has acknowledgements that are later than itself"]
    assert load_ended_ns(changed) == first.at_ns or times["acknowledged_until_ns"] < first.at_ns


def test_output_that_the_experiment_does_not_have_decides_nothing(tmp_path: Path) -> None:
    story = whole().at(3, Action.OUTPUT_SEEN, output="other", grown=1)
    found, summary = judged(story, tmp_path)
    assert found == Outcome.UNDECIDED
    assert "an output other grew, which the experiment does not have" in summary


@pytest.mark.parametrize(("job", "outcome"), [(True, Outcome.UNDECIDED), (False, Outcome.HELD)])
def test_output_of_a_job_after_the_drain_decides_nothing(
    job: bool, outcome: Outcome, tmp_path: Path
) -> None:
    name = "totals" if job else "input"
    story = whole().at(40, Action.OUTPUT_SEEN, output=name, grown=1)
    found, summary = judged(story, tmp_path, job=job)
    grown = "contradictory record: the output totals grew after the drain"
    assert (found, grown in summary) == (outcome, job)


@pytest.mark.parametrize(
    ("sampled_s", "whole_run", "outcome"),
    [
        (40.0, True, Outcome.HELD),
        (41.0, True, Outcome.UNDECIDED),
        (1030.0, True, Outcome.UNDECIDED),
        (1030.0, False, None),
    ],
)
def test_samples_after_the_end_of_the_run_decide_nothing(
    sampled_s: float, whole_run: bool, outcome: Outcome | None, tmp_path: Path
) -> None:
    """The last event is at 30 s."""
    metrics = Metrics(tmp_path / "metrics.parquet")
    metrics.add(int(sampled_s * 1e9), "lag", "input", 1.0)
    metrics.flush()
    story = whole() if whole_run else Story().sent(0.5, 500)
    found, summary = judged(story, tmp_path)
    assert ("samples" in summary) == (outcome == Outcome.UNDECIDED)
    assert outcome in (found, None)
